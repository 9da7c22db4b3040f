"""Pairs that need no kernel, pairs that are too large, and certain pairs."""

from __future__ import annotations

import numpy as np
import pytest
from tests.local import bound_query
from tests.relate.kernels import windows_of

from anabranch.errors import TooLarge
from anabranch.relate.analysis import analyse
from anabranch.relate.pairs import relate

PAIR = np.array([[0, 0]])


def analysis_of(query: str):
    text = f"""
    CREATE STREAM s KEY (k INTEGER) TIME t INTEGER MODEL INTERVALS ORDER seq;
    CREATE QUERY q AS RELATE {query} FROM s AS a, s AS b;
    """
    return analyse(bound_query(text, "q"))


@pytest.mark.parametrize("query", ["AT LEAST 3000000000 a INTERSECTS SOME b", "ALL a INTERSECTS AT LEAST 3000000000 b"])
def test_more_segments_than_there_are_need_no_kernel(query: str) -> None:
    one = windows_of([[(0, 0), (0, 9), (0, 9), (9, 9)]])
    decided = relate(analysis_of(query), False, one, one, PAIR)
    assert (decided.probability.tolist(), decided.complement.tolist()) == ([0.0], [1.0])


def test_a_pair_that_needs_too_many_weights_is_refused() -> None:
    lost = windows_of([[(0, 0), *[(0, 9)] * 400, (9, 9)]])
    with pytest.raises(TooLarge, match=r"have 400 and 400 consecutive lost events, .*; use a smaller number"):
        relate(analysis_of("AT LEAST 201 a INTERSECTS AT LEAST 2 b"), False, lost, lost, PAIR)


def test_a_certain_pair_has_probability_exactly_1() -> None:
    """Wherever the lost events are, seven segments of a intersect the one long segment of b."""
    rng = np.random.default_rng(5)
    long = windows_of([[(0, 0), (1000, 1000)]])
    for _ in range(20):
        inside = np.sort(rng.choice(np.arange(1, 999), 8, replace=False)).tolist()
        gaps = zip(inside[:-1], inside[1:], strict=True)
        events = [
            (inside[0], inside[0]),
            *(event for low, high in gaps for event in ((low, high), (low, high), (high, high))),
        ]
        broken = windows_of([events])
        decided = relate(analysis_of("AT LEAST 7 a INTERSECTS SOME b"), False, broken, long, PAIR)
        assert (decided.probability.tolist(), decided.complement.tolist()) == ([1.0], [0.0])


def test_the_table_of_a_long_entity_is_narrow() -> None:
    """The table has a row for each event and a column for each class, not a column for each event."""
    many = windows_of([[(t, t) for t in range(6000)]])
    decided = relate(analysis_of("AT LEAST 3000 a EQUALS SOME b"), False, many, many, PAIR)
    assert decided.probability.tolist() == [1.0]
