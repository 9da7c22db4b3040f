"""Queries as the kernel's tables: variables, bounds of pairs, checks between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from anabranch.arrays import F64, I64
from anabranch.binding.typed import Typed
from anabranch.columns.times import TimeKind
from anabranch.constrain.analysis import ConstrainAnalysis
from anabranch.constrain.comparisons import Check, ColumnOf, Columns, checks_of
from anabranch.constrain.geometry import RADIUS
from anabranch.constrain.kernel import tables as checks
from anabranch.constrain.kernel.checks import straight
from anabranch.constrain.kernel.tables import CHECK, Graph, Table, pair_type, variable_type

#: Windows of time are laid a little wide, because sums of bounds are rounded; the checks themselves are exact.
_SLACK = 1e-12

#: A sum of bounds that misses a whole number by so much was meant to be that number.
_ROUNDING = 1e-3

#: Longer bounds on whole numbers stand for no bound at all.
_FOREVER = 1 << 61


@dataclass(frozen=True, slots=True)
class Lowered:
    """Queries made ready for the kernel.

    Attributes
    ----------
    graph : with bounds in the unit of times
    columns : what the kernel compares besides times and places
    others : for each query the conditions that the kernel cannot decide
    """

    graph: Graph
    columns: tuple[ColumnOf, ...]
    others: tuple[tuple[Typed, ...], ...]


def lower_queries(analyses: Sequence[ConstrainAnalysis], kind: TimeKind) -> Lowered:
    """Queries over streams with one kind of time."""
    columns = Columns()
    first = np.cumsum([0, *(len(each.query.variables) for each in analyses)])
    given: list[Check] = []
    others = []
    for analysis, start in zip(analyses, first, strict=False):
        own, rest = checks_of(analysis, int(start), columns)
        given += own
        others.append(tuple(rest))
    return Lowered(_graph(analyses, first, given, kind), tuple(columns.known), tuple(others))


# ---------------------------------------------------------------- tables


def _graph(analyses: Sequence[ConstrainAnalysis], first: I64, given: Sequence[Check], kind: TimeKind) -> Graph:
    radius = RADIUS if any(_is_geodesic(each) for each in analyses) else 0.0
    variables = _variables(analyses, first, kind)
    pairs, checks_of_pairs = _pairs(analyses, variables, given, kind, radius)
    variables["longest"] = _longest(variables, pairs)
    reach = [each.extent if _bends(each.extent, radius) else inf for each in analyses]
    straight_reach = [straight(each, radius) * (1 + 1e-9) if each < inf else inf for each in reach]
    scale = 1e6 if kind is TimeKind.TIMESTAMP else 1.0
    return Graph(first.astype(np.int64), np.array(straight_reach), variables, pairs, checks_of_pairs, scale, radius)


def _is_geodesic(analysis: ConstrainAnalysis) -> bool:
    return any(stream.declaration.geodesic for stream in analysis.query.streams)


def _variables(analyses: Sequence[ConstrainAnalysis], first: I64, kind: TimeKind) -> Table:
    sizes = np.diff(first)
    variables = np.zeros(first[-1], variable_type(_time_type(kind)))
    variables["query"] = np.repeat(np.arange(len(sizes)), sizes)
    variables["first"], variables["size"] = np.repeat(first[:-1], sizes), np.repeat(sizes, sizes)
    variables["count"] = [variable.count for each in analyses for variable in each.query.variables]
    variables["pair"] = np.concatenate([[0], np.cumsum(variables["size"])[:-1]])
    return variables


def _time_type(kind: TimeKind) -> type:
    return np.float64 if kind is TimeKind.DOUBLE else np.int64


def _pairs(
    analyses: Sequence[ConstrainAnalysis], variables: Table, given: Sequence[Check], kind: TimeKind, radius: float
) -> tuple[Table, Table]:
    """The pairs of each query, row by row, and their checks."""
    pairs = np.zeros(int(variables["size"].sum()), pair_type(_time_type(kind)))
    between = [_between(each, each.times.value) for each in analyses]
    pairs["latest"] = _in_units(np.concatenate([each.ravel() for each in between]), kind)
    pairs["earliest"] = -_in_units(np.concatenate([each.T.ravel() for each in between]), kind)
    ways = np.concatenate([_between(each, each.distances.value).ravel() for each in analyses])
    pairs["near"] = [(straight(way, radius) * (1 + 1e-9)) ** 2 if _bends(way, radius) else inf for way in ways]
    placed = _placed(given, variables)
    pairs["check"], pairs["end"] = np.searchsorted(
        [number for number, _, _ in placed], [range(len(pairs)), range(1, len(pairs) + 1)]
    )
    table = np.zeros(len(placed), CHECK)
    for name in ("what", "how", "value", "left", "right"):
        table[name] = [getattr(check, name) for _, check, _ in placed]
    table["swapped"] = [swapped for _, _, swapped in placed]
    table["limit"] = [straight(max(value, 0.0), radius) ** 2 for value in table["value"]]
    for variable in variables:
        own = pairs[variable["pair"] : variable["pair"] + variable["size"]]
        own["turn"] = np.argsort(own["latest"] >= 0, kind="stable")
    pairs["sure"] = [_sure(table[pair["check"] : pair["end"]], kind) for pair in pairs]
    return pairs, table


def _placed(given: Sequence[Check], variables: Table) -> list[tuple[int, Check, bool]]:
    """The checks by their pairs, each also the other way round, as (pair, check, whether it is swapped)."""
    placed = []
    for check in given:
        start = variables[check.u]["first"]
        placed.append((int(variables[check.u]["pair"] + check.v - start), check, False))
        placed.append((int(variables[check.v]["pair"] + check.u - start), check, True))
    # The cheap ones first: they spare the others.
    return sorted(placed, key=lambda each: (each[0], each[1].what == checks.DISTANCE))


def _sure(own: Table, kind: TimeKind) -> float:
    """The square of a distance within which two events in their window of time pass all checks of their pair; or -1.

    Windows of whole numbers are exact; a bound that is strict is not in them.
    """
    times = (
        np.isin(own["what"], (checks.TIMES, checks.SPAN)) & (own["left"] == checks.END) & (own["right"] == checks.END)
    )
    bounded = times & np.isin(own["how"], (checks.AT_MOST, checks.AT_LEAST)) & (kind is not TimeKind.DOUBLE)
    bounded &= (own["what"] == checks.TIMES) | (own["how"] == checks.AT_MOST)
    near = (own["what"] == checks.DISTANCE) & np.isin(own["how"], (checks.LESS, checks.AT_MOST)) & (own["value"] >= 0)
    if not (bounded | near).all():
        return -1.0
    return float((own["limit"][near] * (1 - 1e-12)).min(initial=inf))


def _bends(way: float, radius: float) -> bool:
    """Whether a distance excludes anything: none on the globe is longer than half of its girth."""
    return way < inf and (radius == 0.0 or way < np.pi * radius)


def _between(analysis: ConstrainAnalysis, closed: F64) -> F64:
    """[u, v]: the most that an event of v may be from one of u, over all their places."""
    variables = list(analysis.query.variables)
    of_place = [variables.index(variable) for variable in analysis.slots]
    most = np.full((len(variables), len(variables)), -inf)
    for i, u in enumerate(of_place):
        for j, v in enumerate(of_place):
            if i != j:
                most[u, v] = max(most[u, v], closed[i, j])
    most[most == -inf] = 0.0
    return most


def _in_units(bounds: F64, kind: TimeKind) -> npt.NDArray[Any]:
    """Bounds as times are measured; doubles are laid a little wide, of whole numbers none more is let in."""
    if kind is TimeKind.DOUBLE:
        return bounds + _SLACK * np.abs(np.where(np.isfinite(bounds), bounds, 0.0))
    units = bounds * (1e6 if kind is TimeKind.TIMESTAMP else 1.0)
    # 0.1 and 0.2 seconds are a little more than 300,000 microseconds, three times 0.1 a little less than 0.3.
    units = np.clip(np.floor(units + _ROUNDING), -float(_FOREVER), float(_FOREVER))
    return units.astype(np.int64)


def _longest(variables: Table, pairs: Table) -> npt.NDArray[Any]:
    """Of each variable, the most that any other event of a solution may be later; before all time for a single one."""
    latest = pairs["latest"].copy()
    alone = variables["count"] == 1
    own = variables["pair"] + np.arange(len(variables)) - variables["first"]
    latest[own[alone]] = -inf if latest.dtype == np.float64 else -_FOREVER
    return np.maximum.reduceat(latest, variables["pair"])
