"""The table of answers, character by character."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.charts import answers_table, print_answers
from anabranch.charts.table import bar
from tests.charts.answers import HOSTILE, answers, console, drawn, minutes, printed

ANSWERS = answers([(0, "ana", 0.25), (5, "ben", 1.0), (5.5, "ana", 1e-6), (60, "ana", 0.75)])


def test_table() -> None:
    to = console()
    print_answers(ANSWERS, to, title="coffee", limit=3)
    assert printed(to) == drawn("""
coffee

  t (UTC)               p     probability         method
 ────────────────────────────────────────────────────────
  2026-03-02 09:00:00   ana    0.250 ██▌          exact
  2026-03-02 09:05:00   ben    1.000 ██████████   exact
  2026-03-02 09:05:30   ana   <0.001 ▏            exact

… and 1 more
""")


def test_table_in_ascii() -> None:
    to = console(encoding="ascii")
    print_answers(ANSWERS, to, limit=2)
    assert printed(to) == drawn("""
+---------------------+-----+-------------------+--------+
| t (UTC)             | p   | probability       | method |
+---------------------+-----+-------------------+--------+
| 2026-03-02 09:00:00 | ana |  0.250 ##         | exact  |
| 2026-03-02 09:05:00 | ben |  1.000 ########## | exact  |
+---------------------+-----+-------------------+--------+
... and 2 more
""")


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_hostile_values_are_escaped(encoding: str) -> None:
    table = answers([(0, HOSTILE, 0.5)]).append_column(pa.field(f"a[bold]\x1b[2J{'y' * 99}", pa.int64()), [[1]])
    to = console(width=240, encoding=encoding, force_terminal=True, color_system=None)
    print_answers(table, to, title="[blink]t\r")
    assert "\x1b" not in printed(to)
    assert "[red]x[/red]\\x1b[31m\\n</text><script>alert(1)" in printed(to)
    assert "[blink]t\\r" in printed(to)
    assert "a[bold]\\x1b[2Jyyy" in printed(to)
    assert "y" * 99 not in printed(to)


def test_a_notebook_gets_hostile_values_escaped() -> None:
    html = answers_table(answers([(0, "<script>alert(1)</script>", 0.5)]))._repr_mimebundle_(None, None)["text/html"]
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


@pytest.mark.parametrize("rows", [0, 1, 20, 21, 5000])
def test_the_rest_is_counted(rows: int) -> None:
    to = console()
    print_answers(answers([(row, "ana", 0.5) for row in range(rows)]), to)
    assert printed(to).count("ana") == min(rows, 20)
    assert ("more" in printed(to)) == (rows > 20)
    assert ("no answers" in printed(to)) == (rows == 0)
    if rows == 5000:
        assert "… and 4,980 more" in printed(to)


def test_a_total_counts_answers_that_are_not_in_the_table() -> None:
    to = console()
    print_answers(ANSWERS, to, total=1_000_000)
    assert "… and 999,996 more" in printed(to)


def test_bounds_are_shown_if_they_differ_from_the_probability() -> None:
    assert [column.header.plain for column in answers_table(ANSWERS).columns] == [
        "t (UTC)",
        "p",
        "probability",
        "method",
    ]
    sampled = answers([(0, "ana", 0.5)], lower=[0.4])
    assert [column.header.plain for column in answers_table(sampled).columns][3:5] == ["lower", "upper"]


def test_answers_with_events_are_records_where_a_table_is_too_wide() -> None:
    event = {"tag": "pen", "reader": "a very long name of a reader", "note": "x" * 40}
    table = pa.table({"t": [3, 5], "probability": [0.25, 1.0], "x": [event, None], "y": [[event], []]})
    to = console(width=80)
    print_answers(table, to, title="stolen", limit=1)
    assert printed(to) == drawn("""
stolen

 1  t            3
    probability   0.250 ██▌
    x            {tag: pen, reader: a very long name of a reader, note:
                 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx}
    y            [{tag: pen, reader: a very long name of a reader, note:
                 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx}]

… and 1 more
""")
    ascii_to = console(width=80, encoding="ascii")
    print_answers(table, ascii_to, limit=1)
    assert "0.250 ##" in printed(ascii_to) and "... and 1 more" in printed(ascii_to)
    wide = console(width=200)
    print_answers(table, wide)
    assert len(printed(wide).splitlines()) < 8, "a table has a line for each answer"


def test_answers_of_any_query() -> None:
    """Structs, lists, missing values and a missing probability are each one line of text."""
    table = pa.table(
        {
            "a": [{"sector": 3, "t": None}],
            "v": [[{"buoy": "x\ty"}]],
            "t_start": minutes(1.5),
            "probability": pa.array([None], pa.float64()),
            "n": [7],
        }
    )
    to = console(width=120)
    print_answers(table, to)
    (row,) = [line for line in printed(to).splitlines() if "sector" in line]
    assert re.split("  +", row.strip()) == [
        "{sector: 3, t: NULL}",
        "[{buoy: x\\ty}]",
        "2026-03-02 09:01:30",
        "NULL",
        "7",
    ]


def test_no_colours_without_a_terminal_or_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    coloured = console(force_terminal=True, color_system="standard")
    print_answers(ANSWERS, coloured)
    assert "\x1b[36m" in printed(coloured)
    monkeypatch.setenv("NO_COLOR", "1")
    plain = console(force_terminal=True, color_system="standard")
    print_answers(ANSWERS, plain)
    assert "\x1b[36m" not in printed(plain)
    piped = console()
    print_answers(ANSWERS, piped)
    assert "\x1b" not in printed(piped)


@given(st.floats(0, 1), st.booleans())
def test_bars_are_empty_or_full_only_for_0_and_1(share: float, ascii_only: bool) -> None:
    shown = bar(share, 10, ascii_only=ascii_only)
    assert len(shown) == 10
    assert (shown.strip() == "") == (share == 0)
    assert (shown == ("#" if ascii_only else "█") * 10) == (share == 1)


@pytest.mark.parametrize("certain", [None, 0.5])
def test_the_corners_of_a_polygon_and_unknown_ranges_are_not_shown(certain: float | None) -> None:
    corner = {"ta": 0.0, "tb": 1.0}
    row = {
        "a": {"k": "x"},
        "valid_from": 0.0,
        "valid_to": 1.0,
        "certain_from": certain,
        "certain_to": certain,
        "boundary": [corner],
        "sample": corner,
        "probability": 1.0,
    }
    table = answers_table(pa.Table.from_pylist([row]))
    shown = [] if certain is None else ["certain_from", "certain_to"]
    assert [str(column.header) for column in table.columns] == ["a", "valid_from", "valid_to", *shown, "probability"]
