"""Converts queries to the tables of the kernel: variables, bounds of pairs, and checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from anabranch.arrays import F64, I64, ROUNDING, Bools
from anabranch.binding.typed import Typed
from anabranch.columns.globe import RADIUS
from anabranch.columns.times import TimeKind
from anabranch.constrain.analysis import ConstrainAnalysis
from anabranch.constrain.comparisons import Check, ColumnOf, Columns, checks_of
from anabranch.constrain.kernel import tables
from anabranch.constrain.kernel.checks import straight
from anabranch.constrain.kernel.tables import CHECK, Graph, Table, pair_type, variable_type
from anabranch.constrain.query import BoundCounted

#: Implied bounds on DOUBLE times are widened by this share, because sums of bounds are rounded; the checks decide.
_SLACK = 1e-12

#: A sum of bounds that is below an integer by at most this is rounded up to it.
_ROUNDING = 1e-3

#: Longer bounds on integer times are treated as no bound.
_FOREVER = 1 << 61


@dataclass(frozen=True, slots=True)
class Lowered:
    """Queries as arrays for the kernel.

    Attributes
    ----------
    graph : with bounds in the unit of event times
    columns : the values that the kernel compares, besides times and locations
    others : for each query, the conditions that the kernel does not decide
    """

    graph: Graph
    columns: tuple[ColumnOf, ...]
    others: tuple[tuple[Typed, ...], ...]


def lower_queries(analyses: Sequence[ConstrainAnalysis], kind: TimeKind) -> Lowered:
    """Convert queries over streams with the same type of time."""
    columns = Columns()
    first = np.cumsum([0, *(len(analysis.query.variables) for analysis in analyses)])
    checks: list[Check] = []
    others = []
    for analysis, start in zip(analyses, first, strict=False):
        query_checks, rest = checks_of(analysis, int(start), columns)
        checks += query_checks
        others.append(tuple(rest))
    return Lowered(_graph(analyses, first, checks, kind), tuple(columns.known), tuple(others))


# ---------------------------------------------------------------- tables


def _graph(analyses: Sequence[ConstrainAnalysis], first: I64, checks: Sequence[Check], kind: TimeKind) -> Graph:
    radius = RADIUS if any(analysis.query.is_on_sphere for analysis in analyses) else 0.0
    variables = _variables(analyses, first, kind)
    pairs, check_table = _pairs(analyses, variables, checks, kind, radius)
    awaited = np.array([variable.is_awaited for variable in _operands(analyses)])
    variables["longest"] = _longest(variables, pairs, awaited)
    extents = [analysis.extent if _excludes(analysis.extent, radius) else inf for analysis in analyses]
    reach = [straight(extent, radius) * (1 + 1e-9) if extent < inf else inf for extent in extents]
    scale = 1e6 if kind is TimeKind.TIMESTAMP else 1.0
    return Graph(first.astype(np.int64), np.array(reach), awaited, variables, pairs, check_table, scale, radius)


def _operands(analyses: Sequence[ConstrainAnalysis]) -> list[BoundCounted]:
    """The variables of all queries."""
    return [variable for analysis in analyses for variable in analysis.query.variables]


def _variables(analyses: Sequence[ConstrainAnalysis], first: I64, kind: TimeKind) -> Table:
    sizes = np.diff(first)
    variables = np.zeros(first[-1], variable_type(_time_type(kind)))
    variables["query"] = np.repeat(np.arange(len(sizes)), sizes)
    variables["first"], variables["size"] = np.repeat(first[:-1], sizes), np.repeat(sizes, sizes)
    operands = _operands(analyses)
    variables["count"] = [1 if variable.grows else variable.count for variable in operands]
    variables["pair"] = np.concatenate([[0], np.cumsum(variables["size"])[:-1]])
    return variables


def _time_type(kind: TimeKind) -> type:
    return np.float64 if kind is TimeKind.DOUBLE else np.int64


def _pairs(
    analyses: Sequence[ConstrainAnalysis], variables: Table, checks: Sequence[Check], kind: TimeKind, radius: float
) -> tuple[Table, Table]:
    """The pairs of all queries, and their checks."""
    pairs = np.zeros(int(variables["size"].sum()), pair_type(_time_type(kind)))
    times = [_between(analysis, analysis.times.value) for analysis in analyses]
    pairs["latest"] = _in_units(np.concatenate([bounds.ravel() for bounds in times]), kind)
    pairs["earliest"] = -_in_units(np.concatenate([bounds.T.ravel() for bounds in times]), kind)
    distances = np.concatenate([_between(analysis, analysis.distances.value).ravel() for analysis in analyses])
    pairs["near"] = [
        (straight(distance, radius) * (1 + 1e-9)) ** 2 if _excludes(distance, radius) else inf for distance in distances
    ]
    by_pair = _by_pair(checks, variables)
    pairs["check"], pairs["end"] = np.searchsorted(
        [number for number, _, _ in by_pair], [range(len(pairs)), range(1, len(pairs) + 1)]
    )
    table = np.zeros(len(by_pair), CHECK)
    table["how"] = [tables.OPERATORS.index(check.how) for _, check, _ in by_pair]
    table["value"] = [check.value for _, check, _ in by_pair]
    # Two times are compared with each other as they are; only their difference is rounded.
    table["rounding"] = np.where((table["value"] != 0) & (kind is TimeKind.DOUBLE), ROUNDING, 0.0)
    for name in ("what", "left", "right"):
        table[name] = [_code(getattr(check, name)) for _, check, _ in by_pair]
    table["swapped"] = [swapped for _, _, swapped in by_pair]
    table["limit"] = [straight(max(value, 0.0), radius) ** 2 for value in table["value"]]
    for variable in variables:
        variable_pairs = pairs[variable["pair"] : variable["pair"] + variable["size"]]
        variable_pairs["search_order"] = np.argsort(variable_pairs["latest"] >= 0, kind="stable")
    pairs["sure"] = [_sure(table[pair["check"] : pair["end"]], kind) for pair in pairs]
    return pairs, table


def _by_pair(checks: Sequence[Check], variables: Table) -> list[tuple[int, Check, bool]]:
    """(pair, check, swapped) for each check and both orders of its variables, sorted by pair."""
    by_pair = []
    for check in checks:
        start = variables[check.u]["first"]
        by_pair.append((int(variables[check.u]["pair"] + check.v - start), check, False))
        by_pair.append((int(variables[check.v]["pair"] + check.u - start), check, True))
    # Distances, which are expensive, come last: the other checks may fail first.
    return sorted(by_pair, key=lambda entry: (entry[0], entry[1].what == "DISTANCE"))


def _code(name: int | str) -> int:
    """The number of a name in the kernel; numbers stand for themselves."""
    return int(getattr(tables, name)) if isinstance(name, str) else name


def _sure(checks: Table, kind: TimeKind) -> float:
    """The square of a distance within which two events pass all checks of their pair if their times are in bounds.

    -1 if there is none. The bounds on integer times are exact, but do not include strict bounds.
    """
    what, how = checks["what"], checks["how"]
    times = (
        np.isin(what, (tables.TIMES, tables.SPAN)) & (checks["left"] == tables.END) & (checks["right"] == tables.END)
    )
    bounded = times & np.isin(how, (tables.AT_MOST, tables.AT_LEAST)) & (kind is not TimeKind.DOUBLE)
    bounded &= (what == tables.TIMES) | (how == tables.AT_MOST)
    near = (what == tables.DISTANCE) & np.isin(how, (tables.LESS, tables.AT_MOST)) & (checks["value"] >= 0)
    if not (bounded | near).all():
        return -1.0
    return float((checks["limit"][near] * (1 - 1e-12)).min(initial=inf))


def _excludes(distance: float, radius: float) -> bool:
    """Whether a bound on a distance excludes anything: on the globe, no distance exceeds half of the circumference."""
    return distance < inf and (radius == 0.0 or distance < np.pi * radius)


def _between(analysis: ConstrainAnalysis, closed: Mapping[tuple[int, int], float]) -> F64:
    """[u, v]: the loosest bound from an event of variable u to one of variable v, over all their slots."""
    variables = list(analysis.query.variables)
    slot_variables = [variables.index(variable) for variable in analysis.slots]
    most = np.full((len(variables), len(variables)), -inf)
    for i, u in enumerate(slot_variables):
        for j, v in enumerate(slot_variables):
            if i != j:
                most[u, v] = max(most[u, v], closed[i, j])
    most[most == -inf] = 0.0
    return most


def _in_units(bounds: F64, kind: TimeKind) -> npt.NDArray[Any]:
    """Bounds in the unit of event times; widened a little for DOUBLE, rounded down to integers for other times."""
    if kind is TimeKind.DOUBLE:
        return bounds + _SLACK * np.abs(np.where(np.isfinite(bounds), bounds, 0.0))
    units = bounds * (1e6 if kind is TimeKind.TIMESTAMP else 1.0)
    # 0.1 + 0.2 seconds are a little more than 300,000 microseconds, 0.1 + 0.7 a little less than 800,000.
    units = np.clip(np.floor(units + _ROUNDING), -float(_FOREVER), float(_FOREVER))
    return units.astype(np.int64)


def _longest(variables: Table, pairs: Table, awaited: Bools) -> npt.NDArray[Any]:
    """For each variable, the longest time for which its events are needed: `longest` of `variable_type`.

    The pair of a variable with itself counts only if it has several events.
    """
    latest = pairs["latest"].copy()
    never = -inf if latest.dtype == np.float64 else -_FOREVER
    with_itself = variables["pair"] + np.arange(len(variables)) - variables["first"]
    has_one = (variables["count"] == 1) & ~awaited
    latest[with_itself[has_one | (variables["count"] == 0)]] = never
    # The second variable of each pair.
    second = np.arange(len(pairs)) + np.repeat(variables["first"] - variables["pair"], variables["size"])
    is_absent = variables["count"][second] == 0
    longest = np.maximum.reduceat(np.where(is_absent, never, latest), variables["pair"])
    if awaited.any():
        # A solution waits after each of its events; two variables with NOT are not compared.
        waits = awaited[second] & np.repeat(variables["count"] > 0, variables["size"])
        longest_waits = np.maximum.reduceat(np.where(waits, np.maximum(latest, 0), 0), variables["pair"])
        longest_waits = np.maximum.reduceat(longest_waits, np.unique(variables["first"]))
        longest += np.where(awaited, longest_waits[variables["query"]], 0)
    return longest
