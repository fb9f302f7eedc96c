"""The page of an audit: what was claimed, what attacks measured, and what replay compared."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.report._about import about
from discreet.report._figures import ACCENT, LINE, MUTED, SECOND, figure
from discreet.report._page import Html, Section, element, facts, headline, items, page, paragraph, table
from discreet.report.numbers import downward, nearest, plain, upward

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def write_audit(folder: str | Path, audited: Mapping[str, Any]) -> Path:
    """Write `audit.json` and `audit.html` into a folder, and return the page's path.

    Args:
        folder: made if it is not there.
        audited: `Audited.to_dict()`.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    text = json.dumps(audited, indent=1, sort_keys=True, default=float) + "\n"
    (target / "audit.json").write_text(text, encoding="utf-8")
    written = target / "audit.html"
    written.write_text(render_audit(json.loads(text)), encoding="utf-8")
    return written


def render_audit(audited: Mapping[str, Any]) -> str:
    """The page of an audit, from what audit.json holds."""
    plan = audited["plan"]
    rule = f"{plan['settings']['mechanism']} on {plan['settings']['model']['model']}"
    attacks: Sequence[Mapping[str, Any]] = audited["attacks"]
    return page(
        audited.get("title") or rule,
        kind="An audit of a private plan",
        lead=_lead(audited, rule),
        sections=[
            Section("What attacks measured", "measured", [*_figures(audited), *_attacks(attacks)]),
            Section("What moved under replay", "replay", _replay(audited["replay"])),
            Section("What this shows, and what not", "means", _means(audited)),
            Section("What was audited", "audited", _audited(audited)),
        ],
        footer=[
            paragraph(
                "No data were touched: every attack ran on made-up neighbouring data sets. "
                "This page is a function of audit.json."
            )
        ],
    )


def _lead(audited: Mapping[str, Any], rule: str) -> list[Html]:
    attacks = audited["attacks"]
    best = max(attacks, key=lambda found: math.inf if found["epsilon"] is None else found["epsilon"])
    at = f"at delta {plain(audited['delta'])}"
    verdict = (
        f"Nothing was found that the plan of {rule} excludes."
        if audited["passes"]
        else f"The claim of {rule} does not hold: what was measured is more than it allows."
    )
    runs = sum(found["trials"] for found in attacks)
    return [
        paragraph(element("strong", "Passed. " if audited["passes"] else "Failed. "), verdict),
        headline(
            (_bound(audited["claimed"], upward), f"epsilon claimed, {at}"),
            (_bound(best["epsilon"], downward), f"epsilon measured, at least, {at}"),
            (f"{100 * best['success']:.1f} %", "right: the best guess between two neighbouring data sets"),
            (f"{2 * runs:,}", "runs of the mechanism"),
        ),
    ]


def _figures(audited: Mapping[str, Any]) -> list[Html]:
    attacks = audited["attacks"]
    claimed = [tuple(row) for row in audited["claimed_trade_off"]]

    def trade_off(axes: Axes) -> None:
        x, y = zip(*claimed, strict=True)
        axes.fill_between(x, y, color=LINE, alpha=0.55, linewidth=0)
        axes.plot(x, y, color=MUTED, label="claimed: no attack may come below")
        for k, found in enumerate(attacks):
            wrong, left = zip(*found["curve"], strict=True)
            label = "measured" if len(attacks) == 1 else f"measured, pair {k + 1}"
            axes.plot(wrong, left, color=(ACCENT, SECOND)[k % 2], label=label, linestyle=("-", "--")[k % 2])
        axes.plot([0, 1], [1, 0], color=MUTED, linewidth=0.8, linestyle=":")
        axes.set(xlabel="false positive rate", ylabel="false negative rate", xlim=(0, 1), ylim=(0, 1))
        axes.set_aspect("equal")
        axes.legend(loc="upper right")

    curve = [(d, e) for d, e in audited["claimed_curve"] if d > 0 and e is not None]
    measured = [
        (d, max(found["measured_curve"][k][1] or 0.0 for found in attacks))
        for k, (d, _) in enumerate(attacks[0]["measured_curve"])
        if d > 0
    ]

    def epsilons(axes: Axes) -> None:
        if curve:
            axes.plot(*zip(*curve, strict=True), color=MUTED, label="claimed, at most")
        axes.plot(*zip(*measured, strict=True), color=ACCENT, marker="o", ms=3.5, label="measured, at least")
        axes.set_xscale("log")
        axes.set(xlabel="delta", ylabel="epsilon")
        axes.set_ylim(bottom=0)
        axes.legend(loc="best")

    return [
        figure(
            trade_off,
            caption="The trade-off between the two errors of an attacker who must tell two neighbouring data "
            "sets apart. The shaded region is what the claim excludes; the dotted line is a guess.",
            description="False negative rate against false positive rate: the curve of the claim, and "
            "above it the measured curves of the attacks.",
            width=4.6,
            height=4.2,
        ),
        figure(
            epsilons,
            caption=f"Epsilon as claimed, and the lower bounds of the attacks at confidence "
            f"{attacks[0]['confidence']:g}. What lies between is not known from attacks.",
            description="Epsilon against delta: the claimed curve, and measured lower bounds below it.",
        ),
    ]


def _attacks(attacks: Sequence[Mapping[str, Any]]) -> list[Html]:
    rows = [
        (
            str(k),
            f"{found['trials']:,}",
            f"{100 * found['success']:.1f} %",
            _bound(found["clopper_pearson"], downward),
            _bound(found["credible"], downward),
            _bound(found["epsilon"], downward),
            "yes" if found["passes"] else "no",
        )
        for k, found in enumerate(attacks, 1)
    ]
    columns = (
        "pair",
        "runs each",
        "right",
        "Clopper-Pearson",
        "credible",
        "epsilon at least",
        "within the claim",
    )
    return [
        table("Attacks, each at its own confidence", columns, rows, numbers=(1, 2, 3, 4, 5)),
        items(*(f"Pair {k}: {found['pair']}; {found['attack']}." for k, found in enumerate(attacks, 1))),
    ]


def _replay(replay: Mapping[str, Any]) -> list[Html]:
    found: list[Html] = [
        paragraph(
            f"{replay['pairs']} pairs of neighbouring data sets were run with the same randomness. What may "
            "differ is what the record changes in the statistics below, by no more than declared."
        )
    ]
    if replay["moved"]:
        rows = [
            (name, nearest(measured, 5), nearest(declared, 5), "yes" if passes else "no")
            for name, measured, declared, passes in replay["moved"]
        ]
        columns = ("statistic", "moved", "declared", "within")
        found.append(table("Sensitivities", columns, rows, numbers=(1, 2)))
    if replay["undeclared"]:
        found.append(
            paragraph("No statistic of this mechanism is declared: its control flow alone was compared.")
        )
    if replay["flow"]:
        found += [paragraph("Depends on a record, and is not in the guarantee:"), items(*replay["flow"])]
    elif not replay["disclosed"]:
        found.append(
            paragraph(
                "Nothing else depended on a record: not the shapes of what is published, nor how much "
                "randomness was read, nor the evidence, nor whether there was an error."
            )
        )
    if replay["disclosed"]:
        found += [
            paragraph("Depends on a record, as is known of this mechanism:"),
            items(*replay["disclosed"]),
        ]
    return found


def _means(audited: Mapping[str, Any]) -> list[Html]:
    late = [] if audited["complete"] else ["Time was up before all runs were made; those made in time count."]
    return [
        items(
            "A lower bound above the claim would refute the claim. One below it proves nothing: another "
            "pair, a better attack or more runs may find more. The proof of the guarantee is elsewhere.",
            "Each lower bound is wrong with probability "
            f"{plain(1 - audited['attacks'][0]['confidence'])} at most. It holds for these two data "
            "sets, and so for the mechanism.",
            "The credible bound is a Bayesian statement under Jeffreys' priors, shown for comparison; it "
            "decides nothing.",
            "Time, memory and what the machine writes elsewhere were not attacked, nor the last bits of "
            "floating-point numbers.",
            *late,
        )
    ]


def _audited(audited: Mapping[str, Any]) -> list[Html]:
    plan = audited["plan"]
    known = about(plan["settings"]["mechanism"])
    size = "private" if plan["size"] is None else f"{plan['size']:,}, public"
    chosen = [
        (name.replace("_", " "), plain(value) if isinstance(value, int | float) else str(value))
        for name, value in plan["parameters"].items()
    ]
    versions = ", ".join(f"{name} {number}" for name, number in audited["versions"].items())
    return [
        *([paragraph(known.sentence)] if known else []),
        facts(
            [
                ("mechanism", plan["settings"]["mechanism"]),
                ("model", plan["settings"]["model"]["model"]),
                ("records", size),
                *chosen,
                ("time", f"{nearest(audited['minutes'])} minutes on {audited['processes']} processes"),
                ("plan, SHA-256", audited["plan_hash"]),
                ("versions", versions),
            ]
        ),
    ]


def _bound(value: float | None, rounded: Any) -> str:
    return "none" if value is None else rounded(value)
