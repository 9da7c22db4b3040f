"""Combinations of PATTERN queries: compared with the enumeration of all worlds, their methods and their refusals."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.cases import Case
from tests.drawn import examples
from tests.local import LocalRun as PlainRun
from tests.local import Rows, local_job, prepared_query
from tests.oracles import pattern_combination as oracle
from tests.oracles.pattern import at_least
from tests.pattern.local import LocalRun, assert_same, job_of, run_whole
from tests.pattern.strategies import EXTENDED, GENERAL, REGULAR, combination_cases
from tests.planning.golden_identity import group_of
from tests.splits import disordered_splits, splits

from anabranch.errors import TooLarge
from anabranch.language.parser import parse
from anabranch.language.unparse import unparse
from anabranch.pattern import archive, joint
from anabranch.pattern.job import PatternJob
from anabranch.pattern.product import united
from anabranch.planning.identity import differences, identity_of
from anabranch.planning.planner import Planner

STREAMABLE = (REGULAR, EXTENDED)
DELAY = 2


def expected(case: Case) -> dict[tuple, float]:
    relations = {name: set(rows) for name, rows in case.relations.items()}
    answers = oracle.ask(case.workbook, case.query, case.rows, relations)
    answers = at_least(answers, prepared_query(case.workbook, case.query).bound.threshold)
    return {key if isinstance(key, tuple) else (key,): p for key, p in answers.items()}


@pytest.mark.usefixtures("nothing_is_too_large")
@given(combination_cases(), st.integers(1, 4))
def test_batch_equals_worlds(case: Case, n_buckets: int) -> None:
    job = job_of(case)
    assert_same(run_whole(job, case.rows, n_buckets), expected(case), job.spec.analysis.query.threshold)


@pytest.mark.usefixtures("nothing_is_too_large")
@given(st.data())
def test_any_split_into_micro_batches_equals_worlds(data: st.DataObject) -> None:
    case = data.draw(combination_cases())
    job = job_of(case, live=True)
    run = LocalRun(job, n_buckets=2)
    run.run(data.draw(splits(case.rows)))
    assert run.counts.late == 0
    assert_same(run.answers(), expected(case), job.spec.analysis.query.threshold)


@pytest.mark.usefixtures("nothing_is_too_large")
@examples(25)
@given(st.data())
def test_any_order_within_the_watermark_gives_the_batch_answers(data: st.DataObject) -> None:
    case = data.draw(combination_cases(watermark=DELAY))
    job = job_of(case, live=True)
    run = LocalRun(job, n_buckets=2)
    # A stream that the combination does not name has no watermark in it.
    rows = {layout.name: case.rows[layout.name] for layout in job.layouts}
    run.run(data.draw(disordered_splits(rows, DELAY)))
    assert run.counts.late == 0
    assert_same(run.answers(), run_whole(job, case.rows), job.spec.analysis.query.threshold)


@examples(15)
@given(combination_cases(classes=STREAMABLE))
def test_a_query_and_its_negation_sum_to_one(case: Case) -> None:
    workbook = case.workbook + "CREATE QUERY yes AS a AND (b OR NOT b);\nCREATE QUERY no AS NOT a OR (b AND NOT b);\n"
    workbook += "CREATE QUERY always AS (a OR NOT a) AND (b OR NOT b);\n"
    answers = [run_whole(local_job(workbook, name, case.relations), case.rows) for name in ("yes", "no", "always")]
    yes, no, always = answers
    assert always
    assert all(abs(p - 1.0) <= 1e-9 for p in always.values())
    assert (yes.keys() | no.keys()) == always.keys()
    assert all(abs(yes.get(key, 0.0) + no.get(key, 0.0) - 1.0) <= 1e-9 for key in always)


# ---------------------------------------------------------------- instants and groups

STREAMS = """
CREATE STREAM r KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE STREAM s KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT;
"""
QUERIES = """
CREATE QUERY a AS PATTERN r(p, 'a') THEN r(p, 'b') GROUP BY p THRESHOLD 0.9;
CREATE QUERY b AS PATTERN s(p, 'a') GROUP BY p;
CREATE QUERY a_any AS PATTERN r(p, 'a') THEN r(p, 'b');
CREATE QUERY joined AS PATTERN r(p, x) THEN r(p, x) GROUP BY p;
"""


def rows_of(*events: tuple[str, str, str, int, float]) -> dict[str, list[dict]]:
    rows: dict[str, list[dict]] = {"r": [], "s": []}
    for stream, key, value, t, p in events:
        rows[stream].append({"k": key, "v": value, "t": t, "p": p})
    return rows


EVENTS = rows_of(("r", "k1", "a", 1, 0.5), ("r", "k1", "b", 2, 0.5), ("s", "k2", "a", 3, 0.25), ("r", "k1", "c", 5, 1))


def ask(query: str, rows: dict[str, list[dict]] = EVENTS, **options: object) -> dict[tuple, float]:
    return run_whole(local_job(f"{STREAMS}{QUERIES}CREATE QUERY q AS {query};", "q", **options), rows)


def test_a_negation_has_a_row_at_every_instant_of_all_its_streams_from_the_first_of_its_key() -> None:
    assert ask("NOT a") == {(1, "k1"): 1.0, (2, "k1"): 0.75, (5, "k1"): 1.0}
    assert ask("NOT a AND NOT b") == {
        (1, "k1"): 1.0, (2, "k1"): 0.75, (3, "k1"): 1.0, (5, "k1"): 1.0, (3, "k2"): 0.75, (5, "k2"): 1.0,
    }  # fmt: skip


def test_without_group_by_there_is_one_group_at_all_instants() -> None:
    assert ask("NOT a_any") == {(1,): 1.0, (2,): 0.75, (5,): 1.0}


def test_given_has_no_row_where_its_condition_is_impossible() -> None:
    assert ask("a GIVEN b") == {}
    assert ask("b GIVEN NOT a") == {(3, "k2"): 0.25}
    assert ask("b GIVEN b") == {(3, "k2"): 1.0}


def test_operands_can_be_combinations() -> None:
    workbook = f"{STREAMS}{QUERIES}CREATE QUERY n AS NOT a; CREATE QUERY q AS NOT (n AND NOT b);"
    assert run_whole(local_job(workbook, "q"), EVENTS) == ask("a OR b")


def test_the_union_of_independent_sets() -> None:
    rng = np.random.default_rng(5)
    group = np.array([0, 0, 0, 1, 2, 2])
    p = rng.random((6, 4))
    p /= p.sum(axis=1, keepdims=True)
    for number in range(3):
        rows = np.flatnonzero(group == number)
        want = np.zeros(4)
        for sets in itertools.product(range(4), repeat=len(rows)):
            want[np.bitwise_or.reduce(sets)] += np.prod([p[row, one] for row, one in zip(rows, sets, strict=True)])
        assert np.allclose(united(group, p)[number], want, atol=1e-12)


# ---------------------------------------------------------------- methods


LARGE = rows_of(
    *((stream, key, value, t, 0.3) for stream in "rs" for key in ("k1", "k2") for value in "abc" for t in range(1, 6))
)


@pytest.mark.parametrize("formula", ["joined AND b", "NOT joined", "joined GIVEN NOT b", "NOT joined GIVEN b"])
def test_the_joint_state_gives_the_answers_of_the_automaton(formula: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_automaton = ask(formula, LARGE)
    monkeypatch.setattr(archive, "MAX_MOVES", 0)
    by_joint_state = ask(formula, LARGE)
    assert by_automaton == pytest.approx(by_joint_state, abs=1e-12)
    assert by_automaton


def sampled_rows(formula: str, n_buckets: int) -> list[dict]:
    run = PlainRun(local_job(f"{STREAMS}{QUERIES}CREATE QUERY q AS {formula};", "q"), n_buckets)
    run.step(LARGE, end=True)
    rows = [row for outcome in run.outcomes for row in outcome.answers.to_pylist()]
    return sorted(rows, key=lambda row: (row["t"], row["p"]))


@pytest.mark.parametrize("formula", ["joined AND b", "NOT joined OR b", "joined GIVEN NOT b", "NOT joined GIVEN b"])
def test_sampled_intervals_hold_the_exact_probability(formula: str) -> None:
    exact = ask(formula, LARGE)
    sampled = sampled_rows(f"{formula} METHOD SAMPLING SEED 3", n_buckets=2)
    assert {(row["t"], row["p"]) for row in sampled} == exact.keys()
    for row in sampled:
        assert row["method"] == "sampling"
        assert row["lower"] <= exact[row["t"], row["p"]] <= row["upper"]
        assert row["lower"] <= row["probability"] <= row["upper"]
    if "GIVEN" not in formula:
        assert all(row["upper"] - row["lower"] <= 0.02 for row in sampled)


def test_the_same_seed_gives_the_same_rows_in_any_bucket() -> None:
    formula = "NOT joined OR b METHOD SAMPLING ACCURACY 0.05"
    assert sampled_rows(formula, 1) == sampled_rows(formula, 4)
    assert sampled_rows(formula, 1) != sampled_rows(f"{formula} SEED 9", 1)


def rows_of_run(job: PatternJob, parts: Sequence[Rows], n_buckets: int = 2) -> list[dict]:
    run = PlainRun(job, n_buckets)
    for part in parts[:-1]:
        run.step(part)
    run.step(parts[-1], end=True)
    assert run.counts.late == 0
    rows = [row for outcome in run.outcomes for row in outcome.answers.to_pylist()]
    return sorted(rows, key=lambda row: list(map(str, row.values())))


@pytest.mark.usefixtures("little_is_too_large")
@examples(25)
@given(st.data())
def test_any_split_has_the_worlds_of_the_archive(data: st.DataObject) -> None:
    """Chains are sampled at some instant, or from the beginning, whatever their other operands and chains are."""
    case = data.draw(combination_cases(classes=(GENERAL, EXTENDED)))
    method = data.draw(st.sampled_from(["", " METHOD SAMPLING"]))
    formula = data.draw(st.sampled_from(["a AND NOT b", "NOT a OR c", "a GIVEN NOT b"]))
    workbook = f"{case.workbook} CREATE QUERY sampled AS {formula} ACCURACY 0.2{method};"
    live, archived = (local_job(workbook, "sampled", case.relations, live) for live in (True, False))
    assume(not live.spec.analysis.by_automaton)
    whole = rows_of_run(live, [case.rows])
    assert rows_of_run(live, data.draw(splits(case.rows)), 3) == whole
    if method:
        assert rows_of_run(archived, [case.rows]) == whole


@pytest.fixture
def little_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most chains are sampled after some instants."""
    monkeypatch.setattr(joint, "MOST_WORK", 20)
    monkeypatch.setattr(joint, "WORK_PER_INSTANT", 1)


def test_an_exact_and_a_sampled_chain_of_a_group_are_combined(monkeypatch: pytest.MonkeyPatch) -> None:
    """k1 is sampled, and k2 exact: the combination is true in worlds that draw what is true for k2."""
    queries = """
    CREATE QUERY a AS PATTERN r(p, x) THEN r(p, x);
    CREATE QUERY b AS PATTERN r(p, 'a') THEN r(p, 'b');
    CREATE QUERY q AS a AND NOT b;
    """
    rows = rows_of(*(("r", "k1", value, t, 0.3) for value in "abc" for t in range(1, 6)),
                   *(("r", "k2", value, t, 0.4) for value in "ab" for t in range(4, 6)))  # fmt: skip
    exact = run_whole(local_job(STREAMS + queries, "q", live=True), rows)
    monkeypatch.setattr(joint, "MOST_WORK", 300)
    monkeypatch.setattr(joint, "WORK_PER_INSTANT", 0)
    found = rows_of_run(local_job(STREAMS + queries, "q", live=True), [rows])
    assert {row["method"] for row in found} == {"exact", "sampling"}
    for row in found:
        assert row["lower"] - 1e-9 <= exact[row["t"],] <= row["upper"] + 1e-9


def test_what_is_too_large_is_sampled_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_WORK", 0)
    monkeypatch.setattr(joint, "MOST_STATES", 0)
    assert {row["method"] for row in sampled_rows("joined AND b", 2)} == {"sampling"}
    with pytest.raises(TooLarge, match="METHOD EXACT excludes sampling"):
        sampled_rows("joined AND b METHOD EXACT", 2)


# ---------------------------------------------------------------- check, explain, checkpoints


def findings(query: str, more: str = "") -> list[str]:
    workbook = f"{STREAMS}{QUERIES}{more}CREATE QUERY q AS {query};"
    return [finding.line("w").split(": ", 1)[1] for finding in Planner().declare(parse(workbook))]


@pytest.mark.parametrize(
    ("query", "more", "message"),
    [
        ("a AND nope", "", "there is no query 'nope'; declare it with CREATE QUERY"),
        ("a AND r", "", "'r' is a stream, but a combination takes queries"),
        ("a AND c", "CREATE STREAM e KEY (k STRING) TIME t INTEGER; CREATE QUERY c AS CONSTRAIN v FROM e;",
         "query 'c' is a CONSTRAIN, but a combination takes PATTERN queries"),
        ("a AND a_any", "", "a is grouped by p, but a_any is not grouped; write the same GROUP BY in both"),
        ("a AND c", "CREATE QUERY c AS PATTERN r(p, 'a') GROUP BY p PER 3;",
         "query 'c' has PER, so it has no truth at an instant; combine a query without PER"),
        ("a AND c", "CREATE QUERY c AS PATTERN r(_, p) GROUP BY p;",
         "c is grouped by 'p', which is not the same key of all its goals; GROUP BY keys that all goals share"),
        ("a AND c", "CREATE STREAM e KEY (k STRING, p INTEGER) TIME t INTEGER;"
         "CREATE QUERY c AS PATTERN e(_, p) GROUP BY p;", "'p' is STRING in a, but INTEGER in c"),
        ("a AND c", "CREATE QUERY c AS a GIVEN b;", "query 'c' has a GIVEN, which stands outermost only"),
        ("q OR a", "", "'q' depends on itself: q reads q; combine other queries"),
        ("NOT a ACCURACY 2", "", "ACCURACY must be above 0 and below 1, not 2"),
    ],
)  # fmt: skip
def test_check_refuses(query: str, more: str, message: str) -> None:
    (found,) = findings(query, more)
    assert found.startswith(message)


def test_given_inside_is_refused_with_its_location() -> None:
    with pytest.raises(Exception, match=r"1:20: GIVEN cannot be a part of AND.*write it outermost"):
        parse("CREATE QUERY q AS (a GIVEN b) AND c;")


def test_groups_by_different_keys_of_one_stream_are_refused() -> None:
    workbook = """
    CREATE STREAM calls KEY (caller STRING, called STRING) TIME t INTEGER;
    CREATE QUERY a AS PATTERN calls(p, _) GROUP BY p;
    CREATE QUERY b AS PATTERN calls(_, p) GROUP BY p;
    CREATE QUERY q AS a AND b;
    """
    (found,) = Planner().declare(parse(workbook))
    assert found.message == "'p' is the key caller of calls in a, but the key called in b"


@pytest.mark.parametrize(
    "text",
    ["a AND b", "NOT (a OR b) AND c GIVEN NOT NOT d", "(a OR b) OR c SEED 3", "`pattern` AND given"],
)
def test_a_combination_is_written_as_it_is_read(text: str) -> None:
    workbook = parse(f"CREATE QUERY q AS {text};")
    assert parse(unparse(workbook)) == workbook


def plan_text(query: str) -> str:
    return str(prepared_query(f"{STREAMS}{QUERIES}CREATE QUERY q AS {query};", "q").plan)


def test_explain_shows_operands_states_and_method() -> None:
    text = plan_text("NOT a OR b")
    for part in ("extended regular", "formula    NOT a OR b", "at most 2 states",
                 "r(p, 'a') THEN r(p, 'b')", "one row for each group and instant", "streaming  yes"):  # fmt: skip
        assert part in text
    text = plan_text("a AND joined")
    for part in (
        "class      unsafe",
        "joined (unsafe)",
        "streaming  yes",
        "exact if the joint state of a chain is small, else sampling",
    ):
        assert part in text


def test_an_operand_whose_key_the_others_do_not_share_is_explained() -> None:
    workbook = STREAMS + "CREATE QUERY a AS PATTERN r(x, 'a') THEN r(x, 'b'); CREATE QUERY b AS PATTERN r(_, 'a')+;"
    text = str(prepared_query(f"{workbook}CREATE QUERY q AS a AND b;", "q").plan)
    assert "a is extended regular, but x is not a key that all operands share" in text


def identities(folder: Path, definitions: Sequence[str]) -> list[dict]:
    documents = []
    for number, definition in enumerate(definitions):
        path = folder / f"{number}.abq"
        path.write_text(f"{STREAMS}CREATE QUERY a AS {definition}; CREATE QUERY q AS NOT a;")
        group, layouts = group_of(path)
        chosen = [prepared for prepared in group if prepared.query.name == "q"]
        documents.append(identity_of(chosen, layouts[:1]))
    return documents


def test_a_checkpoint_belongs_to_the_definitions_of_the_operands(tmp_path: Path) -> None:
    queries = ["PATTERN r(p, 'a') GROUP BY p", "PATTERN r(p, 'b') GROUP BY p"]
    first, second, same = identities(tmp_path, [*queries, queries[0] + " THRESHOLD 0.5"])
    assert differences(first, second) == "belongs to another query, or to an earlier version of this query"
    assert differences(first, same) == ""
