"""Near events and episodes, compared with their definitions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from anabranch.evaluation.matching import Spans, episodes, have_near, merged, table_groups
from tests.oracles import calibration as oracle

SPANS = st.lists(
    st.builds(lambda group, start, length: oracle.Span(group, start, start + length),
              st.integers(0, 2), st.integers(0, 40), st.integers(0, 6)),
    max_size=14,
)  # fmt: skip


def arrays(spans: list[oracle.Span]) -> Spans:
    groups, starts, ends = zip(*spans, strict=True) if spans else ((), (), ())
    return Spans(np.array(groups, np.int64), np.array(starts, float), np.array(ends, float))


@given(SPANS, SPANS, st.integers(0, 5))
def test_near_is_as_defined(rows: list[oracle.Span], others: list[oracle.Span], within: int) -> None:
    expected = [any(oracle.near(row, other, within) for other in others) for row in rows]
    assert have_near(arrays(rows), arrays(others), within).tolist() == expected


@given(SPANS, st.integers(0, 5))
def test_episodes_are_connected_answers(rows: list[oracle.Span], gap: int) -> None:
    numbers = episodes(arrays(rows), gap)
    sets = {frozenset(np.flatnonzero(numbers == number).tolist()) for number in numbers}
    assert sets == oracle.episodes(rows, gap)
    whole = merged(arrays(rows), gap)
    hulls = {(rows[min(one)].group, min(rows[i].start for i in one), max(rows[i].end for i in one)) for one in sets}
    assert set(zip(*(column.tolist() for column in whole), strict=True)) == hulls


def test_groups_of_several_columns_and_types() -> None:
    one = pa.table({"a": [1, 2, 1], "b": ["x", "x", None]})
    other = pa.table({"a": pa.array(["1", "2"]), "b": pa.array(["x", "y"]).dictionary_encode()})
    ours, theirs = table_groups(one, other, ["a", "b"])
    assert len({*ours, *theirs}) == 4
    assert ours[0] == theirs[0], "1 and '1' are compared as text"
    numbers, floats = table_groups(pa.table({"a": [1, 2]}), pa.table({"a": [2.0, 3.0]}), "a")
    assert numbers[1] == floats[0]
