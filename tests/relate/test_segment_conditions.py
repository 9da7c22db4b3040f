"""RELATE with conditions on segments: tables of the kernel, unknown attributes, pairs without related segments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.local import bound_query, in_context, local_job
from tests.oracles.relate import Conditions, distribution, enough
from tests.relate.kernels import codes_of, windows_of
from tests.relate.local import RelateRun, run_stream, run_whole
from tests.relate.strategies import DEFAULT, DIFFERING, Case, cases, written

from anabranch.relate import attributes, pairs
from anabranch.relate.analysis import RelateAnalysis, analyse
from anabranch.relate.attributes import Partners
from anabranch.relate.pairs import relate
from anabranch.relate.windows import Windows

STREAM = "CREATE STREAM s KEY (k STRING) VALUE (stop STRING) TIME t INTEGER MODEL INTERVALS ORDER seq LENGTH n;"


# ---------------------------------------------------------------- the kernel


class Drawn:
    """Conditions on the segments of one pair, instead of those of a query."""

    def __init__(self, conditions: Conditions) -> None:
        self.conditions = conditions

    def partners(self, pairs: np.ndarray) -> Partners:
        """The segments that are compared with each other."""
        conditions = self.conditions
        compared = [
            first and second and related
            for first, of_first in zip(conditions.first, conditions.pairs, strict=True)
            for second, related in zip(conditions.second, of_first, strict=True)
        ]
        n_partners = np.full(len(pairs), sum(conditions.second))
        return Partners(np.array(conditions.first), n_partners, np.array(compared))


def flags(n: int) -> st.SearchStrategy[tuple[bool, ...]]:
    return st.lists(st.booleans(), min_size=n, max_size=n).map(tuple)


def analysis_of(case: Case, count: str) -> RelateAnalysis:
    relations = " OR ".join(sorted(case.relations))
    query = f"RELATE {written(case.outer)} a ({relations}) {written(case.inner)} b FROM s AS a, s AS b {count}"
    return analyse(bound_query(f"{STREAM} CREATE QUERY q AS {query};", "q"))


@pytest.mark.parametrize("chains", [False, True])
@given(data=st.data(), count=st.sampled_from(["", "COUNT"]))
def test_the_sweep_uses_the_table_of_each_segment(chains: bool, data: st.DataObject, count: str) -> None:
    """For segments and gaps without a law, both kernels give the same."""
    case = data.draw(cases(DEFAULT if chains else DIFFERING, most_lost=4))
    rows, columns = case.a.segments, case.b.segments
    compared = tuple(data.draw(flags(columns)) for _ in range(rows))
    conditions = Conditions(data.draw(flags(rows)), data.draw(flags(columns)), compared)
    first, second = (with_laws(windows_of([codes_of(x, 210)]), chains) for x in (case.a, case.b))
    got = relate(analysis_of(case, count), False, first, second, np.array([[0, 0]]), Drawn(conditions))
    want = distribution(case.a, case.b, case.inner, case.relations, conditions)
    true = sum(p for n, p in enumerate(want) if enough(n, case.outer, len(want) - 1))
    assert (got.probability[0], got.complement[0]) == pytest.approx((float(true), float(1 - true)), abs=1e-11)
    if count:
        assert got.distribution == pytest.approx([float(p) for p in want], abs=1e-11)
        assert got.expected[0] == pytest.approx(float(sum(n * p for n, p in enumerate(want))), abs=1e-11)


def with_laws(windows: Windows, chains: bool) -> Windows:
    n = len(windows.lo)
    return replace(windows, phases=np.ones(n, np.int64), rates=np.zeros(n)) if chains else windows


# ---------------------------------------------------------------- attributes


def rows_of(key: str, *events: tuple[int, int | None, str | None], n: int | None = None) -> list[dict[str, Any]]:
    """Rows from seq, time and stop."""
    return [{"k": key, "seq": seq, "t": t, "stop": stop, "n": n} for seq, t, stop in events]


def job_of(query: str, stream: str = STREAM):
    return local_job(f"{stream} CREATE QUERY q AS RELATE {query};", "q")


def probabilities(query: str, rows: list[dict[str, Any]]) -> dict[tuple[str, str], float]:
    run = run_whole(job_of(query), {"s": rows})
    return {pair: answer.probability for pair, answer in run.answers().items()}


X = rows_of("x", (1, 0, "p"), (2, 4, None), (3, 10, "q"), (4, 14, None))
Y = rows_of("y", (1, 2, "p"), (2, 3, None), (3, 12, "r"), (4, 20, None))


@pytest.mark.parametrize(
    ("query", "holds"),
    [
        ("AT LEAST 2 a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k", True),
        ("AT LEAST 2 a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k AND a.stop = b.stop", False),
        ("EXACTLY 1 a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k AND a.stop = b.stop", True),
        ("ALL a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k AND a.stop = b.stop", False),
        ("ALL a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k AND a.stop = b.stop AND a.stop = 'p'", True),
        ("ALL a DURING SOME b FROM s AS a, s AS b WHERE a.k < b.k AND a.stop = 'nowhere'", True),
        ("ALL a INTERSECTS ALL b FROM s AS a, s AS b WHERE a.k < b.k AND a.stop = 'p' AND b.stop = 'p'", True),
        ("SOME a INTERSECTS ALL b FROM s AS a, s AS b WHERE a.k < b.k AND a.stop = b.stop", False),
        ("SOME a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k AND b.stop = a.k", False),
        ("SOME a INTERSECTS EXACTLY 0 b FROM s AS a, s AS b WHERE a.k < b.k AND a.stop = b.stop", True),
    ],
)
def test_certain_segments(query: str, holds: bool) -> None:
    assert probabilities(query, X + Y) == ({("x", "y"): 1.0} if holds else {})


@pytest.mark.parametrize("condition", ["a.stop = 'q'", "a.stop <> 'p'", "a.stop IS NULL", "a.stop = b.stop OR TRUE"])
def test_unknown_attributes_satisfy_nothing(condition: str) -> None:
    """The row of the event that opens the second segment of x is absent: its stop is unknown."""
    query = f"AT LEAST 1 a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k = 'x' AND ({condition})"
    long = rows_of("y", (1, 5, "q"), (2, 13, None))
    assert probabilities(query, [X[0], X[1], X[3], *long]) == {}
    assert probabilities(query, [X[0], X[1], {**X[2], "stop": None}, X[3], *long]) == (
        {("x", "y"): 1.0} if "NULL" in condition or "TRUE" in condition else {}
    )


def test_the_row_of_a_lost_opening_event_has_its_attributes() -> None:
    query = "SOME a CONTAINS SOME b FROM s AS a, s AS b WHERE a.stop = b.stop"
    lost = [X[0], X[1], {**X[2], "t": None}, X[3]]
    assert probabilities(query, [*lost, *rows_of("y", (1, 9, "q"), (2, 13, None))]) == {("x", "y"): 0.5}


def test_rows_that_differ_in_a_used_attribute_make_their_entity_invalid() -> None:
    again = {**X[0], "stop": "other"}
    query = "SOME a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k"
    run = run_whole(job_of(f"{query} AND a.stop = b.stop"), {"s": [*X, again, *Y]})
    assert run.reasons() == {"two different rows of its entity have the same position": 5}
    assert sum('"stop": "other"' in row["row"] for row in run.rejected) == 1
    assert run_whole(job_of(query), {"s": [*X, again, *Y]}).counts.duplicate == 1


def test_large_tables_are_evaluated_segment_by_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    query = "AT LEAST 1 a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.stop = b.stop AND a.k <> b.k COUNT"
    want = run_whole(job_of(query), {"s": X + Y}).answers()
    monkeypatch.setattr(attributes, "MOST_IN_ADVANCE", 0)
    monkeypatch.setattr(pairs, "CELLS_AT_ONCE", 1)
    assert run_whole(job_of(query), {"s": X + Y}).answers() == want
    assert {pair: answer.distribution for pair, answer in want.items()} == dict.fromkeys(
        [("x", "y"), ("y", "x")], (0.0, 1.0, 0.0)
    )


# ---------------------------------------------------------------- pairs without related segments


@pytest.mark.parametrize(
    ("query", "holds"),
    [
        ("AT MOST 1 a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k", True),
        ("EXACTLY 0 a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k", True),
        ("EXACTLY 1 a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k", False),
        ("SOME a INTERSECTS AT MOST 1 b FROM s AS a, s AS b WHERE a.k < b.k", True),
        ("AT MOST 1 a PRECEDES SOME b FROM s AS a, s AS b WHERE a.k < b.k", False),
        ("EXACTLY 2 a PRECEDES EXACTLY 1 b FROM s AS a, s AS b WHERE a.k < b.k", True),
        ("EXACTLY 1 a PRECEDES SOME b FROM s AS a, s AS b WHERE a.k < b.k AND a.stop = 'p'", True),
        ("ALL a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k AND a.stop = 'nowhere'", True),
        ("SOME a INTERSECTS ALL b FROM s AS a, s AS b WHERE a.k < b.k AND b.stop = 'nowhere'", True),
        ("ALL a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k", False),
    ],
)
def test_entities_that_are_apart(query: str, holds: bool) -> None:
    """In batch, and on a stream in which the second entity begins long after the end of the first."""
    later = rows_of("z", (1, 1000, "p"), (2, 1004, None), n=2)
    first = [{**row, "n": 4} for row in X]
    want = {("x", "z"): 1.0} if holds else {}
    assert probabilities(query, first + later) == want
    run = run_stream(in_context(job_of(query), live=True), [{"s": first}, {"s": later}])
    assert {pair: answer.probability for pair, answer in run.answers().items()} == want


# ---------------------------------------------------------------- state


def test_only_the_attributes_of_kept_rows_are_saved() -> None:
    query = "SOME a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.stop = b.stop AND a.k <> b.k"
    run = RelateRun(in_context(job_of(query), live=True), n_buckets=1)
    for day in range(5):
        events = ((1, 100 * day, f"stop {day}"), (2, 100 * day + 5, None))
        run.step({"s": rows_of(f"x{day}", *events, n=2) + rows_of(f"y{day}", *events, n=2)})
    (store,) = run.stores()
    assert set(store.values.to_table()["0"].to_pylist()) <= {"stop 4", None}
    assert len(run.latest()) == 10
    assert all(answer.probability == 1.0 for answer in run.latest().values())


def test_a_change_of_the_distribution_is_reported() -> None:
    """On a stream, SOME holds after the first segment, and the expected number grows with the second."""
    query = "SOME a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k AND a.stop = b.stop COUNT"
    run = RelateRun(in_context(job_of(query), live=True), n_buckets=1)
    run.step({"s": X[:2] + Y[:2]})
    run.step({"s": X[2:] + [{**Y[2], "stop": "q"}, Y[3]]})
    assert [answer.distribution for _, answer in run.all_reported()] == [(0.0, 1.0), (0.0, 0.0, 1.0)]
    assert [answer.expected for _, answer in run.all_reported()] == [1.0, 2.0]
