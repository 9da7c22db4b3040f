"""Queries over answers: compared with the enumeration of the worlds of the streams that are read."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.local import bound_query, local_job, prepared_query, to_table
from tests.oracles import composed as oracle
from tests.pattern.local import LocalRun, assert_same
from tests.splits import splits

from anabranch.language import nodes
from anabranch.planning.in_process import answers_in_process

Rows = Mapping[str, Sequence[Mapping[str, Any]]]

STREAMS = """
CREATE STREAM r KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE STREAM s KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE STREAM m KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL MARKOV;
CREATE STREAM first FROM QUERY one;
CREATE STREAM other FROM QUERY two;
"""
SEQ = "SEQUENCE (u, v) FROM first AS u, other AS v WHERE u.t > 0"
SEQ_BASE = "SEQUENCE (u, v) FROM first AS u, r AS v WHERE v.v = 'b'"
INNER = [
    "PATTERN r(x, 'a') GROUP BY x",
    "PATTERN r(x, 'a') THEN r(x, 'b') GROUP BY x",
    "PATTERN r(x, v) THEN s(x, v) GROUP BY x",
    "PATTERN r(x, 'a') THEN r(x, 'b') GROUP BY x WITHIN 1",
    "PATTERN s(x, 'b') GROUP BY x",
    "PATTERN s(x, 'a')+ THEN s(x, 'b') GROUP BY x",
    "PATTERN m(x, 'a') GROUP BY x",
    "PATTERN m(x, 'a') THEN m(x, 'b') GROUP BY x",
    "PATTERN m(x, 'a') GROUP BY x THRESHOLD 0.2",
    "PATTERN r(x, 'a') THEN r(x, 'b') GROUP BY x THRESHOLD 0.1",
]
OUTER = [
    "PATTERN first(x) THEN first(x) GROUP BY x",
    "PATTERN first(x) THEN other(x) GROUP BY x",
    "PATTERN first(x) THEN other(y)",
    "PATTERN first(x) THEN NOT other(x) THEN first(x) GROUP BY x",
    "PATTERN first(x)+<x> THEN other(x) GROUP BY x",
    "PATTERN first(x) THEN other(x)",
    "PATTERN (first(x) OR other(x)) THEN first(x) GROUP BY x",
    "PATTERN first(x) THEN r(x, 'b') GROUP BY x",
    "PATTERN first(x)",
    "PATTERN first(x) GROUP BY x",
    SEQ,
    "SEQUENCE (u, v, w) FROM first AS u, first AS v, other AS w WHERE u.x = v.x",
    SEQ_BASE,
    "SEQUENCE (u, v) FROM first AS u, other AS v WHERE v.t > 0 MISS u 0.25 DELAY u UNIFORM(0, 4) WITHIN 3",
    "CONSTRAIN u, v FROM first AS u, other AS v WHERE u.x = v.x AND v.t - u.t IN [0, 2]",
    "CONSTRAIN u, v, w FROM first AS u, first AS v, r AS w WHERE v.t - u.t IN [1, 2] AND w.t - u.t IN [0, 2]",
]


def workbook_of(one: str, two: str, outer: str) -> str:
    return f"{STREAMS}CREATE QUERY one AS {one};CREATE QUERY two AS {two};CREATE QUERY q AS {outer};"


def run(workbook: str, name: str, rows: Rows) -> list[dict[str, Any]]:
    """The answers of a query in this process, after those of the queries that it reads."""
    job = local_job(workbook, name)
    streams = prepared_query(workbook, name).bound.streams
    by_name = {
        stream.name.lower(): run(workbook, stream.source.name, rows)
        if isinstance(stream.source, nodes.QuerySource)
        else rows.get(stream.name, ())
        for stream in streams
    }
    tables = [to_table(job, index, by_name[layout.name.lower()]) for index, layout in enumerate(job.layouts)]
    return answers_in_process(job, tables)[0].to_pylist()


def keyed(workbook: str, rows: list[dict[str, Any]]) -> dict[Hashable, dict[str, Any]]:
    """The answers by what the oracle calls them."""
    bound = bound_query(workbook, "q")
    if bound.kind == "PATTERN":
        names = ["t", *(name for name, _ in bound.group_by)]
        return {tuple(row[name] for name in names): row for row in rows}
    return {oracle.key_of(bound, row): row for row in rows}


def assert_honest(workbook: str, rows: Rows) -> set[str]:
    """Check that bounds hold the true probabilities, and that others are equal to them; returns the methods."""
    truth = oracle.ask(workbook, "q", rows)
    got = keyed(workbook, run(workbook, "q", rows))
    methods = set()
    for key in truth.keys() | got.keys():
        p, row = truth.get(key, 0.0), got.get(key)
        assert row is not None, (key, p)
        methods.add(row.get("method", "exact"))
        if row.get("method", "exact") == "exact":
            assert abs(row["probability"] - p) <= 1e-9, (key, p, row)
        else:
            assert row["probability"] == row["lower"]
            assert row["lower"] - 1e-9 <= p <= row["upper"] + 1e-9, (key, p, row)
    return methods


CHANCES = st.sampled_from([0.0, 0.25, 0.3, 0.5, 0.7, 0.9, 1.0])


@st.composite
def base_rows(draw: st.DrawFn) -> Rows:
    """Rows of two keys at up to three instants."""
    rows: dict[str, list[dict[str, Any]]] = {"r": [], "s": [], "m": []}
    for stream in ("r", "s"):
        for key, t in draw(st.sets(st.tuples(st.sampled_from(["j", "k"]), st.integers(1, 3)), max_size=3)):
            a = draw(CHANCES)
            for value, p in (("a", a), ("b", (1 - a) * draw(CHANCES))):
                rows[stream].append({"k": key, "v": value, "t": t, "p": p})
    previous: list[str | None] = [None]
    for t in range(1, draw(st.integers(0, 3)) + 1):
        for before in previous:
            a = draw(CHANCES)
            rows["m"] += [{"k": "j", "prev_v": before, "v": v, "t": t, "p": p} for v, p in (("a", a), ("b", 1 - a))]
        previous = ["a", "b"]
    return rows


@given(st.sampled_from(INNER), st.sampled_from(INNER), st.sampled_from(OUTER), base_rows())
def test_bounds_hold_the_truth_and_exact_answers_are_the_truth(one: str, two: str, outer: str, rows: Rows) -> None:
    assert_honest(workbook_of(one, two, outer), rows)


@given(st.sampled_from(INNER), st.sampled_from(INNER), st.sampled_from(OUTER[:6]), base_rows(), st.data())
def test_one_automaton_streams_in_any_split(one: str, two: str, outer: str, rows: Rows, data: st.DataObject) -> None:
    workbook = workbook_of(one, two, outer)
    plan = prepared_query(workbook, "q").plan
    assume(any("one automaton" in step.does for step in plan.steps))
    job = local_job(workbook, "q", live=True)
    run = LocalRun(job, n_buckets=2)
    read = {layout.name: rows[layout.name] for layout in job.layouts}
    run.run(data.draw(splits(read)))
    assert_same(run.answers(), oracle.ask(workbook, "q", rows), threshold=0.0)


# ---------------------------------------------------------------- which case applies


@pytest.mark.parametrize(
    ("one", "two", "outer", "lineage"),
    [
        (INNER[0], INNER[4], OUTER[0], "exact: no two events that an answer combines depend on the same rows"),
        (INNER[0], INNER[4], OUTER[1], "exact: no two events that an answer combines depend on the same rows"),
        (INNER[1], INNER[4], OUTER[0], "exact: one automaton for this query and those whose answers it reads"),
        (INNER[0], INNER[1], OUTER[1], "exact: one automaton for this query and those whose answers it reads"),
        # In the second inner query, the events of all keys match the goal with the +.
        (INNER[4], INNER[5], OUTER[4], "bounds: rows of other depend on the same rows of s"),
        (INNER[8], INNER[4], OUTER[0], "bounds: rows of first depend on the same rows of m"),
        (INNER[9], INNER[4], OUTER[0], "bounds: rows of first depend on the same rows of r"),
        (INNER[0], INNER[3], OUTER[1], "bounds: rows of other depend on the same rows of r"),
        (INNER[1], INNER[5], SEQ, "exact: no two events that an answer combines depend on the same rows"),
        (INNER[1], INNER[2], SEQ, "bounds: u and v may depend on the same rows of r"),
        (INNER[1], INNER[2], SEQ_BASE, "bounds: u and v may depend on the same rows of r"),
    ],
)
def test_the_plan_says_whether_answers_are_exact_and_why(one: str, two: str, outer: str, lineage: str) -> None:
    plan = prepared_query(workbook_of(one, two, outer), "q").plan
    assert [step.does for step in plan.steps if step.id == "lineage"] == [lineage]
    assert any(step.id == "chain" for step in plan.steps) == ("one automaton" not in lineage)


def certain(*events: tuple[str, str, int, float]) -> Rows:
    return {"r": [{"k": k, "v": v, "t": t, "p": p} for k, v, t, p in events]}


def test_answers_with_disjoint_lineages_are_exact_in_a_query_with_bounds() -> None:
    """Two answers of one key overlap, those of different keys do not."""
    rows = certain(("j", "a", 1, 0.5), ("j", "b", 2, 0.5), ("j", "b", 3, 0.5), ("k", "a", 1, 0.5), ("k", "b", 3, 0.5))
    workbook = workbook_of(INNER[1], INNER[1], "SEQUENCE (u, v) FROM first AS u, first AS v WHERE u.t > 0")
    answers = {(row["u"]["x"], row["v"]["x"]): row for row in run(workbook, "q", rows)}
    assert [answers["j", "k"][name] for name in ("probability", "lower", "upper", "method")] == [0.0625] * 3 + ["exact"]
    # P(a at 1, b at 2) is 0.25, P(a at 1, b at 3 as the first b after it) is 0.125: both are never true.
    assert [answers["j", "j"][name] for name in ("probability", "upper", "method")] == [0.0, 0.125, "bounds"]
    assert_honest(workbook, rows)


# ---------------------------------------------------------------- bounds are reached

SAME = "CONSTRAIN u, v FROM first AS u, other AS v WHERE u.x = v.x AND v.t - u.t IN [0, 0]"


@given(st.lists(st.integers(0, 20), min_size=4, max_size=4).filter(any))
def test_the_bounds_of_two_answers_are_reached(weights: list[int]) -> None:
    """A and B are sets of values of one row: they are nested, disjoint or cover all values."""
    p = dict(zip("abcd", (weight / sum(weights) for weight in weights), strict=True))
    rows = certain(*(("j", value, 1, share) for value, share in p.items()))

    def bounds(one: str, two: str) -> tuple[float, float, float]:
        """The true probability, and its bounds."""
        queries = [f"PATTERN r(x, v)[v IN ({values})] GROUP BY x" for values in (one, two)]
        workbook = workbook_of(*queries, SAME)
        row = next(iter(run(workbook, "q", rows)), {"lower": 0.0, "upper": 0.0})
        return next(iter(oracle.ask(workbook, "q", rows).values()), 0.0), row["lower"], row["upper"]

    truth, _, upper = bounds("'a'", "'a', 'b'")
    assert truth == pytest.approx(upper, abs=1e-12)
    for one, two in (("'a', 'b'", "'c', 'd'"), ("'a', 'b', 'c'", "'c', 'd'")):
        truth, lower, _ = bounds(one, two)
        assert truth == pytest.approx(lower, abs=1e-12)


@given(CHANCES.filter(bool), CHANCES.filter(bool))
def test_the_bounds_of_a_pattern_over_two_answers_are_reached(p: float, q: float) -> None:
    """A MARKOV key is 'a' at 1 with p and at 2 with q: as often as possible at both, or as rarely as possible."""
    workbook = workbook_of(INNER[8], INNER[4], OUTER[0])
    for both in (min(p, q), max(0.0, p + q - 1)):
        after = {"a": both / p if p else 0.0, "b": (q - both) / (1 - p) if p < 1 else 0.0}
        first = {"k": "j", "prev_v": None, "t": 1}
        rows = [first | {"v": "a", "p": p}, first | {"v": "b", "p": 1 - p}]
        rows += [{"k": "j", "prev_v": v, "v": "a", "t": 2, "p": min(share, 1.0)} for v, share in after.items()]
        truth = oracle.ask(workbook, "q", {"m": rows}).get((2, "j"), 0.0)
        row = next(iter(run(workbook, "q", {"m": rows})), {"lower": 0.0, "upper": 0.0})
        assert truth == pytest.approx(both, abs=1e-12)
        reached = row["upper"] if both == min(p, q) else row["lower"]
        assert reached == pytest.approx(truth, abs=1e-12)
