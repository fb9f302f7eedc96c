"""What the results are held to: the order of the curves, and intervals around every number."""

from __future__ import annotations

import math
from typing import Any

from regression import DELTA, Row

INTERPOLATION = 2e-4
"""Allowed between knots, beside the standard error, where the errors of two curves are nearly constant."""


def within_an_error(better: Row, first: str, second: str) -> list[str]:
    """Where `first` errs more than `second` by over one standard error of the difference."""
    bad: list[str] = []
    for key, one in better[first].items():
        two = better[second][key]
        if one["mean"] - two["mean"] > math.hypot(one["se"], two["se"]) + INTERPOLATION:
            bad.append(f"{first} > {second} at {key}: {one['mean']:.4f} > {two['mean']:.4f}")
    return bad


def order_of(found: dict[str, Any]) -> dict[str, list[str]]:
    """Violations of Algorithm 5 <= Algorithm 4 <= OPS, and of ours <= published, by task."""
    wrong: dict[str, list[str]] = {}
    for name, both in found.items():
        wrong[name] = [
            f"lambda {order}: {line}"
            for order, row in both["renyi"].items()
            for line in (
                *within_an_error(row, "Algorithm 5", "Algorithm 4"),
                *within_an_error(row, "Algorithm 4", "OPS"),
            )
        ]
        wrong[name] += [
            f"delta {DELTA:g}: {line}"
            for kind in ("Algorithm 4", "Algorithm 5")
            for line in within_an_error(both["budget"], kind, f"{kind} as published")
        ]
    return wrong


def points(results: dict[str, Any]) -> dict[str, float]:
    """All numbers by a flat name."""
    gap = "largest relative gap between accountant and Corollary 2"
    flat: dict[str, float] = {f"figure 1/{gap}": results["figure 1"][gap]}
    settled = {name: found["mean"] for name, found in results["reversal"].items()}
    flat |= {f"reversal/{name}": mean for name, mean in settled.items()}
    flat["reversal/Algorithm 5 above Algorithm 4"] = settled["Algorithm 5"] - settled["Algorithm 4"]
    for order, curves in results["figure 2"].items():
        flat |= {f"figure 2/{order}/{k}/{e}": value for k, row in curves.items() for e, value in row.items()}
    for name, both in results["tasks"].items():
        for order, row in both["renyi"].items():
            flat |= {
                f"{name}/lambda {order}/{k}/{e}": p["mean"]
                for k, curve in row.items()
                for e, p in curve.items()
            }
        flat |= {
            f"{name}/delta/{k}/{e}": p["mean"]
            for k, curve in both["budget"].items()
            for e, p in curve.items()
        }
    return flat


def unexpected(results: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Numbers outside their intervals, and violations of the order that are not known."""
    measured = points(results)
    missed = [
        f"{name}: {measured[name]:.4g} not in [{low:.4g}, {high:.4g}]"
        for name, (low, high) in expected.get("intervals", {}).items()
        if name in measured and not low <= measured[name] <= high
    ]
    known = tuple(expected.get("known violations", ()))
    lines = (f"{name}: {line}" for name, found in results["violations"].items() for line in found)
    return missed + [line for line in lines if not line.startswith(known)]
