"""Invented people, for demonstrations."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from discreet.data.errors import DataError
from discreet.data.papers import Dataset
from discreet.data.schema import Schema


def synthetic_clinic(rows: int = 20_000, seed: int = 0) -> Dataset:
    """A clinic's cohort of invented patients: nobody in it exists.

    The diagnosis follows a logistic model in age, body mass index, blood pressure,
    smoking, activity and family history, so that there is something to find.

    Args:
        rows: how many patients.
        seed: the same seed gives the same patients.

    Example:
        >>> clinic = synthetic_clinic(rows=100)
        >>> clinic.frame.columns[:4], clinic.target
        (['age', 'sex', 'bmi', 'systolic'], 'diagnosis')
    """
    import polars as pl

    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise DataError(f"rows must be a whole number from 1, got {rows!r}")
    draw = np.random.default_rng([seed, 0x636C696E])
    age = np.clip(np.round(draw.gamma(9.0, 6.2, rows)), 18, 100).astype(np.int64)
    male = draw.random(rows) < 0.48
    bmi = np.clip(np.round(draw.normal(26.5 + 0.01 * (age - 55), 4.4, rows), 1), 14, 60)
    systolic = np.round(
        np.clip(105 + 0.45 * (age - 18) + 0.6 * (bmi - 26) + draw.normal(0, 13, rows), 75, 230)
    )
    smoker = draw.choice(["never", "former", "current"], rows, p=[0.52, 0.27, 0.21])
    activity = draw.choice(["low", "medium", "high"], rows, p=[0.35, 0.45, 0.20])
    family = draw.random(rows) < 0.23
    risk = (
        -2.6
        + 0.045 * (age - 55)
        + 0.09 * (bmi - 26)
        + 0.018 * (systolic - 125)
        + 0.9 * (smoker == "current")
        + 0.35 * (smoker == "former")
        - 0.45 * (activity == "high")
        + 0.3 * (activity == "low")
        + 0.8 * family
        + 0.15 * male
    )
    ill = draw.random(rows) < 1 / (1 + np.exp(-risk))
    frame = pl.DataFrame(
        {
            "age": age,
            "sex": np.where(male, "male", "female"),
            "bmi": bmi,
            "systolic": systolic.astype(np.int64),
            "smoker": smoker,
            "activity": activity,
            "family_history": np.where(family, "yes", "no"),
            "diagnosis": np.where(ill, "yes", "no"),
        }
    )
    schema = Schema.read(Path(__file__).parent / "declared" / "clinic.toml")
    return Dataset("synthetic_clinic", frame, schema, "diagnosis")
