"""Queries of any class on a stream whose exact state becomes too large: sampled worlds for any split."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import Case
from tests.drawn import examples
from tests.local import in_context, local_job, prepared_query
from tests.pattern.local import LocalRun
from tests.pattern.strategies import GENERAL, SAFE, pattern_cases
from tests.pattern.test_against_worlds import expected, job_of
from tests.pattern.test_per import ANY_FORM, run_parts, with_clause
from tests.pattern.test_per import run_whole as run_whole_per
from tests.pattern.test_sampling import THINGS, WORKBOOK, people, things
from tests.splits import splits

from anabranch.errors import TooLarge
from anabranch.pattern import archive, joint
from anabranch.pattern.general import GeneralOperator
from anabranch.pattern.job import PatternJob
from anabranch.pattern.spec import GroupSpec

SAMPLED = "ACCURACY 0.05 CONFIDENCE 0.9999"


@pytest.fixture
def little_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains are sampled after a few instants."""
    monkeypatch.setattr(archive, "MOST_WORK", 0)
    monkeypatch.setattr(joint, "MOST_WORK", 30)
    monkeypatch.setattr(joint, "WORK_PER_INSTANT", 1)


def carried_job(case: Case) -> PatternJob:
    """The job that carries the chains of a query on a stream, whatever its class."""
    job = in_context(job_of(case), live=True)
    return PatternJob(GroupSpec(job.spec.context, job.spec.analysis.for_streams()))


def rows_of(run: LocalRun) -> dict[tuple, tuple]:
    """The probability, the interval and the method of each answer."""
    names = ["t", *(name for name, _ in run.job.spec.analysis.group_by)]
    rows = [row for outcome in run.outcomes for row in outcome.answers.to_pylist()]
    numbers = ("probability", "lower", "upper", "method")
    return {tuple(row[name] for name in names): tuple(row[name] for name in numbers) for row in rows}


def streamed(job: Any, parts: Any, n_buckets: int = 2) -> dict[tuple, tuple]:
    run = LocalRun(job, n_buckets)
    for part in parts:
        run.step(part)
    run.step({}, end=True)
    return rows_of(run)


def assert_equal(got: dict[tuple, tuple], want: dict[tuple, tuple]) -> None:
    """The same worlds and methods; exact numbers may differ by rounding."""
    assert got.keys() == want.keys()
    for key, (*numbers, method) in got.items():
        assert method == want[key][-1]
        assert numbers == pytest.approx(want[key][:-1], abs=1e-12)


@pytest.mark.usefixtures("little_is_exact")
@examples(30, least=30)  # few cases are sampled
@given(st.data())
def test_no_split_changes_sampled_worlds_and_intervals_contain_the_truth(data: st.DataObject) -> None:
    any_group = data.draw(st.booleans())
    case = data.draw(pattern_cases(classes=(GENERAL, SAFE), most_worlds=200, any_group=any_group))
    case = with_clause(case, SAMPLED)
    job = carried_job(case)
    whole = streamed(job, [case.rows], n_buckets=1)
    assert_equal(streamed(job, data.draw(splits(case.rows))), whole)
    want = expected(case)
    for key, (_, lower, upper, method) in whole.items():
        assert lower - 1e-9 <= want.get(key, 0.0) <= upper + 1e-9, (key, method)


@pytest.mark.usefixtures("little_is_exact")
@examples(20)
@given(st.data())
def test_no_split_changes_sampled_rows_of_per(data: st.DataObject) -> None:
    any_group = data.draw(st.booleans())
    case = data.draw(pattern_cases(classes=(GENERAL, SAFE), most_worlds=200, any_group=any_group))
    job = carried_job(with_clause(case, f"{data.draw(ANY_FORM)} {SAMPLED}"))
    parts = data.draw(splits(case.rows))
    whole, split = run_whole_per(job, case.rows, 1), run_parts(job, parts)
    assert split.keys() == whole.keys()
    for key, row in whole.items():
        assert {name: pytest.approx(value, abs=1e-12) for name, value in row.items()} == split[key]


@pytest.mark.usefixtures("little_is_exact")
@examples(20)
@given(pattern_cases(classes=(GENERAL, SAFE), most_worlds=200, any_group=True))
def test_an_archive_is_sampled_like_a_stream(case: Case) -> None:
    case = with_clause(case, f"{SAMPLED} METHOD SAMPLING")
    archived = LocalRun(job_of(case), 2)
    archived.step(case.rows, end=True)
    assert_equal(rows_of(archived), streamed(job_of(case, live=True), [case.rows], n_buckets=3))


def by_instant(rows: list[dict]) -> list[dict[str, list[dict]]]:
    return [{"at": [row for row in rows if row["t"] == t]} for t in sorted({row["t"] for row in rows})]


def test_a_chain_is_exact_until_its_state_is_too_large() -> None:
    workbook, rows = WORKBOOK.format(options="ACCURACY 0.05"), people(2, 4)["at"] + later(people(10, 4, seed=1)["at"])
    job = local_job(workbook, "q", live=True)
    answers = streamed(job, by_instant(rows))
    methods = [method for _, (*_, method) in sorted(answers.items())]
    assert methods == sorted(methods)
    assert set(methods) == {"exact", "sampling"}
    assert_equal(streamed(job, [{"at": rows}], n_buckets=1), answers)


def later(rows: list[dict]) -> list[dict]:
    """The rows of other people, at later times."""
    return [row | {"person": f"later {row['person']}", "t": row["t"] + 4} for row in rows]


def test_method_exact_on_a_stream_fails_instead_of_sampling() -> None:
    run = LocalRun(local_job(WORKBOOK.format(options="METHOD EXACT"), "q", live=True), 1)
    with pytest.raises(TooLarge, match="METHOD EXACT excludes sampling"):
        run.step(people(20, 3), end=True)


def test_method_sampling_streams_what_an_automaton_could_answer() -> None:
    job = local_job(THINGS.format(group="GROUP BY p METHOD SAMPLING"), "q", live=True)
    assert isinstance(job.operator(), GeneralOperator)
    rows = things("bob", 3, seed=2)
    exact = LocalRun(local_job(THINGS.format(group="GROUP BY p METHOD EXACT"), "q"), 1)
    exact.step({"has": rows}, end=True)
    sampled = streamed(job, [{"has": rows}])
    assert {method for *_, method in sampled.values()} == {"sampling"}
    for key, (probability, *_) in rows_of(exact).items():
        _, lower, upper, _ = sampled[key]
        assert lower <= probability <= upper


def test_a_key_without_effect_is_not_part_of_the_state() -> None:
    """The value of a key counts from the first event that can change a result, with its distribution until then."""
    workbook = """
    CREATE STREAM at KEY (person STRING) VALUE (place STRING) TIME t INTEGER MODEL MARKOV;
    CREATE QUERY q AS PATTERN at('p0', l) THEN at(q, l)[q <> 'p0'];
    """
    rows = people(30, 6)["at"]
    first = [row for row in rows if row["person"] == "p0" and row["t"] == 6]
    others = [row for row in rows if row["person"] != "p0" and row["t"] < 6]
    run = LocalRun(local_job(workbook, "q", live=True), 1)
    run.step({"at": others})
    run.step({"at": [row | {"prev_place": None} for row in first[:4]]})
    operator = run.job.operator()
    operator.open(run.states[0])
    (chain,) = operator._chains
    assert chain.state.partials() == set()
    assert len(chain.state.states) == 1


def test_every_class_streams() -> None:
    for pattern in ("at(p, l) THEN at(q, l)", "at(p, l) THEN at(p, m) WHERE l <> m GROUP BY m PER 2"):
        workbook = WORKBOOK[: WORKBOOK.index("CREATE QUERY")] + f"CREATE QUERY q AS PATTERN {pattern};"
        assert prepared_query(workbook, "q").plan.streams == "yes"
