"""A query as the kernel needs it: arrays of values, forms, alternatives, and of what is uncertain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.monitor.analysis import EXPECTED, MAY, MUST, Form, MonitorAnalysis
from anabranch.monitor.kernel.chances import Asked
from anabranch.monitor.kernel.highest import PRECISION
from anabranch.monitor.kernel.regions import Frame
from anabranch.monitor.numbers import ALL, Interval, Numbers, essential

_WIDEN = {EXPECTED: 0, MAY: 1, MUST: -1}
#: In the place of a value, the number 0 that a single value is compared with.
_ZERO = -1


@dataclass(frozen=True, slots=True)
class Tables:
    """A query as the kernel takes it; `dims` is how many instants there are to choose."""

    frame: Frame
    asked: Asked
    dims: int

    @property
    def most_corners(self) -> int:
        """More corners than a region can have."""
        links = self.frame.links
        planes = 2 * len(links) + int(links.sum()) + 2 * len(self.asked.forms)
        # A plane adds at most one corner to a polygon, two to a body, and as many as there are planes beyond.
        return {1: 2, 2: planes + 2, 3: 2 * planes}.get(self.dims, planes * planes // 2)


def make_tables(
    analysis: MonitorAnalysis, columns: Sequence[int], spreads: Sequence[float], uncertain: Sequence[bool]
) -> Tables:
    """The tables of a query.

    Parameters
    ----------
    columns : the place of each value among the values of its stream
    spreads : the spread of each value's error, 0 where it is uniform
    uncertain : whether each value has an error above 0
    """
    semantics = analysis.query.semantics
    is_uncertain = {form: uncertain[form[0]] or (form[1] >= 0 and uncertain[form[1]]) for form, _ in analysis.forms}
    exact = semantics == EXPECTED
    matching = {
        form: essential(numbers) if is_uncertain[form] and not exact else numbers for form, numbers in analysis.forms
    }
    cells = list(_closed(matching) if semantics == MAY else _chosen(matching))
    forms = list(dict.fromkeys([*matching, *(form for cell in cells for form in cell)]))
    first, sets = _sets(forms, dict(analysis.forms), is_uncertain)
    groups = [] if semantics == MUST else _groups([form for form in matching if is_uncertain[form]], uncertain)
    operands = len(analysis.operands)
    links = np.zeros((operands, operands), np.bool_)
    for one, other in analysis.links:
        links[one, other] = links[other, one] = True
    owners = [operand for operand, _ in analysis.values]
    frame = Frame(
        np.array(list(zip(owners, columns, strict=True)), np.int64),
        np.array([[_row(cell.get(form, ALL[0])) for form in forms] for cell in cells]).reshape(
            len(cells), len(forms), 4
        ),
        _WIDEN[semantics],
        links,
        float(analysis.query.within),
        # What is found by search may be a little too low.
        analysis.query.threshold - PRECISION,
    )
    asked = Asked(
        np.array(forms, np.int64),
        first,
        sets,
        np.array([[form in group for form in forms] for group in groups], np.bool_).reshape(len(groups), len(forms)),
        np.array(spreads, np.float64),
        np.array([0 if analysis.one_instant else operand for operand in owners], np.int64),
    )
    return Tables(frame, asked, analysis.dims)


def _row(interval: Interval) -> tuple[float, float, float, float]:
    return interval.low, interval.high, float(interval.low_open), float(interval.high_open)


def _sets(forms: Sequence[Form], numbers: Mapping[Form, Numbers], is_uncertain: Mapping[Form, bool]) -> tuple[I64, F64]:
    """The intervals of each form, as the law of its errors sees them; none for those that follow from others."""
    found = [essential(numbers[form]) if is_uncertain.get(form) else () for form in forms]
    first = np.concatenate([[0], np.cumsum([len(each) for each in found])]).astype(np.int64)
    return first, np.array([(each.low, each.high) for own in found for each in own], np.float64).reshape(-1, 2)


def _groups(forms: Sequence[Form], uncertain: Sequence[bool]) -> list[set[Form]]:
    """The uncertain forms, those together that share a value which is uncertain, if only through others."""
    groups: list[tuple[set[Form], set[int]]] = []
    for form in forms:
        own, members = {value for value in form if value >= 0 and uncertain[value]}, {form}
        for group in [each for each in groups if each[1] & own]:
            groups.remove(group)
            members |= group[0]
            own |= group[1]
        groups.append((members, own))
    return [members for members, _ in groups]


# ---------------------------------------------------------------- alternatives


def _chosen(matching: Mapping[Form, Numbers]) -> Iterator[dict[Form, Interval]]:
    """Every choice of an interval for each form."""
    for choice in product(*matching.values()):
        yield dict(zip(matching, choice, strict=True))


def _closed(matching: Mapping[Form, Numbers]) -> Iterator[dict[Form, Interval]]:
    """Every such choice, with what follows from it for other forms; a choice that contradicts itself is none.

    There are truths within the errors of their predictions that satisfy all constraints just where every closed bound,
    widened by the errors of its values, holds of the predictions. Bounds are closed by shortest paths.
    """
    for choice in _chosen(matching):
        nodes = [_ZERO, *sorted({value for form in choice for value in form if value >= 0})]
        bound = {(i, j): (0.0, False) if i == j else (inf, False) for i in nodes for j in nodes}
        for (u, v), each in choice.items():
            bound[u, v] = _tighter(bound[u, v], (each.high, each.high_open))
            bound[v, u] = _tighter(bound[v, u], (-each.low, each.low_open))
        for k, i, j in product(nodes, repeat=3):
            there, back = bound[i, k], bound[k, j]
            bound[i, j] = _tighter(bound[i, j], (there[0] + back[0], there[1] or back[1]))
        if all(bound[i, i] == (0.0, False) for i in nodes):
            yield dict(_bounded(nodes, bound, _connected(choice)))


def _connected(forms: Iterable[Form]) -> dict[int, int]:
    """The values by number, to the least of those that differences connect with them."""
    least = {value: value for form in forms for value in form}
    for u, v in [form for form in forms if form[1] >= 0] * len(least):
        least[u] = least[v] = min(least[u], least[v])
    return least


def _tighter(one: tuple[float, bool], other: tuple[float, bool]) -> tuple[float, bool]:
    """The tighter of two upper bounds, each with whether it is strict."""
    return min(one, other, key=lambda each: (each[0], not each[1]))


def _bounded(
    nodes: Sequence[int], bound: Mapping[tuple[int, int], tuple[float, bool]], connected: Mapping[int, int]
) -> Iterator[tuple[Form, Interval]]:
    """The forms that have a bound: values, and differences of connected ones with the smaller number first."""
    for u, v in product(nodes, repeat=2):
        if u == _ZERO or (v != _ZERO and (u >= v or connected[u] != connected[v])):
            continue
        (high, high_open), (low, low_open) = bound[u, v], bound[v, u]
        if high < inf or low < inf:
            yield (u, v), Interval((-low, int(low_open)), (high, int(not high_open)))
