"""PER for PATTERN compared with the enumeration of all worlds: windows, episodes and keys, for any split."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import Case, Draw
from tests.drawn import examples
from tests.local import LocalRun, local_job
from tests.oracles.pattern import bind_query
from tests.oracles.pattern_per import PerRows, per_rows
from tests.pattern.strategies import CLASSES, EXTENDED, GENERAL, pattern_cases
from tests.splits import disordered_splits, splits

from anabranch.binding.per import PerWindow
from anabranch.columns.times import TimeKind
from anabranch.errors import WorkbookError
from anabranch.pattern import archive, joint
from anabranch.pattern.job import PatternJob
from anabranch.pattern.spec import GroupSpec
from anabranch.pattern.windows import window_of
from anabranch.transport.finishing import finish_table
from anabranch.transport.per import advance, window_begins

DELAY = 2


@st.composite
def windows(draw: Draw) -> str:
    """`PER d`, with windows of one to all instants; half of them AT LEAST several times."""
    times = draw(st.sampled_from([1, 2, 1, 3]))
    return f"PER {draw(st.sampled_from([2, 1, 3, 10]))}" + (f" AT LEAST {times} TIMES" if times > 1 else "")


@st.composite
def episodes(draw: Draw) -> str:
    """`PER EPISODE`; the instants of cases are up to 2 apart."""
    above = draw(st.sampled_from(["", " ABOVE 0.3", " ABOVE 0.1", " ABOVE 0.5"]))
    return f"PER EPISODE{above}{draw(st.sampled_from(['', ' GAP 1', ' GAP 2', ' GAP 0.5']))}"


ANY_FORM = st.one_of(windows(), episodes(), st.just("PER KEYS"))


def with_clause(case: Case, clause: str) -> Case:
    return Case(case.workbook.rstrip().removesuffix(";") + f" {clause};\n", case.query, case.rows, case.relations)


@st.composite
def per_cases(draw: Draw, clauses: st.SearchStrategy[str], **options: Any) -> Case:
    return with_clause(draw(pattern_cases(most_worlds=300, **options)), draw(clauses))


def job_of(case: Case, live: bool = False) -> Any:
    return local_job(case.workbook, case.query, case.relations, live)


def archive_job(case: Case) -> PatternJob:
    """The job that tries the methods for archives, whatever the class of the query."""
    job = job_of(case)
    return PatternJob(GroupSpec(job.spec.context, job.spec.analysis))


def tables_of(run: LocalRun) -> list[pa.Table]:
    """The finished answers of each micro-batch; PER KEYS has rows at the end only."""
    rules = run.job.finishing()
    steps = [run.outcomes[first : first + run.n_buckets] for first in range(0, len(run.outcomes), run.n_buckets)]
    answers = [pa.concat_tables(outcome.answers for outcome in step) for step in steps]
    tables = [finish_table(rules.of_answers(), table) for table in answers]
    return tables if rules.per is None else [advance(rules.per, None, pa.concat_tables(tables), run.now).rows]


def rows_of(run: LocalRun) -> PerRows:
    """The rows of a run, finished as the driver finishes the answers of a micro-batch."""
    rows: PerRows = {}
    names = ["t_from", *(name for name, _ in run.job.spec.analysis.group_by)]
    for table in tables_of(run):
        for row in table.to_pylist():
            head = [row.pop(name) for name in names]
            key = (_rounded(head[0]), *head[1:])
            assert key not in rows, "there are two rows for one key"
            rows[key] = row
    return rows


def run_whole(job: Any, rows: Any, n_buckets: int = 3) -> PerRows:
    run = LocalRun(job, n_buckets)
    run.step(rows, end=True)
    return rows_of(run)


def run_parts(job: Any, parts: Any) -> PerRows:
    run = LocalRun(job, n_buckets=2)
    run.run(parts)
    assert run.counts.late == 0
    return rows_of(run)


def _rounded(t: Any) -> Any:
    return round(t, 9) if isinstance(t, float) else t


def expected(case: Case) -> PerRows:
    bound = bind_query(case.workbook, case.query)
    relations = {name: set(rows) for name, rows in case.relations.items()}
    return {(_rounded(t), *group): row for (t, *group), row in per_rows(bound, case.rows, relations).items()}


def assert_same(got: PerRows, want: PerRows, threshold: float) -> None:
    for key in got.keys() | want.keys():
        probability = (got.get(key) or want.get(key))["probability"]
        if abs(probability - threshold) <= 1e-9:
            continue  # a row of probability 0, or at the threshold: the last bit decides
        if key not in got and want[key]["probability"] < threshold:
            continue
        assert key in got and key in want, (key, got.get(key), want.get(key))
        for name in want[key].keys() - {"method", "status"}:
            assert abs(got[key][name] - want[key][name]) <= 1e-9, (key, name, got[key], want[key])


@pytest.mark.usefixtures("nothing_is_too_large")
@examples(30)
@given(per_cases(windows(), classes=CLASSES), st.integers(1, 4))
def test_windows_of_streams_equal_worlds(case: Case, n_buckets: int) -> None:
    job = job_of(case, live=True)
    assert_same(run_whole(job, case.rows, n_buckets), expected(case), job.spec.analysis.query.per.threshold)


@pytest.mark.usefixtures("nothing_is_too_large")
@examples(30)
@given(per_cases(episodes(), classes=CLASSES), st.integers(1, 4))
def test_episodes_of_streams_equal_worlds(case: Case, n_buckets: int) -> None:
    job = job_of(case, live=True)
    assert_same(run_whole(job, case.rows, n_buckets), expected(case), job.spec.analysis.query.per.threshold)


@pytest.mark.usefixtures("nothing_is_too_large")
@examples(40)
@given(per_cases(ANY_FORM, classes=CLASSES), st.integers(1, 4))
def test_archives_equal_worlds(case: Case, n_buckets: int) -> None:
    job = job_of(case)
    rows = run_whole(job, case.rows, n_buckets)
    assert {row.get("method", "exact") for row in rows.values()} <= {"exact"}
    assert_same(rows, expected(case), job.spec.analysis.query.per.threshold)


@pytest.mark.usefixtures("nothing_is_too_large")
@examples(15)
@given(st.data())
def test_rows_of_any_split_with_within_equal_worlds(data: st.DataObject) -> None:
    case = data.draw(per_cases(ANY_FORM, classes=CLASSES, within=True))
    job = job_of(case, live=True)
    rows = run_parts(job, data.draw(splits(case.rows)))
    assert_same(rows, expected(case), job.spec.analysis.query.per.threshold)


@pytest.mark.parametrize("most_work", [0, 40])
@examples(15)
@given(data=st.data())
def test_sampled_rows_are_near(data: st.DataObject, most_work: int) -> None:
    """Counting gives up at once, or for some chains; the joint state is too large for all."""
    case = data.draw(per_cases(ANY_FORM, classes=(GENERAL, EXTENDED), models=("MARKOV",)))
    case = with_clause(case, "ACCURACY 0.05 CONFIDENCE 0.9999")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive, "MOST_WORK", most_work)
        patch.setattr(joint, "MOST_WORK", most_work)
        patch.setattr(joint, "WORK_PER_INSTANT", 0)
        rows = run_whole(archive_job(case), case.rows)
    want = expected(case)
    for key, row in rows.items():
        if isinstance(bind_query(case.workbook, case.query).per, PerWindow) and key in want:
            assert row["lower"] - 1e-9 <= want[key]["probability"] <= row["upper"] + 1e-9
            assert abs(row["expected"] - want[key]["expected"]) <= 0.3


@pytest.mark.usefixtures("nothing_is_too_large")
@examples(30)
@given(st.data())
def test_any_split_into_micro_batches_gives_the_batch_rows(data: st.DataObject) -> None:
    case = data.draw(per_cases(ANY_FORM, classes=CLASSES))
    job = job_of(case, live=True)
    parts = data.draw(splits(case.rows))
    assert_same(run_parts(job, parts), run_whole(job, case.rows), job.spec.analysis.query.per.threshold)


@pytest.mark.usefixtures("nothing_is_too_large")
@examples(25)
@given(st.data())
def test_any_order_within_the_watermark_gives_the_batch_rows(data: st.DataObject) -> None:
    case = data.draw(per_cases(ANY_FORM, classes=CLASSES, watermark=DELAY))
    job = job_of(case, live=True)
    parts = data.draw(disordered_splits(case.rows, DELAY))
    assert_same(run_parts(job, parts), run_whole(job, case.rows), job.spec.analysis.query.per.threshold)


# ---------------------------------------------------------------- examples

SEEN = "CREATE STREAM seen KEY (k STRING) VALUE (v STRING) TIME t {time} MODEL INDEPENDENT;"


def answers(query: str, rows: list[tuple[str, Any, str, float]], time: str = "INTEGER") -> PerRows:
    """The rows of a query over a stream `seen`, given as (key, time, value, p)."""
    job = local_job(f"{SEEN.format(time=time)} CREATE QUERY q AS {query};", "q", live=True)
    return run_whole(job, {"seen": [dict(zip("ktvp", row, strict=True)) for row in rows]})


def numbers(rows: PerRows, *names: str) -> dict[tuple, Any]:
    return {key: pytest.approx(tuple(row[name] for name in names)) for key, row in rows.items()}


TWO_PEOPLE = [("a", 1, "hall", 0.5), ("b", 1, "hall", 0.5), ("a", 2, "hall", 0.5)]


def test_without_a_common_variable_instants_are_counted() -> None:
    rows = answers("PATTERN seen(_, 'hall') PER 10 AT LEAST 2 TIMES", TWO_PEOPLE)
    assert numbers(rows, "probability", "expected") == {(0,): (0.75 * 0.5, 0.75 + 0.5)}


def test_with_a_common_variable_each_binding_counts() -> None:
    rows = answers("PATTERN seen(p, 'hall') PER 10 AT LEAST 2 TIMES", TWO_PEOPLE)
    assert numbers(rows, "probability", "expected") == {(0,): (0.5, 1.5)}


def test_an_instant_of_another_key_ends_an_episode() -> None:
    query = "PATTERN seen(p, 'hall') GROUP BY p PER EPISODE"
    apart = [("a", 1, "hall", 0.5), ("a", 3, "hall", 0.5)]
    together = numbers(answers(query, apart), "t_to", "count", "probability", "expected")
    assert together == {(1, "a"): (3, 2, 0.75, 1.0)}
    between = numbers(answers(query, [*apart, ("b", 2, "office", 1.0)]), "t_to", "probability")
    assert between == {(1, "a"): (1, 0.5), (3, "a"): (3, 0.5)}
    bridged = numbers(answers(f"{query} GAP 2", [*apart, ("b", 2, "office", 1.0)]), "t_to", "probability")
    assert bridged == {(1, "a"): (3, 0.75)}


def test_the_rows_of_keys_that_no_goal_matches_have_instants_too() -> None:
    rows = [("a", 1, "hall", 0.5), ("b", 2, "hall", 1.0), ("a", 3, "hall", 0.5)]
    assert set(answers("PATTERN seen('a', 'hall') PER EPISODE", rows)) == {(1,), (3,)}


def test_an_instant_that_is_not_above_the_bound_counts_if_it_is_bridged() -> None:
    rows = [("a", 1, "hall", 0.5), ("a", 2, "hall", 0.2), ("a", 3, "hall", 0.5)]
    query = "PATTERN seen(p, 'hall') GROUP BY p PER EPISODE ABOVE 0.2"
    assert numbers(answers(query, rows), "probability") == {(1, "a"): (0.5,), (3, "a"): (0.5,)}
    bridged = numbers(answers(f"{query} GAP 2", rows), "count", "probability", "expected")
    assert bridged == {(1, "a"): (2, 1 - 0.5 * 0.8 * 0.5, 1.0)}


def test_windows_begin_at_the_decimals_as_they_are_written() -> None:
    rows = [("a", t, "hall", 0.5) for t in (0.1, 0.2, 0.3, 0.6, 0.7)]
    found = answers("PATTERN seen('a', 'hall') PER 0.1", rows, "DOUBLE")
    assert sorted(found) == [(0.1,), (0.2,), (0.3,), (0.6,), (0.7,)]


def test_windows_of_timestamps_begin_with_the_epoch() -> None:
    morning = datetime(2026, 1, 31, 8, tzinfo=UTC)
    rows = [("a", morning, "hall", 0.5), ("a", morning + timedelta(hours=20), "hall", 0.5)]
    found = answers("PATTERN seen('a', 'hall') PER 1 DAY", rows, "TIMESTAMP")
    assert [key[0].day for key in sorted(found)] == [31, 1]
    assert {row["t_to"] - key[0] for key, row in found.items()} == {timedelta(days=1)}


def test_windows_of_a_zone_are_those_of_its_clock() -> None:
    noons = [datetime(2026, month, day, 10, 30, tzinfo=UTC) for month, day in ((3, 28), (3, 29), (10, 25))]
    rows = [("a", noon + timedelta(hours=hours), "hall", 0.5) for noon in noons for hours in (-12, 0, 12)]
    found = answers("PATTERN seen('a', 'hall') PER 1 DAY", rows, "TIMESTAMP ZONE 'Europe/Zurich'")
    days = {(key[0].month, key[0].day, key[0].hour): row for key, row in found.items()}
    assert {day: round(row["expected"] * 2) for day, row in days.items()} == {
        (3, 26, 23): 1, (3, 27, 23): 2, (3, 28, 23): 1, (3, 29, 22): 1, (10, 24, 22): 3,
    }  # fmt: skip
    assert days[3, 28, 23]["t_to"] == datetime(2026, 3, 29, 22, tzinfo=UTC)
    assert days[10, 24, 22]["t_to"] == datetime(2026, 10, 25, 23, tzinfo=UTC)


@pytest.mark.parametrize("minutes", [15, 30, 60, 1440])
@pytest.mark.parametrize(
    ("zone", "day"),
    [("Europe/Zurich", (2026, 10, 25)), ("Europe/Zurich", (2026, 3, 29)), ("America/Sao_Paulo", (2018, 2, 18))],
)
def test_each_instant_is_in_the_last_window_that_has_begun(zone: str, day: tuple[int, int, int], minutes: int) -> None:
    per = PerWindow(minutes * 60.0, zone=zone)
    midnight = int(datetime(*day, tzinfo=UTC).timestamp()) * 1_000_000
    t = midnight + np.arange(-24 * 12, 48 * 12) * 300_000_000
    window = window_of(t, per, TimeKind.TIMESTAMP)
    begin, end = (window_begins(per, window + later, TimeKind.TIMESTAMP) for later in (0, 1))
    assert (np.diff(window) >= 0).all()
    assert (begin <= t).all()
    assert (t < end).all()


def test_the_threshold_applies_to_the_rows() -> None:
    rows = [("a", 1, "hall", 0.7), ("a", 2, "hall", 0.3), ("b", 1, "hall", 0.5)]
    assert set(answers("PATTERN seen(p, 'hall') GROUP BY p PER 10 THRESHOLD 0.79", rows)) == {(0, "a")}


def test_counting_has_a_limit() -> None:
    with pytest.raises(WorkbookError, match="AT LEAST must be at most 1,000 in a PATTERN, not 1,001"):
        bind_query(
            f"{SEEN.format(time='INTEGER')} CREATE QUERY q AS PATTERN seen(_, _) PER 1 AT LEAST 1001 TIMES;", "q"
        )


def test_many_chains_are_added() -> None:
    """The number of 200 coins that show heads is binomial."""
    rows = [(f"k{number}", 1, "hall", 0.5) for number in range(200)]
    found = answers("PATTERN seen(p, 'hall') PER 10 AT LEAST 110 TIMES", rows)
    tail = sum(math.comb(200, heads) for heads in range(110, 201)) / 2**200
    assert numbers(found, "probability", "expected") == {(0,): (tail, 100.0)}


# ---------------------------------------------------------------- bindings and last values

MOVES = [
    ("a", 1, None, "u", 0.5), ("a", 1, None, "w", 0.3), ("a", 2, "u", "w", 0.6), ("a", 2, "w", "u", 0.5),
    ("a", 2, None, "u", 0.9), ("a", 3, "u", "u", 0.5), ("a", 3, "w", "w", 0.25), ("b", 1, None, "u", 0.5),
    ("b", 3, "u", "w", 0.7),
]  # fmt: skip


def moves(query: str) -> Case:
    """A query over a Markov stream `at`."""
    stream = "CREATE STREAM at KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL MARKOV;"
    rows = [dict(zip(("k", "t", "prev_v", "v", "p"), row, strict=True)) for row in MOVES]
    return Case(f"{stream}\nCREATE QUERY q AS {query};\n", "q", {"at": rows})


@pytest.mark.parametrize("per", ["PER 2", "PER 10 AT LEAST 2 TIMES", "PER EPISODE ABOVE 0.2", "PER KEYS"])
def test_each_binding_of_any_variables_is_counted(per: str) -> None:
    case = moves(f"PATTERN at(p, _) THEN at(p, l) GROUP BY p, l {per}")
    rows = run_whole(job_of(case), case.rows)
    assert rows
    assert_same(rows, expected(case), 0.0)
    parts = [{"at": [row for row in case.rows["at"] if row["t"] == t]} for t in (1, 2, 3)]
    assert_same(run_parts(job_of(case, live=True), parts), expected(case), 0.0)


@pytest.mark.parametrize("per", ["PER 2", "PER 10 AT LEAST 2 TIMES", "PER EPISODE ABOVE 0.2", "PER KEYS"])
def test_queries_that_need_the_last_values_are_counted_on_streams(per: str) -> None:
    case = moves(f"PATTERN at(p, l) THEN at(p, m) WHERE l <> m GROUP BY p {per}")
    parts = [{"at": [row for row in case.rows["at"] if row["t"] == t]} for t in (1, 2, 3)]
    assert_same(run_parts(job_of(case, live=True), parts), expected(case), 0.0)
