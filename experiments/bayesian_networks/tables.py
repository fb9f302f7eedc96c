"""Tables 2 to 5 as Markdown, the paper's numbers in brackets."""

from __future__ import annotations

from typing import Any

NAMES = {"sgld": "SGLD", "bbp": "BBP", "mcd": "MC dropout", "sgd": "SGD (not Bayesian)"}
PRIORS = {"gaussian": "Gaussian", "laplace": "Laplace", "none": "none"}
PUBLISHED = {  # accuracy: private, not private; then ECE and MCE: private, not private
    ("sgld", "mlp", "gaussian"): (0.90, 0.95, 0.007, 0.175, 0.035, 0.175),
    ("sgld", "mlp", "laplace"): (0.89, 0.90),
    ("sgld", "mlp", "none"): (None, None, 0.126, 0.465, 0.008, 0.289),
    ("bbp", "mlp", "gaussian"): (0.80, 0.97, 0.204, 0.641, 0.024, 0.052),
    ("bbp", "mlp", "laplace"): (0.81, 0.98),
    ("bbp", "mlp", "none"): (None, None, 0.167, 0.141, 0.166, 0.166),
    ("mcd", "mlp", "gaussian"): (0.78, 0.98, 0.008, 0.080, 0.030, 0.041),
    ("mcd", "mlp", "none"): (None, None, 0.078, 0.225, 0.002, 0.725),
    ("sgd", "mlp", "none"): (0.77, 0.97, 0.106, 0.625, 0.005, 0.299),
    ("sgd", "mlp", "gaussian"): (None, None, 0.013, 0.089, 0.016, 0.139),
    ("sgld", "cnn", "gaussian"): (0.95, 0.96, 0.003, 0.775, 0.001, 0.011),
    ("sgld", "cnn", "laplace"): (0.89, 0.89),
    ("sgld", "cnn", "none"): (None, None, 0.043, 0.371, 0.006, 0.219),
    ("mcd", "cnn", "gaussian"): (0.77, 0.97, 0.001, 0.275, 0.030, 0.325),
    ("mcd", "cnn", "none"): (None, None, 0.033, 0.230, 0.003, 0.225),
    ("sgd", "cnn", "none"): (0.95, 0.99, 0.037, 0.365, 0.014, 0.325),
    ("sgd", "cnn", "gaussian"): (None, None, 0.005, 0.391, 0.002, 0.059),
    ("sgld", "scattering", "gaussian"): (None, None),
}
ERRORS = {"sgld": (0.510, 0.523), "bbp": (1.276, 0.562), "mcd": (0.682, 0.591)}


def markdown(results: dict[str, Any]) -> str:
    """All tables; a dash where nothing was run, or nothing published."""
    return "\n".join([*_digits(results["digits"]), "", *_regression(results["regression"])]) + "\n"


def _digits(found: dict[str, Any]) -> list[str]:
    lines = [
        "## Tables 2 to 4: MNIST, medians over seeds (published in brackets)",
        "",
        "| Method | Network | Prior | Accuracy | ECE | MCE | MCE (20 up) | Open: accuracy | ECE | MCE |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (method, network, prior), published in PUBLISHED.items():
        printed = (*published, *[None] * (6 - len(published)))
        ours = [found.get(f"{method}-{network}-{prior}-{word}", {}) for word in ("private", "open")]
        if not any(ours):
            continue
        cells = [
            _cell(ours[0].get("accuracy"), printed[0]),
            _cell(ours[0].get("ece"), printed[2]),
            _cell(ours[0].get("mce"), printed[3]),
            _cell(ours[0].get("mce_20"), None),
            _cell(ours[1].get("accuracy"), printed[1]),
            _cell(ours[1].get("ece"), printed[4]),
            _cell(ours[1].get("mce"), printed[5]),
        ]
        lines.append(f"| {NAMES[method]} | {network} | {PRIORS[prior]} | " + " | ".join(cells) + " |")
    lines += ["", "Epsilon at delta 1e-5 of every run, by three accountants:", ""]
    lines += [f"- {name} ({one['seeds']} seeds): {one['accounts']}" for name, one in sorted(found.items())]
    return lines


def _regression(found: dict[str, Any]) -> list[str]:
    lines = [
        "## Table 5: heteroscedastic regression, medians over simulations (published in brackets)",
        "",
        "The floor is the error of the process itself. Published numbers stand beside both ranges of x.",
        "",
        "| Method | Range of x | MSE | Floor | Coverage of 90 % | MSE, not private |",
        "|---|---|---|---|---|---|",
    ]
    for method, (private, opened) in ERRORS.items():
        for name in ("paper", "notebook"):
            ours = [found.get(f"{method}-{name}-{word}", {}) for word in ("private", "open")]
            cells = [
                _cell(ours[0].get("median_mse"), private),
                _cell(ours[0].get("median_floor"), None),
                _cell(ours[0].get("median_coverage_90"), None),
                _cell(ours[1].get("median_mse"), opened),
            ]
            lines.append(f"| {NAMES[method]} | {name} | " + " | ".join(cells) + " |")
    lines += ["", "Epsilon at delta 1/250:", ""]
    lines += [f"- {cell}: {one['accounts']}" for cell, one in sorted(found.items())]
    return lines


def _cell(ours: float | None, published: float | None) -> str:
    printed = "" if published is None else f" ({published:g})"
    return ("-" if ours is None else f"{ours:.4f}") + printed
