"""A scattering transform: features of images that were fixed before any data was seen.

Moduli of wavelet coefficients, averaged (Mallat 2012; Bruna & Mallat 2013), at two scales and eight angles,
to second order: 81 channels on a grid of 7 x 7 for an image of 28 x 28. Every image is then normalised by
itself: each group of channels to mean 0 and variance 1 (Tramer & Boneh 2021), the whole to a fixed length.
Nothing is learnt, so a network on these features costs what the same network costs on pixels.
"""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

SIDE, ANGLES = 32, 8
CHANNELS = 1 + 2 * ANGLES + ANGLES**2
GRID = 7
FEATURES = CHANNELS * GRID**2
GROUPS = 27


def scatter(images: NDArray[np.float32], chunk: int = 250) -> NDArray[np.float32]:
    """Features of (n, 28, 28, 1) images, one row each."""
    run = jax.jit(_features)
    parts = [np.asarray(run(images[at : at + chunk, ..., 0])) for at in range(0, len(images), chunk)]
    return np.concatenate(parts)


def _features(images: jax.Array) -> jax.Array:
    psi0, psi1, phi, phi_half = (jnp.asarray(f) for f in _filters())
    x = jnp.fft.fft2(jnp.pad(images, ((0, 0), (2, 2), (2, 2))))[:, None]
    order0 = _smooth(x, phi)
    fine = jnp.abs(jnp.fft.ifft2(x * psi0))  # (n, angle, 32, 32)
    fine_hat = jnp.fft.fft2(fine)
    coarse_hat = jnp.fft.fft2(jnp.abs(jnp.fft.ifft2(_halved(x * psi1))))
    second = [
        jnp.fft.fft2(jnp.abs(jnp.fft.ifft2(_halved(fine_hat[:, angle, None] * psi1))))
        for angle in range(ANGLES)
    ]
    maps = [order0, _smooth(fine_hat, phi), _smooth(coarse_hat, phi_half)]
    maps += [_smooth(part, phi_half) for part in second]
    stacked = jnp.concatenate(maps, axis=1)[:, :, :GRID, :GRID]
    return _normalised(stacked)


def _normalised(maps: jax.Array) -> jax.Array:
    """Each group of channels of each image to mean 0 and variance 1, then the image to length 10."""
    n = len(maps)
    grouped = maps.reshape(n, GROUPS, -1)
    off = grouped - grouped.mean(axis=2, keepdims=True)
    scaled = off / jnp.sqrt((off**2).mean(axis=2, keepdims=True) + 1e-10)
    flat = scaled.reshape(n, -1)
    return 10 * flat / jnp.linalg.norm(flat, axis=1, keepdims=True)


def _smooth(spectrum: jax.Array, low: jax.Array) -> jax.Array:
    """The low-pass filtered map, every fourth pixel of the full grid."""
    spectrum = spectrum * low
    while spectrum.shape[-1] > SIDE // 4:
        spectrum = _halved(spectrum)
    return jnp.fft.ifft2(spectrum).real


def _halved(spectrum: jax.Array) -> jax.Array:
    """The spectrum of every second pixel: aliases are averaged."""
    half = spectrum.shape[-1] // 2
    shape = (*spectrum.shape[:-2], 2, half, 2, half)
    return spectrum.reshape(shape).mean(axis=(-4, -2))


@cache
def _filters() -> tuple[NDArray[np.complex64], ...]:
    """Spectra of Morlet wavelets at two scales and of the averages, on the full and on the half grid."""
    psi = [
        np.stack([_morlet(0.8 * 2**j, 0.75 * np.pi / 2**j, np.pi * k / ANGLES) for k in range(ANGLES)])
        for j in range(2)
    ]
    phi = _spectrum(_gabor(0.8 * 2, 0.0, 0.0, 1.0).real, unit_sum=True)
    aliased = phi.reshape(2, SIDE // 2, 2, SIDE // 2).mean(axis=(0, 2)) * 4
    single = [f.astype(np.complex64) for f in (*psi, phi, aliased)]
    return tuple(single)


def _morlet(sd: float, frequency: float, angle: float) -> NDArray[np.complex128]:
    """A wave under a Gaussian, made to have mean 0."""
    wave, hill = _gabor(sd, frequency, angle, 4 / ANGLES), _gabor(sd, 0.0, angle, 4 / ANGLES)
    return _spectrum(wave - hill * (wave.sum() / hill.sum()), unit_sum=False, weight=np.abs(hill).sum())


def _gabor(sd: float, frequency: float, angle: float, slant: float) -> NDArray[np.complex128]:
    """A Gaussian times a plane wave, on a grid that wraps around."""
    found = np.zeros((SIDE, SIDE), dtype=np.complex128)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    for wrap_u in (-2, -1, 0, 1):
        for wrap_v in (-2, -1, 0, 1):
            u, v = np.mgrid[0:SIDE, 0:SIDE].astype(float)
            along, across = np.tensordot(turn, np.stack([u + wrap_u * SIDE, v + wrap_v * SIDE]), 1)
            found += np.exp(-(along**2 + (slant * across) ** 2) / (2 * sd**2) + 1j * frequency * along)
    return found


def _spectrum(kernel: NDArray, *, unit_sum: bool, weight: float | None = None) -> NDArray[np.complex128]:
    total = kernel.sum() if unit_sum else weight
    return np.fft.fft2(kernel / total)
