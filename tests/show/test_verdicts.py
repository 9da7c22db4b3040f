"""Answers against the truth."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from anabranch.show import print_verdicts, verdicts
from tests.show.answers import HOSTILE, answers, console, drawn, minutes, printed

TRUTH = pa.table({"t": minutes(0, 10, 20, 5), "p": ["ana", "ana", "ana", "ben"]})
SOME = answers(
    [
        (0.25, "ana", 0.6),
        (0.4, "ana", 0.9),
        (10, "ana", 0.3),
        (15, "ana", 0.7),
        (15.25, "ana", 0.8),
        (5, "chloe", 0.5),
        (17, "ana", 0.2),
    ]
)


def test_found_missed_and_false() -> None:
    to = console()
    print_verdicts(SOME, TRUTH, to, group="person")
    assert printed(to) == drawn("""

  person   really   found   missed                false
 ─────────────────────────────────────────────────────────────────
  ana           3       1   09:10:00  0.300       09:15:15  0.800
                            09:20:00  no answer
  ben           1       0   09:05:00  no answer
  chloe         0       0                         09:05:00  0.500

  all           4       1   3                     2
""").join(["\n", "\n"])


def test_verdicts_as_data() -> None:
    judged = verdicts(SOME, TRUTH)
    assert judged.schema.field("t").type == pa.timestamp("us", "UTC")
    assert judged.filter(pa.array([group == "ana" for group in judged["group"].to_pylist()])).to_pylist() == [
        {"group": "ana", "t": minutes(0)[0].as_py(), "verdict": "found", "probability": 0.9},
        {"group": "ana", "t": minutes(10)[0].as_py(), "verdict": "missed", "probability": 0.3},
        {"group": "ana", "t": minutes(15.25)[0].as_py(), "verdict": "false", "probability": 0.8},
        {"group": "ana", "t": minutes(20)[0].as_py(), "verdict": "missed", "probability": None},
    ]


def test_an_answer_tells_the_event_nearest_to_it() -> None:
    table = pa.table({"t": [9.0, 13.0], "probability": [0.6, 0.9]})
    judged = verdicts(table, pa.table({"t": [8.0, 12.0, 15.0]}), within=5)
    assert list(zip(judged["t"].to_pylist(), judged["verdict"].to_pylist(), strict=True)) == [
        (8.0, "found"),
        (12.0, "found"),
        (15.0, "missed"),
    ]


@given(
    st.lists(st.tuples(st.integers(0, 100), st.floats(0, 1)), max_size=12),
    st.lists(st.integers(0, 100), max_size=6, unique=True),
)
def test_every_event_is_judged_once_and_every_believed_answer_counts(
    told: list[tuple[int, float]], events: list[int]
) -> None:
    table = pa.table(
        {"t": pa.array([t for t, _ in told], pa.int64()), "probability": pa.array([p for _, p in told], pa.float64())}
    )
    judged = verdicts(table, pa.table({"t": pa.array(events, pa.int64())}), within=10).to_pylist()
    assert sorted(row["t"] for row in judged if row["verdict"] != "false") == sorted(events)
    for row in judged:
        assert (row["probability"] or 0.0) >= 0.5 or row["verdict"] == "missed"
    for t, p in told:
        if p >= 0.5 and not any(abs(t - event) <= 10 for event in events):
            assert any(row["verdict"] == "false" for row in judged)


def test_long_lists_are_cut_and_hostile_names_are_text() -> None:
    truth = pa.table({"t": minutes(*range(7)), "p": [HOSTILE] * 7})
    to = console(width=120, encoding="ascii")
    print_verdicts(SOME, truth, to, group="[red]who")
    assert "... and 3 more" in printed(to)
    assert "[red]x[/red]\\x1b[31m" in printed(to)
    assert "[red]who" in printed(to)


def test_plain_numbers_as_times() -> None:
    to = console(width=50)
    print_verdicts(pa.table({"t": [3], "probability": [0.9]}), pa.table({"t": [99]}), to, within=1)
    assert "99  no answer   3  0.900" in printed(to)
