"""`discreet audit STUDY`: attack the plan of a study on made-up data, and say what was found."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import describe, numbers, show
from discreet.cli.errors import Exit, RequestError, plainly, refusals
from discreet.cli.plan import STUDY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from discreet.audit import Found
    from discreet.mechanisms import Plan


def plan_of(path: str) -> Plan:
    """The plan of a study file; every process of an audit makes its own."""
    from discreet.study import load

    return load(path).plan()


def audit(
    study: STUDY,
    *,
    trials: Annotated[
        int,
        typer.Option(parser=numbers.whole, metavar="N", help="Runs on each of two neighbouring data sets."),
    ] = 20_000,
    minutes: Annotated[
        float, typer.Option(parser=numbers.real, metavar="M", help="How long the runs may take.")
    ] = 10.0,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where audit.html and audit.json go.")] = Path(
        "audit"
    ),
    processes: Annotated[
        int | None,
        typer.Option(parser=numbers.whole, metavar="N", help="How many at once; by default one per core."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(parser=numbers.whole, metavar="N", help="Make the audit reproducible.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Attack a plan on made-up neighbouring data sets, never on the data, and bound epsilon from below."""
    with refusals("discreet audit"):
        from dataclasses import replace

        from discreet.audit.campaign import campaign
        from discreet.report.audit import write_audit
        from discreet.study import load

        asked = load(study)
        asked.plan()  # refuses here what cannot be planned, not in another process
        with _progress(not json and sys.stderr.isatty()) as told, plainly():
            audited = campaign(
                partial(plan_of, str(study.resolve())),
                trials=trials,
                minutes=minutes,
                delta=asked.privacy.delta or None,
                processes=processes,
                key=seed,
                progress=told,
            )
        audited = replace(audited, about={"title": asked.title, "study": study.name})
        try:
            page = write_audit(out, audited.to_dict())
        except OSError as error:
            raise RequestError(f"{out} cannot be written: {error.strerror or 'no access'}") from None
    if json:
        show.show_json(audited.to_dict())
    else:
        moved = audited.replayed
        flow = "; ".join(moved.flow) or "nothing else depended on a record"
        kept = "within their declared sensitivities" if all(m.passes for m in moved.moved) else "too far"
        sentences = [
            (
                "Verdict",
                "nothing was found that the plan excludes."
                if audited.passes
                else "the claim does not hold: what was measured is more than it allows.",
            ),
            ("Replay", f"{moved.pairs} pairs: statistics moved {kept}; {flow}."),
            ("Data", "none was touched; every attack ran on made-up neighbouring data sets."),
            ("Page", str(page)),
        ]
        if not audited.complete:
            sentences.insert(1, ("Time", f"was up after {minutes:g} minutes; the runs made by then count."))
        show.show(
            show.Page(
                f"audit of {study.name}: {describe.heading(audited.plan)}",
                [_attacks(audited.found)],
                sentences,
            )
        )
    if not audited.passes:
        raise typer.Exit(Exit.VERIFICATION)


def _attacks(found: tuple[Found, ...]) -> show.Table:
    rows = [
        (
            one.pair,
            one.attack,
            f"{one.trials:,}",
            numbers.plain(one.delta),
            numbers.upward(one.claim),
            numbers.downward(one.epsilon),
        )
        for one in found
    ]
    titles = ("pair", "attack", "runs", "delta", "claimed", "at least")
    columns = [show.Column(title, number=k >= 2) for k, title in enumerate(titles)]
    return show.Table(f"Attacks (confidence {found[0].confidence:g} each)", columns, rows)


@contextmanager
def _progress(shown: bool) -> Iterator[Callable[[float], None] | None]:
    """A bar on standard error."""
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("runs", total=1.0)
        yield lambda share: bar.update(task, completed=share)
