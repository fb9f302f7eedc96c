"""`discreet account MECHANISM`: the options all mechanisms share, and what is done with the answer."""

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

import discreet as dc
from discreet.cli import compare, numbers, show, tables, words
from discreet.cli.errors import OneLineErrors, RequestError, named_as_typed

if TYPE_CHECKING:
    from discreet.privacy import Guarantee

app = typer.Typer(
    cls=OneLineErrors,
    invoke_without_command=True,
    help="What a mechanism costs in privacy: epsilon at a delta, or delta at an epsilon. Reads no data.",
)

DELTAS = (1e-4, 1e-5, 1e-6, 1e-8)
"""Asked where the user asks for nothing."""


GUESS = "right guess"
"""Title of the column that says how often an attacker's guess can be right."""

_EXTREME = "these parameters are too extreme to compute with; bring them closer to 1"


@app.callback()
def _account(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@dataclass(frozen=True)
class Mechanism:
    """What a subcommand hands over: the guarantee of one run, what it rests on, and its rivals.

    Attributes:
        guarantee: of one run for one person.
        assumes: what must be true of the run, in words.
        comparison: the rows of `--compare`.
        exact: whether the bound is the exact cost of the mechanism, not of a definition.
    """

    guarantee: "Guarantee"
    assumes: str
    comparison: compare.Comparison = compare.routes
    exact: bool = True


@dataclass(frozen=True)
class Answer:
    """One line of the result: an epsilon and its delta."""

    delta: float
    epsilon: float
    route: str | None
    reason: str | None = None

    @property
    def guess(self) -> float:
        """How often a guess between two neighbouring tables can be right, by this line alone."""
        return dc.privacy.attacker_success(self.epsilon, self.delta)


@dataclass(frozen=True)
class Asked:
    """The options every mechanism has."""

    delta: list[float]
    epsilon: list[float]
    repeat: int
    group: int
    compare: bool
    json: bool
    save: Path | None


def _common(
    *,
    delta: Annotated[
        list[float] | None,
        typer.Option(
            parser=numbers.real, metavar="DELTA", help="Ask for epsilon at this delta; may be repeated."
        ),
    ] = None,
    epsilon: Annotated[
        list[float] | None,
        typer.Option(
            parser=numbers.real,
            metavar="EPSILON",
            help="Ask for delta at this epsilon instead; may be repeated.",
        ),
    ] = None,
    repeat: Annotated[
        int, typer.Option(parser=numbers.whole, metavar="K", help="Run it this many times on the same data.")
    ] = 1,
    group: Annotated[
        int, typer.Option(parser=numbers.whole, metavar="K", help="Protect this many people together.")
    ] = 1,
    compare: Annotated[
        bool, typer.Option("--compare", help="Print the published bound, the tight and the exact one.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save the guarantee, for `account compose`.")
    ] = None,
) -> Asked:
    deltas, epsilons = delta or [], epsilon or []
    if deltas and epsilons:
        raise RequestError("--delta and --epsilon were both given; each is the answer to the other, give one")
    for option, value in (("--repeat", repeat), ("--group", group)):
        if value < 1:
            raise RequestError(f"{option} must be a whole number at least 1, got {value}")
    for value in deltas:
        if not 0 <= value < 1:
            raise RequestError(f"--delta must be at least 0 and below 1, got {value:g}; 1e-6 is usual")
    for value in epsilons:
        if value < 0:
            raise RequestError(f"--epsilon must be at least 0, got {value:g}")
    return Asked(deltas, epsilons, repeat, group, compare, json, save)


def mechanism(
    name: str, *, example: str, **renamed: str
) -> Callable[[Callable[..., Mechanism]], Callable[..., None]]:
    """Make a function from parameters to a `Mechanism` a subcommand with the common options.

    Args:
        name: of the subcommand.
        example: a whole command; a test runs it.
        renamed: parameters of the library that have another name here.
    """

    def register(function: Callable[..., Mechanism]) -> Callable[..., None]:
        own = inspect.signature(function).parameters
        shared = inspect.signature(_common).parameters

        @functools.wraps(function)
        def command(**given: Any) -> None:
            where = f"discreet account {name}"
            parameters = {key: given[key] for key in own}
            try:
                asked = _common(**{key: given[key] for key in shared})
                import numpy as np

                with np.errstate(all="ignore"):
                    _run(name, parameters, function(**parameters), asked)
            except RequestError as error:
                raise RequestError(f"{where}: {error}{'' if ';' in str(error) else _see(where)}") from None
            except (ValueError, TypeError) as error:
                said = named_as_typed(str(error), _typed(own) | renamed)
                if " must " not in said and ";" not in said:  # from inside NumPy, not about an argument
                    said = _EXTREME
                raise RequestError(f"{where}: {said}{'' if ';' in said else _see(where)}") from None
            except (ArithmeticError, MemoryError):
                raise RequestError(f"{where}: {_EXTREME}") from None

        parameters = [*own.values(), *shared.values()]
        cast("Any", command).__signature__ = inspect.Signature(parameters)
        command.__annotations__ = {p.name: p.annotation for p in parameters}
        del command.__wrapped__
        app.command(name, epilog=f"Example: {example}")(command)
        return command

    return register


def _see(where: str) -> str:
    return f"; see {where} --help"


def _typed(own: Any) -> dict[str, str]:
    """How the user writes each parameter of the library."""
    typed: dict[str, str] = {}
    for name, parameter in own.items():
        (info,) = parameter.annotation.__metadata__
        is_argument = type(info).__name__ == "ArgumentInfo"
        typed[name] = info.metavar if is_argument else f"--{name.replace('_', '-')}"
    return typed


# --- the answer ------------------------------------------------------------------


def _run(name: str, parameters: dict[str, Any], found: Mechanism, asked: Asked) -> None:
    whole = found.guarantee.repeat(asked.repeat).for_group(asked.group)
    if asked.epsilon:
        answers = [_at_epsilon(whole, epsilon) for epsilon in asked.epsilon]
    else:
        answers = [_at_delta(whole, delta) for delta in asked.delta or _usual_deltas(whole)]
    rows: dict[float, list[compare.Row]] = {}
    if asked.compare:
        for delta in dict.fromkeys(answer.delta for answer in answers if 0 < answer.delta < 1):
            rows[delta] = found.comparison(compare.Run(whole, asked.repeat, asked.group, delta))
    guess, probability = words.attacker([(a.epsilon, a.delta) for a in answers], whole, asked.group)
    if asked.save is not None:
        tables.write_guarantee(asked.save, whole)
    shown = {key: value for key, value in parameters.items() if value is not None and key != "neighbours"}
    if asked.json:
        show.show_json(
            {
                "mechanism": name,
                "parameters": {k: _json_value(v) for k, v in shown.items()},
                "neighbours": str(whole.neighbours),
                "repeat": asked.repeat,
                "group": asked.group,
                "results": [{**vars(answer), "guess": answer.guess} for answer in answers],
                "compare": [
                    {"delta": delta, **vars(row), "times": _times(row, at), "guess": _guess(row, delta)}
                    for delta, at in rows.items()
                    for row in at
                ]
                if asked.compare
                else None,
                "assumes": found.assumes,
                "guess": probability,
                "guarantee": whole.to_dict(),
            }
        )
        return
    pages = [_results(answers, by_epsilon=bool(asked.epsilon))]
    pages += [_comparison(delta, at, found.exact) for delta, at in rows.items()]
    sentences = [("Protects", words.protects(whole, asked.group))]
    routes = dict.fromkeys(answer.route for answer in answers if answer.route)
    sentences += [("Computed by", words.computed_by(route)) for route in routes]
    sentences += [
        ("No epsilon", f"at delta {numbers.plain(a.delta)}: {a.reason}.") for a in answers if a.reason
    ]
    sentences += [("Rests on", found.assumes), ("An attacker", guess)]
    if asked.compare and not rows:
        sentences.append(("Comparison", "bounds are compared at a delta above 0, and there is none here."))
    if asked.save is not None:
        sentences.append(("Saved", f"{asked.save}; add saved guarantees with `discreet account compose`."))
    show.show(show.Page(_heading(name, shown, asked), pages, sentences))


def _at_delta(whole: "Guarantee", delta: float) -> Answer:
    epsilon = compare.epsilon_at(whole, delta)
    reason = words.why_none(whole, delta) if math.isinf(epsilon) else None
    return Answer(delta, epsilon, _route(whole, delta) if math.isfinite(epsilon) else None, reason)


def _at_epsilon(whole: "Guarantee", epsilon: float) -> Answer:
    delta = whole.delta(epsilon)
    return Answer(delta, epsilon, _route(whole, delta) if delta < 1 else None)


def _route(whole: "Guarantee", delta: float) -> str | None:
    routes = compare.by_route(whole, delta)
    return min(routes, key=lambda route: routes[route]) if routes else None


def _usual_deltas(whole: "Guarantee") -> list[float]:
    return [delta for delta in (0.0, *DELTAS) if math.isfinite(compare.epsilon_at(whole, delta))] or list(
        DELTAS
    )


def _best(rows: list[compare.Row]) -> compare.Row | None:
    """The row the others are measured by: the last and sharpest guarantee about the same neighbours."""
    proved = [row for row in rows if row.kind == compare.GUARANTEE and math.isfinite(row.epsilon)]
    return min(reversed(proved), key=lambda row: row.epsilon, default=None)


def _guess(row: compare.Row, delta: float) -> float:
    """What the line says of an attacker, or would say if it were a guarantee."""
    return dc.privacy.attacker_success(max(0.0, row.epsilon), delta)


def _times(row: compare.Row, rows: list[compare.Row]) -> float | None:
    best = _best(rows)
    if best is None or best.epsilon == 0 or not math.isfinite(row.epsilon):
        return None
    return row.epsilon / best.epsilon


# --- the page ----------------------------------------------------------------------


def _heading(name: str, parameters: dict[str, Any], asked: Asked) -> str:
    said = [f"{key.replace('_', ' ')} {_said(value)}" for key, value in parameters.items()]
    said += [f"run {asked.repeat:,} times"] if asked.repeat > 1 else []
    said += [f"groups of {asked.group}"] if asked.group > 1 else []
    return f"{name}: {', '.join(said)}"


def _said(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return " ".join(map(_said, value))
    return numbers.plain(value) if isinstance(value, (int, float)) else str(value)


def _json_value(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_json_value(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _results(answers: list[Answer], *, by_epsilon: bool) -> show.Table:
    delta, epsilon = show.Column("delta", number=True), show.Column("epsilon", number=True)
    more = (show.Column(GUESS, number=True), show.Column("route"))
    rest = [(dc.privacy.percent(a.guess), a.route or "none") for a in answers]
    if by_epsilon:
        rows = [(numbers.plain(a.epsilon), numbers.upward(a.delta)) for a in answers]
        columns = (epsilon, delta, *more)
    else:
        rows = [(numbers.plain(a.delta), numbers.upward(a.epsilon)) for a in answers]
        columns = (delta, epsilon, *more)
    return show.Table("", columns, [(*row, *end) for row, end in zip(rows, rest, strict=True)])


def _comparison(delta: float, rows: list[compare.Row], exact: bool) -> show.Table:
    best = _best(rows)
    cells: list[tuple[str, ...]] = []
    for row in rows:
        times = _times(row, rows)
        ratio = "" if times is None or row.kind == compare.OTHER else f"{numbers.nearest(times)} x"
        guess = dc.privacy.percent(_guess(row, delta))
        cells.append((row.bound, row.kind, numbers.upward(row.epsilon), guess, ratio))
    columns = (
        show.Column("bound"),
        show.Column("kind"),
        show.Column("epsilon", number=True),
        show.Column(GUESS, number=True),
        show.Column("times exact" if exact else "times best", number=True),
    )
    marked = frozenset(k for k, row in enumerate(rows) if row is best)
    return show.Table(f"Compared at delta {numbers.plain(delta)}", columns, cells, marked)
