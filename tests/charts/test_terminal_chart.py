"""The chart in the terminal, character by character."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from anabranch.charts import chart, print_chart
from tests.charts.answers import HOSTILE, NINE, answers, console, drawn, minutes, printed

ANSWERS = answers([(0, "ana", 0.25), (5, "ben", 1.0), (5.5, "ana", 1e-6), (60, "ana", 0.75)])
TRUTH = pa.table({"t": minutes(0, 30), "p": ["ana", "ben"]})
ANA = ANSWERS.filter(pc.equal(ANSWERS["p"], "ana"))


def test_a_row_for_each_group() -> None:
    to = console(width=50)
    print_chart(ANSWERS, to, threshold=0.5, truth=TRUTH)
    assert printed(to) == drawn("""
ana│▂   ▁                                        ▆
   │▲
ben│   █
   │                       ▲
   └┬──────────────────────┬─────────────────────┬
    09:00                09:30               10:00
    2026-03-02 UTC
▁▄█ probability 0 to 1
▄ and higher: at least 0.5
▲ it really happened
""")


def test_a_single_group_is_tall() -> None:
    to = console(width=50, encoding="ascii")
    print_chart(ANA, to, threshold=0.5)
    assert printed(to) == drawn("""
1.0|
   |                                             =
0.5|---------------------------------------------@
   |                                             @
   |=                                            @
0.0|@   .                                        @
   ++----------------------+---------------------+
    09:00                09:30               10:00
    2026-03-02 UTC
.=@ probability 0 to 1; -: at least 0.5
""")


def test_plain_numbers_as_times() -> None:
    table = pa.table({"t": [1, 5, 9], "p": ["a", "b", "a"], "probability": [0.2, 0.5, 0.9]})
    assert drawn(chart(table, width=42).plain) == drawn("""
a│▂                                      ▇
b│                    ▄
 └─────┬─────────┬─────────┬─────────┬────
       2         4         6         8
▁▄█ probability 0 to 1
""")


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5, 0.77, 1.0])
def test_without_colours_the_height_shows_what_reaches_the_threshold(threshold: float) -> None:
    """The lowest block at the threshold, which the legend names, is above the highest block below the threshold."""
    table = answers([(0, "a", threshold - 1e-6), (1, "a", threshold), (0, "b", 0.0)])
    lines = chart(table, width=40, threshold=threshold).plain.splitlines()
    below, reached = lines[0][2], lines[0].rstrip()[-1]
    assert below < reached
    assert f"{reached} and higher: at least {threshold:g}" in lines[-1]


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_hostile_names_are_escaped(encoding: str) -> None:
    to = console(encoding=encoding, force_terminal=True, color_system=None)
    print_chart(answers([(0, HOSTILE, 0.5), (1, "é" * 400, 0.5)]), to)
    assert "\x1b" not in printed(to)
    assert printed(to).startswith("[red]x[/red]\\x1b[")
    assert len(printed(to).splitlines()) == 6


def test_names_with_the_same_beginning_are_different_groups() -> None:
    table = answers([(0, "x" * 100 + "1", 0.5), (1, "x" * 100 + "2", 0.5)])
    assert chart(table).plain.count("xxxxx…") == 2


def test_the_highest_groups_are_drawn() -> None:
    many = answers([(row, f"person-{row:02}", row / 30) for row in range(30)])
    text = chart(many, limit=3).plain
    assert "person-27" in text
    assert "person-26" not in text
    assert "… and 27 more" in text


def test_lines_fit_the_width() -> None:
    for width in (20, 40, 133):
        to = console(width=width)
        print_chart(ANSWERS, to, threshold=0.5, truth=TRUTH)
        assert max(map(len, printed(to).splitlines())) <= width


def test_answers_outside_the_span_are_left_out() -> None:
    text = chart(ANSWERS, width=40, span=(NINE, NINE + timedelta(minutes=10))).plain
    assert "▆" not in text
    assert "09:10" in text


def test_rows_without_time_or_probability_are_skipped() -> None:
    table = pa.table({"t": [1, None, 3], "probability": [0.5, 0.5, None]})
    assert chart(table, width=30).plain.count("│█") == 3


def test_no_answers() -> None:
    assert chart(ANSWERS.slice(0, 0)).plain == "no answers"


def test_no_colours_without_a_terminal_or_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    coloured, piped = console(force_terminal=True, color_system="standard"), console()
    print_chart(ANSWERS, coloured)
    print_chart(ANSWERS, piped)
    assert "\x1b[1;36m" in printed(coloured)
    assert "\x1b" not in printed(piped)
    monkeypatch.setenv("NO_COLOR", "1")
    plain = console(force_terminal=True, color_system="standard")
    print_chart(ANSWERS, plain)
    assert "36m" not in printed(plain)


def test_groups_can_be_structs_and_spans_plain_numbers() -> None:
    table = pa.table({"t": [1.0, 2.0], "a": [{"sector": 3}, {"sector": 4}], "probability": [0.5, 0.25]})
    assert drawn(chart(table, width=42, span=(0, 4)).plain) == drawn("""
{sector: 3}│       ▄
{sector: 4}│               ▂
           └┬──────────────┬─────────────┬
            0              2             4
▁▄█ probability 0 to 1
""")
