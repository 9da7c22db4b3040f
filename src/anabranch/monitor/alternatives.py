"""The alternatives of a query: choices of one interval of allowed numbers per form, with all bounds that they imply."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import inf, isfinite

from anabranch.monitor.numbers import Interval, Numbers

#: A value by its index, and the value that is subtracted from it; the second is -1 for a single value.
Form = tuple[int, int]
#: An upper bound: the number, and whether it is strict.
_Bound = tuple[Fraction | float, bool]
#: Stands for the number 0, with which a single value is compared.
_ZERO = -1


def all_choices(allowed: Mapping[Form, Numbers]) -> Iterator[dict[Form, Interval]]:
    """Every choice of one interval per form."""
    for choice in product(*allowed.values()):
        yield dict(zip(allowed, choice, strict=True))


def closed_choices(allowed: Mapping[Form, Numbers]) -> Iterator[dict[Form, Interval]]:
    """Every consistent choice of one interval per form, with the implied bounds of other forms.

    True values within the errors satisfy all constraints if and only if every implied bound, widened by the errors of
    its values, holds for the predictions. Implied bounds are shortest paths, in the decimals of the query: 0.1 and 0.7
    imply 0.8, while the sum of the doubles is smaller.
    """
    for choice in all_choices(allowed):
        nodes = [_ZERO, *sorted({value for form in choice for value in form if value >= 0})]
        bound: dict[tuple[int, int], _Bound] = {(i, j): (0 if i == j else inf, False) for i in nodes for j in nodes}
        for (u, v), interval in choice.items():
            bound[u, v] = _tighter(bound[u, v], (_decimal(interval.high), interval.high_open))
            bound[v, u] = _tighter(bound[v, u], (_decimal(-interval.low), interval.low_open))
        for k, i, j in product(nodes, repeat=3):
            first, second = bound[i, k], bound[k, j]
            bound[i, j] = _tighter(bound[i, j], (first[0] + second[0], first[1] or second[1]))
        if all(bound[i, i] == (0, False) for i in nodes):
            yield dict(_bounded_forms(nodes, bound, _connected(choice)))


def _connected(forms: Iterable[Form]) -> dict[int, int]:
    """For each value, the smallest value that differences connect with it."""
    least = {value: value for form in forms for value in form}
    for u, v in [form for form in forms if form[1] >= 0] * len(least):
        least[u] = least[v] = min(least[u], least[v])
    return least


def _decimal(number: float) -> Fraction | float:
    """A number as it is written, exactly."""
    return Fraction(repr(number)) if isfinite(number) else number


def _tighter(one: _Bound, other: _Bound) -> _Bound:
    """The tighter of two upper bounds."""
    return min(one, other, key=lambda bound: (bound[0], not bound[1]))


def _bounded_forms(
    nodes: Sequence[int], bound: Mapping[tuple[int, int], _Bound], connected: Mapping[int, int]
) -> Iterator[tuple[Form, Interval]]:
    """The bounded forms: values, and differences of connected values with the smaller number first."""
    for u, v in product(nodes, repeat=2):
        if u == _ZERO or (v != _ZERO and (u >= v or connected[u] != connected[v])):
            continue
        (high, high_open), (low, low_open) = bound[u, v], bound[v, u]
        if high < inf or low < inf:
            yield (u, v), Interval((float(-low), int(low_open)), (float(high), int(not high_open)))
