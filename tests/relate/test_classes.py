"""The classes of open segments: the 13 relations by their definitions, and outcomes by enumeration.

Positions are relative to the events of the other entity, as in the kernel: 2x is after x of them, 2x - 1 is at the same
time as the x-th.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.relate import RELATIONS, enough, related
from tests.relate.kernels import bits
from tests.relate.strategies import unions

from anabranch.relate import kernel
from anabranch.relate.kernel import Classes
from anabranch.relate.query import COMPOSITE, SIMPLE


def test_relation_of_returns_the_relation_whose_definition_holds() -> None:
    intervals = list(itertools.combinations(range(-3, 5), 2))
    seen = set()
    for x, y in itertools.product(intervals, repeat=2):
        number = kernel.relation_of(*x, *y)
        assert [SIMPLE[number]] == [name for name, holds in RELATIONS.items() if holds(*x, *y)]
        seen.add(number)
    assert seen == set(range(13))


def tables(n_events: int, inner: int | None, relations: frozenset[str], fails: bool) -> Classes:
    n = n_events // 2
    least = n if inner is None else inner
    return Classes(None, None, 0, *kernel.segment_classes(np.arange(n + 1), least, n, bits(*relations), fails))


def is_hit(start: int, end: int, n_events: int, inner: int | None, relations: frozenset[str], fails: bool) -> bool:
    """Whether a segment between two positions is a hit, by the definitions."""
    others = [(4 * number + 1, 4 * number + 3) for number in range(n_events // 2)]
    count = sum(related((start, end), other, relations) for other in others)
    return enough(count, inner, len(others)) != fails


def classes_of(classes: Classes, start: int, n_events: int) -> dict[int, int]:
    """The class of a segment that began at a position, by the number of events that have happened."""
    row = (start + 1) // 2
    class_of = {row: int(classes.begun_tie[row - 1] if start % 2 else classes.begun[row])}
    for happened in range(row, n_events):
        class_of[happened + 1] = int(classes.after[happened, class_of[happened]])
    return class_of


@given(
    st.sampled_from([2, 4, 6, 10]), st.sampled_from([None, 1, 2, 3, 7]), unions, st.booleans(),
)  # fmt: skip
def test_classes_are_the_possible_outcomes_of_segments(
    n_events: int, inner: int | None, relations: frozenset[str], fails: bool
) -> None:
    classes = tables(n_events, inner, relations, fails)
    query = (n_events, inner, relations, fails)
    outcomes_by_class: dict[tuple[int, int], set[tuple[bool, ...]]] = {}
    for start in range(2 * n_events + 1):
        for happened, number in classes_of(classes, start, n_events).items():
            assert number < classes.count[happened]
            assert classes.hit[happened, number] == is_hit(start, 2 * happened, *query)
            if happened < n_events:
                assert classes.hit_tie[happened, number] == is_hit(start, 2 * happened + 1, *query)
            ends = range(2 * happened, 2 * n_events + 1)
            outcome = tuple(is_hit(start, end, *query) for end in ends)
            outcomes_by_class.setdefault((happened, number), set()).add(outcome)
    # All segments of a class have the same outcome for every end, and no two classes have the same outcomes.
    assert all(len(outcomes) == 1 for outcomes in outcomes_by_class.values())
    for happened in range(n_events + 1):
        outcomes_of_row = [tuple(outcomes) for (row, _), outcomes in outcomes_by_class.items() if row == happened]
        assert len(outcomes_of_row) == len(set(outcomes_of_row)) == classes.count[happened]


@pytest.mark.parametrize(
    "relation", ["INTERSECTS", "STARTS BEFORE", "STARTS AFTER", "ENDS BEFORE", "ENDS AFTER", "PRECEDES", "CONTAINS"]
)
def test_most_queries_need_few_classes(relation: str) -> None:
    """For any number of events; the cost of a sweep depends on it."""
    relations = frozenset(COMPOSITE.get(relation, (relation,)))
    for inner in (1, None):
        assert tables(400, inner, relations, False).count.max() <= 3
