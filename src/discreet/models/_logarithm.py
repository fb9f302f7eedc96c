# pyright: reportUnknownMemberType=false
"""log(1 + e) for e in [0, 1], in operations that a compiler turns into vector instructions.

XLA calls the C library's logarithm number by number; in a chain that reads a thousand
records a step, that took most of the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jax

# Coefficients in w, highest first, of the Chebyshev interpolant of 2 artanh(sqrt w) / sqrt w on [0, 1/9].
# mpmath's chebyfit finds them, and its error of 1e-16.
_COEFFICIENTS = (
    0.17780763826113302,
    0.09880789048764786,
    0.13591305485579894,
    0.15363676248891633,
    0.1818285980047391,
    0.22222190861346283,
    0.2857142911165716,
    0.399999999952876,
    0.6666666666668257,
    2.0,
)


def log_one_plus(e: jax.Array) -> jax.Array:
    """log(1 + e) for e in [0, 1], with a relative error of at most 5e-16; tiny e may become 0.

    log(1 + e) = 2 artanh(z) with z = e / (2 + e), which is at most 1/3.
    """
    from jax import lax

    return two_artanh(lax.div(e, lax.add(e, 2.0)))


def two_artanh(z: jax.Array) -> jax.Array:
    """2 artanh(z) for z in [-1/3, 1/3]."""
    from jax import lax

    w = lax.mul(z, z)
    series = lax.add(lax.mul(w, _COEFFICIENTS[0]), _COEFFICIENTS[1])
    for coefficient in _COEFFICIENTS[2:]:
        series = lax.add(lax.mul(series, w), coefficient)
    return lax.mul(z, series)
