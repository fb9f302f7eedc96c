"""Interval arithmetic on traced functions: what a function's output can be, whatever its input.

Used to read a density bound off a model. An operation that is not in the table
gives the whole line, so a bound that comes out is proved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Interval = tuple[float, float]
LINE: Interval = (-math.inf, math.inf)


def used_inputs(function: Callable[..., Any], arguments: tuple[Any, ...], of: int | None) -> bool:
    """Whether the output depends on the leaves of argument `of` (None: on any).

    Dependence is by data flow, so it can be said where there is none in value,
    never the other way round.
    """
    import jax
    from jax.interpreters import partial_eval

    closed = jax.make_jaxpr(function)(*arguments)
    _, used = partial_eval.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))
    sizes = [len(jax.tree.leaves(argument)) for argument in arguments]
    if of is None:
        return any(used)
    start = sum(sizes[:of])
    return any(used[start : start + sizes[of]])


def output_intervals(function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[Interval]:
    """An interval for every output, when every input may be any number."""
    import jax

    closed = jax.make_jaxpr(function)(*arguments)
    return _evaluate(closed.jaxpr, closed.consts, [LINE] * len(closed.jaxpr.invars))


def _evaluate(jaxpr: Any, consts: Sequence[Any], inputs: Sequence[Interval]) -> list[Interval]:
    known: dict[Any, Interval] = {}

    def read(variable: Any) -> Interval:
        return _constant(variable.val) if hasattr(variable, "val") else known.get(variable, LINE)

    known.update(zip(jaxpr.invars, inputs, strict=True))
    known.update((v, _constant(c)) for v, c in zip(jaxpr.constvars, consts, strict=True))
    for equation in jaxpr.eqns:
        arguments = [read(v) for v in equation.invars]
        inner = equation.params.get("jaxpr") or equation.params.get("call_jaxpr")
        name = equation.primitive.name
        if inner is not None and name in {"jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call"}:
            results = _evaluate(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), arguments)
        elif name in _RULES:
            results = [_RULES[name](arguments, equation.params)]
        else:
            results = [LINE] * len(equation.outvars)
        known.update(zip(equation.outvars, map(_tidy, results), strict=True))
    return [read(v) for v in jaxpr.outvars]


def _constant(value: Any) -> Interval:
    array = np.asarray(value)
    if array.dtype.kind not in "fiub" or array.size == 0 or np.isnan(array.astype(float)).any():
        return LINE
    return float(array.min()), float(array.max())


def _tidy(interval: Interval) -> Interval:
    low, high = interval
    return LINE if math.isnan(low) or math.isnan(high) else interval


def _monotone(function: Callable[[float], float]) -> Callable[[Sequence[Interval], Any], Interval]:
    def rule(arguments: Sequence[Interval], _: Any) -> Interval:
        return function(arguments[0][0]), function(arguments[0][1])

    return rule


def _same(arguments: Sequence[Interval], _: Any) -> Interval:
    low = min(a[0] for a in arguments)
    return low, max(a[1] for a in arguments)


def _products(first: Interval, second: Interval) -> Interval:
    # 0 * infinity is 0 here: an end that is infinite is never reached.
    values = [0.0 if 0.0 in (a, b) else a * b for a in first for b in second]
    return min(values), max(values)


def _divide(arguments: Sequence[Interval], _: Any) -> Interval:
    (low, high), (bottom, top) = arguments
    if bottom < 0 < top or (bottom == 0 == top):
        return LINE
    inverse = (
        (1 / top if math.isfinite(top) else 0.0) if top else -math.inf,
        (1 / bottom if math.isfinite(bottom) else 0.0) if bottom else math.inf,
    )
    return _products((low, high), inverse)


def _power(arguments: Sequence[Interval], params: Any) -> Interval:
    (low, high), n = arguments[0], params["y"]
    if n < 0:
        return _divide([(1.0, 1.0), _power(arguments, {"y": -n})], None)
    ends = sorted((_pow(low, n), _pow(high, n)))
    return (0.0, ends[1]) if n % 2 == 0 and low < 0 < high else (ends[0], ends[1])


def _pow(base: float, n: int) -> float:
    try:
        return base**n
    except OverflowError:
        return math.inf if base > 0 or n % 2 == 0 else -math.inf


def _exp(x: float) -> float:
    return math.exp(x) if x < 700 else math.inf


def _root(x: float) -> float:
    return math.sqrt(x) if x >= 0 else 0.0


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def _log1p(x: float) -> float:
    return math.log1p(x) if x > -1 else -math.inf


def _expm1(x: float) -> float:
    return math.expm1(x) if x < 700 else math.inf


def _absolute(arguments: Sequence[Interval], _: Any) -> Interval:
    low, high = arguments[0]
    return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


_RULES: dict[str, Callable[[Sequence[Interval], Any], Interval]] = {
    "add": lambda a, _: (a[0][0] + a[1][0], a[0][1] + a[1][1]),
    "sub": lambda a, _: (a[0][0] - a[1][1], a[0][1] - a[1][0]),
    "mul": lambda a, _: _products(a[0], a[1]),
    "div": _divide,
    "neg": lambda a, _: (-a[0][1], -a[0][0]),
    "abs": _absolute,
    "square": lambda a, _: _power(a, {"y": 2}),
    "integer_pow": _power,
    "exp": _monotone(_exp),
    "expm1": _monotone(_expm1),
    "log": _monotone(_log),
    "log1p": _monotone(_log1p),
    "sqrt": _monotone(_root),
    "logistic": _monotone(_logistic),
    "tanh": _monotone(math.tanh),
    "max": lambda a, _: (max(a[0][0], a[1][0]), max(a[0][1], a[1][1])),
    "min": lambda a, _: (min(a[0][0], a[1][0]), min(a[0][1], a[1][1])),
    "clamp": lambda a, _: (min(max(a[1][0], a[0][0]), a[2][1]), max(min(a[1][1], a[2][1]), a[0][0])),
    "select_n": lambda a, _: _same(a[1:], None),
    "concatenate": _same,
    **dict.fromkeys(
        (
            "broadcast_in_dim",
            "reshape",
            "squeeze",
            "slice",
            "transpose",
            "convert_element_type",
            "copy",
            "expand_dims",
            "stop_gradient",
            "reduce_max",
            "reduce_min",
            "rev",
        ),
        lambda a, _: a[0],
    ),
}
