"""Answers and rows of PER for tests: drawn answers as tables, and rows in the form of the oracle."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from anabranch.arrays import BEGINNING, I64
from anabranch.binding.per import Per, PerEpisode, PerKeys, PerWindow
from anabranch.columns.statuses import FINAL
from anabranch.columns.times import TimeKind, encode_times
from anabranch.transport.checks import check_rows
from anabranch.transport.finishing import finish_table
from anabranch.transport.layout import Layout
from anabranch.transport.per import KeyColumn, Moment, PerRule, advance
from anabranch.transport.state import read_tables, write_tables
from tests.local import LocalRun
from tests.oracles import per as oracle
from tests.transport.layouts import table_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: Times are drawn as integers; these are the unit of each type. Tenths are no binary fractions.
UNITS = {TimeKind.INTEGER: Fraction(1), TimeKind.DOUBLE: Fraction(1, 10), TimeKind.TIMESTAMP: Fraction(1, 1000)}

EVENT = pa.struct([("id", pa.string()), ("n", pa.int64()), ("x", pa.float64())])
KEYS = (KeyColumn("a", ("id",)), KeyColumn("first", ("id", "n")), KeyColumn("c", ("id",), several=True))


def time_of(number: int, kind: TimeKind) -> Any:
    """The time that a drawn integer stands for."""
    if kind is TimeKind.TIMESTAMP:
        return _EPOCH + timedelta(milliseconds=number)
    return number if kind is TimeKind.INTEGER else number / 10


def exact(time: Any) -> Fraction:
    """A time as an exact number; of a double, the decimal that it is written as."""
    if isinstance(time, datetime):
        return Fraction((time - _EPOCH) // timedelta(microseconds=1), 1_000_000)
    return Fraction(str(time)).limit_denominator(10**6)


@st.composite
def drawn_answers(draw: st.DrawFn, most: int = 12) -> list[dict[str, Any]]:
    """Answers with drawn integers as times; a missing event is None, and the events of `c` are in any order.

    One operand has the name of a column that is needed on the way.
    """
    events = st.fixed_dictionaries(
        {"id": st.sampled_from("kl"), "n": st.integers(0, 1), "x": st.sampled_from([0.5, 1.5])}
    )
    answer = st.fixed_dictionaries({
        "a": events, "first": st.none() | events, "c": st.lists(events, min_size=2, max_size=2),
        "begin": st.integers(-12, 30), "length": st.integers(0, 9),
        "probability": st.sampled_from([0.25, 0.3, 0.7, 1.0]),
    })  # fmt: skip
    return draw(st.lists(answer, max_size=most))


def drawn_instants(answers: list[dict[str, Any]]) -> st.SearchStrategy[list[int]]:
    """Instants of the streams: those of the answers, and others."""
    times = {answer["begin"] for answer in answers}
    return st.lists(st.integers(-15, 40), max_size=8).map(lambda others: sorted({*times, *others}))


@st.composite
def rules(draw: st.DrawFn, kinds: Any = tuple(TimeKind)) -> PerRule:
    """A rule with any form of PER, for answers about instants or intervals."""
    kind = draw(st.sampled_from(kinds))
    unit = float(UNITS[kind])
    threshold = draw(st.sampled_from([0.0, 0.3, 0.55]))
    per: Per = draw(
        st.one_of(
            st.builds(
                PerWindow, st.sampled_from([1, 3, 7]).map(lambda d: float(d * UNITS[kind])), st.integers(1, 3),
                threshold=st.just(threshold),
            ),
            st.builds(
                PerEpisode, st.sampled_from([0.0, 0.3]), st.integers(0, 3).map(lambda d: d * unit),
                threshold=st.just(threshold),
            ),
            st.builds(PerKeys, threshold=st.just(threshold)),
        )
    )  # fmt: skip
    span = draw(st.sampled_from([("t", "t"), ("valid_from", "valid_to")]))
    keys = draw(st.sampled_from([KEYS, KEYS[:1], ()]))
    return PerRule(per, keys, span, kind, kind)


def answer_table(rule: PerRule, answers: list[dict[str, Any]]) -> pa.Table:
    """The answers in the columns that a rule reads."""
    kind = rule.time_kind
    lengths = [0 if rule.is_of_instants else answer["length"] for answer in answers]
    first = [time_of(answer["begin"], kind) for answer in answers]
    last = [time_of(answer["begin"] + length, kind) for answer, length in zip(answers, lengths, strict=True)]
    columns = {name: pa.array([answer[name] for answer in answers], EVENT) for name in ("a", "first")}
    columns["c"] = pa.array([answer["c"] for answer in answers], pa.list_(EVENT))
    columns |= {rule.span[0]: pa.array(first, kind.arrow_type), rule.span[1]: pa.array(last, kind.arrow_type)}
    columns["probability"] = pa.array([answer["probability"] for answer in answers], pa.float64())
    return pa.table(columns)


def codes_of(numbers: Sequence[int], kind: TimeKind) -> I64:
    """The codes of the times that drawn integers stand for."""
    return encode_times(pa.array([time_of(number, kind) for number in numbers], kind.arrow_type), kind)


def all_rows(rule: PerRule, answers: pa.Table, instants: Sequence[int] = ()) -> pa.Table:
    """The rows of all answers of a query, as those of a stream with a single micro-batch."""
    return advance(rule, None, answers, Moment(BEGINNING, True, codes_of(instants, rule.time_kind))).rows


def exact_times(numbers: Sequence[int], kind: TimeKind) -> list[Fraction]:
    """The times that drawn integers stand for, as exact numbers."""
    return [number * UNITS[kind] for number in numbers]


def of_oracle(rule: PerRule, answers: pa.Table, instants: Sequence[Fraction] = ()) -> list[dict[str, Any]]:
    """The rows by definition; `instants` are those of the streams."""
    listed = [
        {
            "keys": tuple(_keys(key, row[key.name]) for key in rule.keys),
            "begin": exact(row[rule.span[0]]),
            "end": exact(row[rule.span[1]]),
            "probability": row["probability"],
        }
        for row in answers.to_pylist()
    ]
    per = rule.per
    if isinstance(per, PerWindow):
        return oracle.window_rows(listed, exact(per.length), per.at_least, per.threshold)
    if isinstance(per, PerEpisode):
        times = instants if rule.needs_instants else []
        return oracle.episode_rows(listed, per.above, exact(per.gap), per.threshold, times)
    return oracle.key_rows(listed, per.threshold)


def _keys(key: KeyColumn, events: Any) -> Any:
    if key.several:
        return tuple(sorted(tuple(event[field] for field in key.fields) for event in events))
    return None if events is None else tuple(events[field] for field in key.fields)


def comparable(rule: PerRule, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Rows of a result, or of the oracle, sorted, with rounded numbers: lists of them are equal or not."""
    return sorted((_comparable(rule, row) for row in rows), key=repr)


def _comparable(rule: PerRule, row: dict[str, Any]) -> tuple[Any, ...]:
    keys = row["keys"] if "keys" in row else tuple(_keys(key, row[key.name]) for key in rule.keys)
    times = tuple(value if isinstance(value, Fraction) else exact(value) for value in (row["t_from"], row["t_to"]))
    names = [name for name in ("count", "probability", "expected", "lower", "upper") if name in row]
    return (*times, keys, *(round(float(row[name]), 9) for name in names), row.get("method"))


# ---------------------------------------------------------------- runs of queries


#: Clauses for cases whose times are small numbers.
CLAUSES = (
    "PER 2", "PER 3 AT LEAST 2 TIMES", "PER EPISODE", "PER EPISODE GAP 1", "PER EPISODE ABOVE 0.4 GAP 2", "PER KEYS",
)  # fmt: skip


def with_clause(workbook: str, clause: str) -> str:
    """A workbook whose last query has another clause."""
    return f"{workbook.rstrip().removesuffix(';')} {clause};"


def without_threshold(workbook: str) -> str:
    """A workbook whose queries give all answers."""
    return re.sub(r" THRESHOLD [\d.]+", "", workbook)


class RowsRun(LocalRun):
    """A run of a query with PER: the rows that are given, and those that are open, saved at every step."""

    def __init__(self, job: Any, n_buckets: int = 3) -> None:
        super().__init__(job, n_buckets)
        self.rows: list[dict[str, Any]] = []
        self._open: pa.Table | None = None
        self._before: Moment | None = None

    def step(self, rows: Any, end: bool = False) -> None:
        """Process one micro-batch."""
        known = len(self.outcomes)
        super().step(rows, end)
        rules, now = self.job.finishing(), self.now
        if self._before is not None:
            now = now.after(self._before.watermark, self._before.kept_instants([rules.per]))
        answers = pa.concat_tables([outcome.answers for outcome in self.outcomes[known:]])
        step = advance(rules.per, self._open, finish_table(rules.of_answers(), answers), now)
        self._open = read_tables(write_tables({"rows": step.open_rows}))["rows"].replace_schema_metadata(None)
        self._before = now
        self.rows += [row for row in step.rows.to_pylist() if row.get("status") != "provisional"]


def assert_rows(job: Any, plain: Any, rows: Any, batches: Sequence[Any], n_buckets: int) -> int:
    """Assert that a job with PER gives, for any split, the rows that are defined by the answers of the plain job.

    Returns how many rows there are.
    """
    whole = LocalRun(plain, 1)
    whole.run([rows])
    answers = finish_table(plain.finishing(), pa.concat_tables([outcome.answers for outcome in whole.outcomes]))
    rule = job.finishing().per
    if "status" in answers.column_names:
        answers = answers.filter(pc.is_in(answers["status"], value_set=pa.array(FINAL)))
    instants = [exact(row[layout.time]) for layout in job.layouts for row in valid_rows(job, layout, rows)]
    expected = comparable(rule, of_oracle(rule, answers, instants))
    for parts in ([rows], batches):
        run = RowsRun(job, n_buckets)
        run.run(parts)
        assert comparable(rule, run.rows) == expected
    return len(expected)


def valid_rows(job: Any, layout: Layout, rows: Any) -> list[Any]:
    """The rows of a stream that are not quarantined."""
    named = next((part for name, part in rows.items() if name.lower() == layout.name.lower()), [])
    good, _ = check_rows(table_of(layout, named), layout)
    return good.to_pylist()
