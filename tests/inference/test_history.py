"""Labelled history: steps, locations and readings, and the errors of invalid inputs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anabranch.errors import DataError
from anabranch.inference.history import make_history


def table(value: str, rows: list[tuple[Any, Any, Any]]) -> pa.Table:
    names = ("tag", value, "t")
    types = {} if rows else {"tag": pa.string(), value: pa.string(), "t": pa.int64()}
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table({name: pa.array(column, types.get(name)) for name, column in zip(names, columns, strict=True)})


def truth(*rows: tuple[Any, Any, Any]) -> pa.Table:
    return table("location", list(rows))


def readings(*rows: tuple[Any, Any, Any]) -> pa.Table:
    return table("reader", list(rows))


def test_names_are_sorted_and_keys_have_the_same_codes_in_both_tables() -> None:
    history = make_history(
        truth(("b", "lab", 0), ("a", "hall", 0), ("a", "lab", 1)), readings(("a", "west", 1), ("b", "east", 0))
    )
    assert (history.locations, history.readers) == (("hall", "lab"), ("east", "west"))
    assert (history.n_keys, history.n_silent) == (2, 1)
    location = {(k, s): history.locations[c] for k, s, c in rows_of(history.truth)}
    reader = {(k, s): history.readers[c] for k, s, c in rows_of(history.readings)}
    assert {reader[step]: location[step] for step in reader} == {"west": "lab", "east": "lab"}


def rows_of(labelled: Any) -> list[tuple[int, int, int]]:
    return list(zip(labelled.key.tolist(), labelled.step.tolist(), labelled.code.tolist(), strict=True))


def test_null_is_neither_a_location_nor_a_reading() -> None:
    history = make_history(
        truth(("a", "hall", 0), ("a", None, 1), ("a", "hall", 2)), readings(("a", None, 0), ("a", "east", 2))
    )
    assert history.truth.step.tolist() == [0, 2]
    assert (history.readings.step.tolist(), history.n_silent) == ([2], 1)


def test_readings_of_unknown_steps_and_of_other_keys_are_ignored() -> None:
    history = make_history(
        truth(("a", "hall", 0)), readings(("a", "east", 0), ("a", "east", 7), ("b", "east", 0), ("a", "east", 0))
    )
    assert len(history.readings.key) == 2, "duplicates are kept; fitting counts them once"


def test_a_step_has_the_location_at_which_it_begins() -> None:
    rows = [("a", location, t) for t, location in enumerate(["hall", "lab", "lab", "hall", "hall", "lab"])]
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
    ("truth_table", "reading_table", "step", "message"),
    [
        (truth(), readings(("a", "east", 0)), 1, "the truth has no locations; check the input"),
        (truth(("a", "hall", 0)), readings(), 1, "there are no readings; check the input"),
        (truth(("a", "hall", 0)), readings(("b", "east", 0)), 1, "have no key in common; check the key columns"),
        (truth(("a", "hall", 0)), readings(("a", "east", 1)), 1, "no reading is at a step with a known location"),
        (truth(("a", "hall", 0), ("a", "lab", 0)), readings(("a", "east", 0)), 1, "^a has two locations at 0; keep"),
        (truth(("a", "", 0)), readings(("a", "east", 0)), 1, "a location is an empty text; remove such rows"),
        (
            truth((1, "hall", 0)),
            readings(("a", "east", 0)),
            1,
            "the keys of the truth are int64, those of the readings string; use one type",
        ),
        (truth(("a", "hall", 0)), readings(("a", "east", 0)), 0.5, "the step is 0.5, but the times are integers"),
        (
            truth(("a", "hall", datetime(2026, 3, 2, tzinfo=UTC))),
            readings(("a", "east", 0)),
            1,
            "the times of the truth are timestamps, those of the readings integers; use one type",
        ),
    ],
)
def test_an_unusable_history_is_an_error_of_one_line(
    truth_table: pa.Table, reading_table: pa.Table, step: float, message: str
) -> None:
    with pytest.raises(DataError, match=message) as raised:
        make_history(truth_table, reading_table, step)
    assert "\n" not in str(raised.value)
