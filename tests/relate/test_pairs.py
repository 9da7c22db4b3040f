"""What decides about a pair besides the kernel: numbers that cannot be reached, sizes, and certainty."""

from __future__ import annotations

import numpy as np
import pytest
from tests.local import bound_query
from tests.relate.kernels import windows_of

from anabranch.errors import TooLarge
from anabranch.relate.analysis import analyse
from anabranch.relate.pairs import relate

PAIR = np.array([[0, 0]])


def asked(query: str):
    text = f"""
    CREATE STREAM s KEY (k INTEGER) TIME t INTEGER MODEL INTERVALS ORDER seq;
    CREATE QUERY q AS RELATE {query} FROM s AS a, s AS b;
    """
    return analyse(bound_query(text, "q"))


@pytest.mark.parametrize("query", ["AT LEAST 3000000000 a INTERSECTS SOME b", "ALL a INTERSECTS AT LEAST 3000000000 b"])
def test_more_segments_than_there_are_cost_nothing(query: str) -> None:
    one = windows_of([[(0, 0), (0, 9), (0, 9), (9, 9)]])
    probability, complement = relate(asked(query), False, one, one, PAIR)
    assert (probability.tolist(), complement.tolist()) == ([0.0], [1.0])


def test_what_does_not_fit_is_refused_with_its_size() -> None:
    lost = windows_of([[(0, 0), *[(0, 9)] * 400, (9, 9)]])
    with pytest.raises(TooLarge, match=r"lost 400 and 400 events in a row, .* ask for fewer segments"):
        relate(asked("AT LEAST 201 a INTERSECTS AT LEAST 2 b"), False, lost, lost, PAIR)


def test_what_is_certain_is_exactly_so() -> None:
    """However the lost events lie, seven segments of a meet the one long segment of b."""
    rng = np.random.default_rng(5)
    long = windows_of([[(0, 0), (1000, 1000)]])
    for _ in range(20):
        inside = np.sort(rng.choice(np.arange(1, 999), 8, replace=False)).tolist()
        gaps = zip(inside[:-1], inside[1:], strict=True)
        events = [
            (inside[0], inside[0]),
            *(each for low, high in gaps for each in ((low, high), (low, high), (high, high))),
        ]
        broken = windows_of([events])
        probability, complement = relate(asked("AT LEAST 7 a INTERSECTS SOME b"), False, broken, long, PAIR)
        assert (probability.tolist(), complement.tolist()) == ([1.0], [0.0])


def test_a_long_entity_needs_a_narrow_table() -> None:
    """A row for each of its events and a column for each class: not a column for each event."""
    many = windows_of([[(t, t) for t in range(6000)]])
    probability, _ = relate(asked("AT LEAST 3000 a EQUALS SOME b"), False, many, many, PAIR)
    assert probability.tolist() == [1.0]
