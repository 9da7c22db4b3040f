"""Sets of numbers, asked number by number."""

from __future__ import annotations

import operator

from hypothesis import given
from hypothesis import strategies as st

from anabranch.monitor.numbers import Numbers, common, essential, mirrored, satisfying

OPS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "<>": operator.ne,
}  # fmt: skip
#: Every place where something can change, and one between any two of them.
ASKED = [number / 2 for number in range(-9, 10)]

bounds = st.integers(-4, 4).map(float)
comparisons = st.tuples(st.sampled_from(list(OPS)), bounds, st.booleans())


def has(numbers: Numbers, number: float) -> bool:
    """Whether a number is one of the set."""
    above = [number > each.low or (number == each.low and not each.low_open) for each in numbers]
    below = [number < each.high or (number == each.high and not each.high_open) for each in numbers]
    return any(one and other for one, other in zip(above, below, strict=True))


def holds(comparison: tuple[str, float, bool], number: float) -> bool:
    op, bound, absolute = comparison
    return OPS[op](abs(number) if absolute else number, bound)


@given(st.lists(comparisons, min_size=1, max_size=4))
def test_what_is_left_satisfies_all_comparisons_and_nothing_else_does(asked: list[tuple[str, float, bool]]) -> None:
    left = satisfying(*asked[0])
    for each in asked[1:]:
        left = common(left, satisfying(*each))
    assert [has(left, number) for number in ASKED] == [all(holds(each, number) for each in asked) for number in ASKED]
    assert [has(mirrored(left), -number) for number in ASKED] == [has(left, number) for number in ASKED]
    assert all(one.end < other.begin for one, other in zip(left, left[1:], strict=False))


@given(comparisons, comparisons)
def test_single_numbers_are_not_essential(one: tuple[str, float, bool], other: tuple[str, float, bool]) -> None:
    numbers = common(satisfying(*one), satisfying(*other))
    inside = [number for number in ASKED if number % 1]  # no comparison has its bound there
    assert [has(essential(numbers), number) for number in inside] == [has(numbers, number) for number in inside]
    assert all(each.low_open and each.high_open and each.low < each.high for each in essential(numbers))


def test_nothing_satisfies_what_is_not_known() -> None:
    assert satisfying("<=", None, False) == ()
    assert satisfying("<", -1.0, True) == ()
