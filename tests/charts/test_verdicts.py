"""The table of verdicts, character by character."""

from __future__ import annotations

import pyarrow as pa

from anabranch.charts import print_verdicts
from tests.charts.answers import HOSTILE, console, drawn, minutes, printed
from tests.evaluation.coffee import ANSWERS, TRUTH


def test_found_missed_and_false() -> None:
    to = console()
    print_verdicts(ANSWERS, TRUTH, to, group="person")
    assert printed(to) == drawn("""

  person   really   found   missed                false
 ─────────────────────────────────────────────────────────────────
  ana           3       1   09:10:00  0.300       09:15:15  0.800
                            09:20:00  no answer
  ben           1       0   09:05:00  no answer
  chloe         0       0                         09:05:00  0.500

  all           4       1   3                     2
""").join(["\n", "\n"])


def test_long_lists_are_truncated_and_hostile_names_are_escaped() -> None:
    truth = pa.table({"t": minutes(*range(7)), "p": [HOSTILE] * 7})
    to = console(width=120, encoding="ascii")
    print_verdicts(ANSWERS, truth, to, group="[red]who")
    assert "... and 3 more" in printed(to)
    assert "[red]x[/red]\\x1b[31m" in printed(to)
    assert "[red]who" in printed(to)


def test_plain_numbers_as_times() -> None:
    to = console(width=50)
    print_verdicts(pa.table({"t": [3], "probability": [0.9]}), pa.table({"t": [99]}), to, within=1)
    assert "99  no answer   3  0.900" in printed(to)
