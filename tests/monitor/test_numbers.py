"""Sets of numbers, compared number by number."""

from __future__ import annotations

import operator

from hypothesis import given
from hypothesis import strategies as st

from anabranch.monitor.numbers import Numbers, common, essential, mirrored, satisfying

OPS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "<>": operator.ne,
}  # fmt: skip
#: All bounds, and a number between any two of them.
NUMBERS = [number / 2 for number in range(-9, 10)]

bounds = st.integers(-4, 4).map(float)
comparisons = st.tuples(st.sampled_from(list(OPS)), bounds, st.booleans())


def contains(numbers: Numbers, number: float) -> bool:
    """Whether a number is in the set."""
    above = [number > interval.low or (number == interval.low and not interval.low_open) for interval in numbers]
    below = [number < interval.high or (number == interval.high and not interval.high_open) for interval in numbers]
    return any(one and other for one, other in zip(above, below, strict=True))


def holds(comparison: tuple[str, float, bool], number: float) -> bool:
    op, bound, absolute = comparison
    return OPS[op](abs(number) if absolute else number, bound)


@given(st.lists(comparisons, min_size=1, max_size=4))
def test_the_set_is_that_of_all_comparisons(
    drawn_comparisons: list[tuple[str, float, bool]],
) -> None:
    allowed = satisfying(*drawn_comparisons[0])
    for comparison in drawn_comparisons[1:]:
        allowed = common(allowed, satisfying(*comparison))
    assert [contains(allowed, number) for number in NUMBERS] == [
        all(holds(comparison, number) for comparison in drawn_comparisons) for number in NUMBERS
    ]
    assert [contains(mirrored(allowed), -number) for number in NUMBERS] == [
        contains(allowed, number) for number in NUMBERS
    ]
    assert all(one.end < other.begin for one, other in zip(allowed, allowed[1:], strict=False))


@given(comparisons, comparisons)
def test_single_numbers_are_not_essential(one: tuple[str, float, bool], other: tuple[str, float, bool]) -> None:
    numbers = common(satisfying(*one), satisfying(*other))
    inside = [number for number in NUMBERS if number % 1]  # numbers that are not a bound
    assert [contains(essential(numbers), number) for number in inside] == [
        contains(numbers, number) for number in inside
    ]
    assert all(
        interval.low_open and interval.high_open and interval.low < interval.high for interval in essential(numbers)
    )


def test_nothing_satisfies_an_unknown_bound() -> None:
    assert satisfying("<=", None, False) == ()
    assert satisfying("<", -1.0, True) == ()
