"""What an open segment can still become: the 13 relations by their definitions, and futures by trying every one.

Positions are relative to the events of the other entity, as in the kernel: 2x is after x of them, 2x - 1 with the x-th.
"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.relate import RELATIONS, enough, related
from tests.relate.kernels import bits
from tests.relate.strategies import unions

from anabranch.relate import kernel
from anabranch.relate.kernel import Classes
from anabranch.relate.query import COMPOSITE, SIMPLE


def test_the_relation_of_two_intervals_is_the_one_whose_definition_holds() -> None:
    intervals = list(itertools.combinations(range(-3, 5), 2))
    seen = set()
    for x, y in itertools.product(intervals, repeat=2):
        number = kernel.relation_of(*x, *y)
        assert [SIMPLE[number]] == [name for name, holds in RELATIONS.items() if holds(*x, *y)]
        seen.add(number)
    assert seen == set(range(13))


def tables(n_events: int, inner: int | None, relations: frozenset[str], fails: bool) -> Classes:
    return Classes(None, *kernel.segment_classes(n_events, inner or 0, bits(*relations), fails))


def is_hit(start: int, end: int, n_events: int, inner: int | None, relations: frozenset[str], fails: bool) -> bool:
    """Whether a segment between two positions is a hit, by the definitions alone."""
    others = [(4 * number + 1, 4 * number + 3) for number in range(n_events // 2)]
    count = sum(related((start, end), other, relations) for other in others)
    return enough(count, inner, len(others)) != fails


def classes_of(classes: Classes, start: int, n_events: int) -> dict[int, int]:
    """The class of a segment that began at a position, by the number of events that have happened."""
    row = (start + 1) // 2
    found = {row: int(classes.begun_tie[row - 1] if start % 2 else classes.begun[row])}
    for happened in range(row, n_events):
        found[happened + 1] = int(classes.after[happened, found[happened]])
    return found


@given(
    st.sampled_from([2, 4, 6, 10]), st.sampled_from([None, 1, 2, 3, 7]), unions, st.booleans(),
)  # fmt: skip
def test_classes_are_the_futures_that_segments_can_have(
    n_events: int, inner: int | None, relations: frozenset[str], fails: bool
) -> None:
    classes = tables(n_events, inner, relations, fails)
    query = (n_events, inner, relations, fails)
    futures: dict[tuple[int, int], set[tuple[bool, ...]]] = {}
    for start in range(2 * n_events + 1):
        for happened, number in classes_of(classes, start, n_events).items():
            assert number < classes.count[happened]
            assert classes.hit[happened, number] == is_hit(start, 2 * happened, *query)
            if happened < n_events:
                assert classes.hit_tie[happened, number] == is_hit(start, 2 * happened + 1, *query)
            ends = range(2 * happened, 2 * n_events + 1)
            future = tuple(is_hit(start, end, *query) for end in ends)
            futures.setdefault((happened, number), set()).add(future)
    # Those of one class have one future, and no two classes have the same.
    assert all(len(each) == 1 for each in futures.values())
    for happened in range(n_events + 1):
        own = [tuple(each) for (row, _), each in futures.items() if row == happened]
        assert len(own) == len(set(own)) == classes.count[happened]


@pytest.mark.parametrize("relation", ["INTERSECTS", "STARTS BEFORE", "ENDS AFTER", "PRECEDES", "CONTAINS"])
def test_a_few_classes_do_for_most_queries(relation: str) -> None:
    """However many events there are: the cost of a sweep rests on it."""
    relations = frozenset(COMPOSITE.get(relation, (relation,)))
    for inner in (1, None):
        assert tables(400, inner, relations, False).count.max() <= 3
