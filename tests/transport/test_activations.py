"""Activations: a reading for each step that they cover, as a loop over all steps finds them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.columns.times import TimeKind, encode_times, order_doubles, steps_of
from anabranch.transport import activations
from anabranch.transport.activations import readings_of, spans


def covered(start: Fraction, end: Fraction, step: Fraction) -> list[int]:
    """The steps that share an instant with [start, end), or with the start alone if the end is not later."""
    numbers = range(int(start // step), int(end // step) + 1)
    return [n for n in numbers if n * step <= start < (n + 1) * step or (start < n * step < end)]


@given(
    st.lists(st.tuples(st.integers(-40, 40), st.integers(0, 60)), min_size=1, max_size=5),
    st.sampled_from([1, 4, 7]),
    st.sampled_from(list(TimeKind)),
)
def test_an_activation_has_the_steps_that_it_covers(rows: list[tuple[int, int]], quarters: int, kind: TimeKind) -> None:
    """Times and steps are quarters of the unit, which doubles can represent; integers are whole."""
    unit = Fraction(1) if kind is TimeKind.INTEGER else Fraction(1, 4)
    step = quarters * unit
    scale = 1_000_000 if kind is TimeKind.TIMESTAMP else 1
    starts, ends = ([(since + more) * unit for since, more in pairs] for pairs in (
        [(since, 0) for since, _ in rows], rows,
    ))  # fmt: skip

    def codes(times: list[Fraction]) -> np.ndarray:
        if kind is TimeKind.DOUBLE:
            return order_doubles(np.array([float(time) for time in times]))
        return np.array([int(time * scale) for time in times])

    first, count = spans(codes(starts), codes(ends), float(step), kind)
    expected = [covered(since, until, step) for since, until in zip(starts, ends, strict=True)]
    assert [list(range(one, one + many)) for one, many in zip(first, count, strict=True)] == expected


def test_readings_keep_their_columns_and_have_times_in_their_steps() -> None:
    table = pa.table({"s": ["bed", "door"], "since": [3, 40], "until": [25, 40], "x": [1.5, 2.5]})
    readings, rejected = readings_of(table, "since", "until", 10, TimeKind.INTEGER)
    assert readings.select(["s", "until", "x"]).to_pylist() == [
        {"s": "bed", "until": 3, "x": 1.5},
        {"s": "bed", "until": 10, "x": 1.5},
        {"s": "bed", "until": 20, "x": 1.5},
        {"s": "door", "until": 40, "x": 2.5},
    ]
    assert rejected.num_rows == 0
    steps = steps_of(encode_times(readings["until"], TimeKind.INTEGER), 10, TimeKind.INTEGER)
    assert steps.tolist() == [0, 1, 2, 4]


def test_an_activation_that_is_too_long_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activations, "MOST_STEPS", 5)
    table = pa.table({"since": [0, 0], "until": [5, 6]})
    readings, rejected = readings_of(table, "since", "until", 1, TimeKind.INTEGER)
    assert (readings.num_rows, rejected.to_pylist()) == (5, [{"since": 0, "until": 6}])
