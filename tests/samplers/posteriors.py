"""Twelve logistic posteriors: d = 1..10, n = 50..5000, three weights, rows at their bound, one separable.

    python tests/samplers/posteriors.py

writes reference moments by NumPyro NUTS to tests/samplers/data/nuts_moments.npz, which test_exact.py reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

MOMENTS = Path(__file__).parent / "data" / "nuts_moments.npz"
CHAINS, WARMUP, SAMPLES = 4, 1000, 5000


@dataclass(frozen=True)
class Case:
    n: int
    d: int
    weight: float
    precision: float
    separable: bool = False

    @property
    def name(self) -> str:
        return f"n{self.n}-d{self.d}-w{self.weight:g}{'-separable' if self.separable else ''}"

    def records(self) -> dict[str, np.ndarray]:
        """Rows of norm exactly 1, and outcomes."""
        source = np.random.default_rng([self.n, self.d, self.separable])
        x = source.standard_normal((self.n, self.d))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        score = x @ (4 * source.standard_normal(self.d) / np.sqrt(self.d))
        chance = (score > 0) if self.separable else 1 / (1 + np.exp(-score))
        return {"x": x, "y": (source.random(self.n) < chance).astype(float)}

    def signed(self) -> np.ndarray:
        records = self.records()
        return records["x"] * (2 * records["y"] - 1)[:, None]


CASES = (
    Case(50, 1, 1.0, 0.05),
    Case(200, 1, 0.3, 0.2),
    Case(50, 2, 1.0, 0.05),
    Case(1000, 2, 0.1, 1.0),
    Case(60, 3, 1.0, 0.06, separable=True),
    Case(300, 4, 0.3, 0.3),
    Case(500, 5, 1.0, 0.5),
    Case(2000, 6, 0.1, 2.0),
    Case(1000, 7, 1.0, 1.0),
    Case(2784, 8, 0.3, 2.784),
    Case(2784, 9, 1.0, 2.784),
    Case(5000, 10, 1.0, 5.0),
)


def nuts(case: Case) -> dict[str, np.ndarray]:
    """Mean and variance of each coordinate, with the effective sample sizes of both."""
    import jax
    import numpyro
    from numpyro.diagnostics import effective_sample_size

    rows = jax.numpy.asarray(case.signed())

    def potential(w: Any) -> Any:
        return 0.5 * case.precision * (w**2).sum() + case.weight * jax.nn.softplus(-rows @ w).sum()

    kernel = numpyro.infer.NUTS(potential_fn=potential)
    run = numpyro.infer.MCMC(
        kernel,
        num_warmup=WARMUP,
        num_samples=SAMPLES,
        num_chains=CHAINS,
        chain_method="sequential",
        progress_bar=False,
    )
    run.run(jax.random.key(case.n + case.d), init_params=jax.numpy.zeros((CHAINS, case.d)))
    draws = np.asarray(run.get_samples(group_by_chain=True))
    mean = draws.mean((0, 1))
    squares = (draws - mean) ** 2
    # Antithetic draws have effective sizes above their number; do not believe more than that.
    sizes = [np.minimum(effective_sample_size(part), CHAINS * SAMPLES) for part in (draws, squares)]
    spread = squares.std((0, 1))
    return {
        "mean": mean,
        "variance": squares.mean((0, 1)),
        "size": sizes[0],
        "size_squares": sizes[1],
        "spread": spread,
    }


if __name__ == "__main__":
    import jax

    jax.config.update("jax_enable_x64", True)
    found = {f"{case.name}/{key}": value for case in CASES for key, value in nuts(case).items()}
    MOMENTS.parent.mkdir(exist_ok=True)
    np.savez(MOMENTS, allow_pickle=False, **found)
