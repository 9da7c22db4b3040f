"""The limit on answers: a query that would fill the memory fails in time, and names itself and the remedy."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.local import LocalRun, in_context, local_job
from tests.relate.local import RelateRun

from anabranch.errors import TooManyAnswers
from anabranch.transport.limits import MAX_ANSWERS

Rows = Mapping[str, Sequence[Mapping[str, Any]]]

#: How much memory a query may take before it is stopped, and how long.
MOST_MEMORY, MOST_SECONDS = 512 << 20, 20.0


class Excessive(NamedTuple):
    """A query with an enormous number of answers, or a few if it gets `few` of its rows."""

    workbook: str
    rows: Rows
    message: str
    few: int

    def with_few(self) -> Rows:
        return {name: rows[: self.few] for name, rows in self.rows.items()}


def events(n: int, **columns: Any) -> list[dict[str, Any]]:
    return [{"k": "one", **columns, "t": number} for number in range(n)]


SEQUENCE = Excessive(
    """
    CREATE STREAM e KEY (k STRING) TIME t INTEGER;
    CREATE QUERY q AS SEQUENCE (w, x, y, z) FROM e
      WHERE w.t >= 0 AND x.t >= 0 AND y.t >= 0 AND z.t >= 0 AND w.k = x.k AND x.k = y.k AND y.k = z.k WITHIN 1000;
    """,
    {"e": events(300)},
    r"q: more than 1,000,000 answers in one bucket and step \(the last one: t = \d+, k = one\); shorten WITHIN, .*",
    7,
)
SET = Excessive(
    """
    CREATE STREAM e KEY (k STRING) TIME t INTEGER;
    CREATE QUERY q AS CONSTRAIN v*5 FROM e AS v WHERE SPAN(v, v) <= 1000;
    """,
    {"e": events(300)},
    r"q: more than 1,000,000 answers in one bucket and step \(the last one: t = \d+, k = one\); tighten the bounds .*",
    7,
)
AT_ONCE = Excessive(
    """
    CREATE STREAM e KEY (k STRING) VALUE (v STRING) TIME t INTEGER;
    CREATE QUERY q AS CONSTRAIN u*4, w FROM e
      WHERE u.v = 'a' AND w.v = 'b' AND SPAN(u, u) <= 1000 AND w.t - u.t IN [0, 1000];
    """,
    {"e": [{"k": "last", "v": "b", "t": 500}, *events(300, v="a")]},
    r"q: more than 1,000,000 answers in one bucket and step \(the last one: t = 500, k = last\); tighten the bounds .*",
    7,
)
NEGATED = Excessive(
    """
    CREATE STREAM e KEY (k STRING) VALUE (v INTEGER) TIME t INTEGER;
    CREATE QUERY q AS CONSTRAIN u, v, w, NOT x FROM e AS u, e AS v, e AS w, e AS x
      WHERE SPAN(u, v) <= 1000 AND SPAN(v, w) <= 1000 AND SPAN(u, x) <= 1000 AND x.v = 1;
    """,
    {"e": events(300, v=0)},
    r"q: more than 1,000,000 answers .*; tighten the bounds .*",
    7,
)
CARS = "CREATE STREAM cars KEY (car INTEGER) VALUE (x DOUBLE) TIME t INTEGER MODEL PREDICTED ERROR 1 PERIOD 10;"
CARS_IN_ONE_PLACE = [{"car": number, "x": 0.0, "x_rate": 0.0, "t": 0} for number in range(3000)]
PAIRS = Excessive(
    f"{CARS} CREATE QUERY q AS MONITOR a, b FROM cars AS a, cars AS b WHERE ABS(a.x - b.x) <= 400 WITHIN 3;",
    {"cars": CARS_IN_ONE_PLACE},
    r"q: more than 1,000,000 answers in one bucket and step \(the last one: a = \{car: \d+, t: 0\}, b = \{.*\}\); .*",
    5,
)
TRIPLES = Excessive(
    f"""{CARS} CREATE QUERY q AS MONITOR a, b, c FROM cars AS a, cars AS b, cars AS c
      WHERE ABS(a.x - b.x) <= 400 AND ABS(b.x - c.x) <= 400;""",
    {"cars": CARS_IN_ONE_PLACE},
    r"q: more than 1,000,000 answers .*; narrow the bounds in WHERE, or shorten WITHIN, .*",
    5,
)
INTERVALS = Excessive(
    """
    CREATE STREAM s KEY (k INTEGER) TIME t INTEGER MODEL INTERVALS ORDER seq;
    CREATE QUERY q AS RELATE SOME a INTERSECTS SOME b FROM s AS a, s AS b;
    """,
    {"s": [{"k": k, "seq": seq, "t": seq} for k in range(1500) for seq in (1, 2)]},
    r"q: more than 1,000,000 answers in one bucket and step \(the last one: a.k = \d+, b.k = \d+\); compare keys .*",
    6,
)
BINDINGS = Excessive(
    """
    CREATE STREAM at KEY (p INTEGER) TIME t INTEGER;
    CREATE QUERY q AS PATTERN at(x) THEN at(y) GROUP BY x, y;
    """,
    {"at": [{"p": number, "t": number % 2} for number in range(2200)]},
    r"q: more than 1,000,000 bindings in one bucket and step \([\d,]+ bindings of x, y\); filter the goals, .*",
    8,
)
PAIRS_OF_BINDINGS = Excessive(
    BINDINGS.workbook,
    {"at": [{"p": number, "t": number % 2} for number in range(8000)]},
    r"q: more than 8,000,000 pairs of a binding and an event in one bucket and step \(.*\); filter the goals, .*",
    8,
)
OTHERWISE = Excessive(
    """
    CREATE STREAM at KEY (p INTEGER) VALUE (v STRING) TIME t INTEGER;
    CREATE QUERY a AS PATTERN at(p, 'a') GROUP BY p;
    CREATE QUERY q AS NOT a;
    """,
    {"at": [{"p": number, "v": "b", "t": number} for number in range(20_000)]},
    r"q: more than 1,000,000 answers in one bucket and step \(20,000 groups at 20,000 instants\); .*",
    8,
)
ALL = {
    "SEQUENCE": SEQUENCE, "CONSTRAIN v*5": SET, "CONSTRAIN u*4, w": AT_ONCE, "CONSTRAIN NOT": NEGATED,
    "MONITOR a, b": PAIRS, "MONITOR a, b, c": TRIPLES, "RELATE": INTERVALS, "PATTERN GROUP BY": BINDINGS,
    "PATTERN GROUP BY, more": PAIRS_OF_BINDINGS, "PATTERN NOT": OTHERWISE,
}  # fmt: skip


def run_of(case: Excessive, max_answers: int = MAX_ANSWERS) -> LocalRun:
    job = in_context(local_job(case.workbook, "q"), max_answers=max_answers)
    return (RelateRun if case is INTERVALS else LocalRun)(job, 1)


def n_answers(run: LocalRun) -> int:
    if isinstance(run, RelateRun):
        return len(run.all_reported())
    return sum(outcome.answers.num_rows for outcome in run.outcomes)


@contextmanager
def limited_memory(most: int) -> Iterator[None]:
    """Assert that the memory of this process grows by at most `most` bytes."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pytest.skip("the highest memory of a process can be reset on Linux only")
    base = memory("VmRSS")
    yield
    assert memory("VmHWM") - base < most


def memory(name: str) -> int:
    (kilobytes,) = re.findall(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(kilobytes) << 10


@pytest.mark.parametrize("name", ALL)
def test_a_query_with_too_many_answers_stops_early(name: str) -> None:
    case = ALL[name]
    warm = run_of(case)
    warm.step(case.with_few(), end=True)
    run, began = run_of(case), time.process_time()
    with limited_memory(MOST_MEMORY), pytest.raises(TooManyAnswers) as error:
        run.step(case.rows, end=True)
    assert time.process_time() - began < MOST_SECONDS
    assert re.fullmatch(case.message, str(error.value))
    assert str(error.value).endswith(", or allow more (--max-answers)")


@pytest.mark.parametrize("name", ALL)
def test_as_many_answers_as_allowed_are_given(name: str) -> None:
    case = ALL[name]
    run = run_of(case)
    run.step(case.with_few(), end=True)
    n = n_answers(run)
    assert n > 1
    exactly = run_of(case, max_answers=n)
    exactly.step(case.with_few(), end=True)
    assert n_answers(exactly) == n
    with pytest.raises(TooManyAnswers, match=f"q: more than {n - 1:,} (answers|bindings)"):
        run_of(case, max_answers=n - 1).step(case.with_few(), end=True)


@pytest.mark.parametrize("name", ["SEQUENCE", "CONSTRAIN v*5", "MONITOR a, b"])
def test_the_limit_holds_for_each_step(name: str) -> None:
    case = ALL[name]
    ((stream, rows),) = case.rows.items()
    shift = 20_000
    later = [[{**row, "t": row["t"] + shift * number} for row in rows[: case.few]] for number in range(3)]
    alone = run_of(case)
    alone.step({stream: later[0]}, end=True)
    run = run_of(case, max_answers=n_answers(alone))
    for part in later:
        run.step({stream: part})
    run.step({}, end=True)
    assert n_answers(run) == 3 * n_answers(alone)
