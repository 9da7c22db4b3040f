"""Labelled history: what counts as a step, as a location and as a reading, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anabranch.errors import DataError
from anabranch.inference.history import make_history


def table(value: str, rows: list[tuple[Any, Any, Any]]) -> pa.Table:
    key, told, t = zip(*rows, strict=True) if rows else ((), (), ())
    types = {} if rows else {"tag": pa.string(), value: pa.string(), "t": pa.int64()}
    return pa.table(
        {name: pa.array(column, types.get(name)) for name, column in (("tag", key), (value, told), ("t", t))}
    )


def truth(*rows: tuple[Any, Any, Any]) -> pa.Table:
    return table("location", list(rows))


def readings(*rows: tuple[Any, Any, Any]) -> pa.Table:
    return table("reader", list(rows))


def test_names_are_in_order_and_keys_are_the_same_on_both_sides() -> None:
    history = make_history(
        truth(("b", "lab", 0), ("a", "hall", 0), ("a", "lab", 1)), readings(("a", "west", 1), ("b", "east", 0))
    )
    assert (history.locations, history.readers) == (("hall", "lab"), ("east", "west"))
    assert (history.n_keys, history.n_silent) == (2, 1)
    placed = {(k, s): history.locations[c] for k, s, c in rows_of(history.truth)}
    seen = {(k, s): history.readers[c] for k, s, c in rows_of(history.readings)}
    assert {seen[at]: placed[at] for at in seen} == {"west": "lab", "east": "lab"}


def rows_of(labelled: Any) -> list[tuple[int, int, int]]:
    return list(zip(labelled.key.tolist(), labelled.step.tolist(), labelled.code.tolist(), strict=True))


def test_nothing_is_neither_a_place_nor_a_reading() -> None:
    history = make_history(
        truth(("a", "hall", 0), ("a", None, 1), ("a", "hall", 2)), readings(("a", None, 0), ("a", "east", 2))
    )
    assert history.truth.step.tolist() == [0, 2]
    assert (history.readings.step.tolist(), history.n_silent) == ([2], 1)


def test_readings_of_unknown_steps_and_of_other_keys_are_passed_over() -> None:
    history = make_history(
        truth(("a", "hall", 0)), readings(("a", "east", 0), ("a", "east", 7), ("b", "east", 0), ("a", "east", 0))
    )
    assert len(history.readings.key) == 2, "given twice; fitting counts it once"


def test_a_step_is_where_it_begins() -> None:
    rows = [("a", place, t) for t, place in enumerate(["hall", "lab", "lab", "hall", "hall", "lab"])]
    history = make_history(truth(*reversed(rows)), readings(("a", "east", 5)), step=2)
    assert history.truth.step.tolist() == [0, 1, 2]
    assert [history.locations[code] for code in history.truth.code] == ["hall", "lab", "hall"]
    assert history.readings.step.tolist() == [2]


@pytest.mark.parametrize("half", [0.5, timedelta(milliseconds=500)])
def test_times_may_be_doubles_and_timestamps(half: Any) -> None:
    first = datetime(2026, 3, 2, tzinfo=UTC) if isinstance(half, timedelta) else 0.0
    history = make_history(
        truth(*(("a", "hall", first + n * half) for n in range(4))), readings(("a", "east", first + 3 * half)), step=0.5
    )
    assert np.diff(history.truth.step).tolist() == [1, 1, 1]
    assert history.readings.step[0] == history.truth.step[-1]


@pytest.mark.parametrize(
    ("known", "read", "step", "told"),
    [
        (truth(), readings(("a", "east", 0)), 1, "there are no locations to learn from"),
        (truth(("a", "hall", 0)), readings(), 1, "there are no readings to learn from"),
        (truth(("a", "hall", 0)), readings(("b", "east", 0)), 1, "have no key in common"),
        (truth(("a", "hall", 0)), readings(("a", "east", 1)), 1, "no reading is at a step of which"),
        (truth(("a", "hall", 0), ("a", "lab", 0)), readings(("a", "east", 0)), 1, "^a is in two places at 0$"),
        (truth(("a", "", 0)), readings(("a", "east", 0)), 1, "a location is empty"),
        (truth((1, "hall", 0)), readings(("a", "east", 0)), 1, "differ in their types: int64 and string"),
        (truth(("a", "hall", 0)), readings(("a", "east", 0)), 0.5, "a step of 0.5 does not suit"),
        (
            truth(("a", "hall", datetime(2026, 3, 2, tzinfo=UTC))),
            readings(("a", "east", 0)),
            1,
            "the times of the truth are timestamps, those of the readings integers",
        ),
    ],
)
def test_what_cannot_be_learned_from_is_one_line(known: pa.Table, read: pa.Table, step: float, told: str) -> None:
    with pytest.raises(DataError, match=told) as refused:
        make_history(known, read, step)
    assert "\n" not in str(refused.value)
