"""HORIZON by column: each entity has its own, in any of its rows; the answers are those of explicit windows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.language.workbooks import codes
from tests.local import local_job
from tests.relate.local import run_stream, run_whole
from tests.relate.test_segments import QUERY, answers, batches_of, long_rows, segmented, splits, wide_job, wide_rows

from anabranch.relate.job import RelateJob

STREAM = "CREATE STREAM s KEY (k STRING) TIME t INTEGER MODEL INTERVALS ORDER seq LENGTH total {clauses}; "
BY_COLUMN = "HORIZON [opens, closes]"


def job_of(clauses: str, live: bool = False) -> RelateJob:
    return local_job((STREAM + QUERY).format(clauses=clauses, tail=""), "q", live=live)


horizons = st.fixed_dictionaries(dict.fromkeys("wxyz", st.tuples(st.integers(-9, -1), st.integers(31, 40))))


@given(segmented(lost=True), horizons, splits, st.randoms(use_true_random=False))
def test_the_answers_are_those_of_windows(entities: dict, own: dict, cuts: list[int], random: Any) -> None:
    rows = [row | dict(zip(("opens", "closes"), own[row["k"]], strict=True)) for row in long_rows(entities)]
    windows = [row | {"lo": row["opens"], "hi": row["closes"]} for row in rows]
    expected = answers(run_whole(job_of("WINDOW (lo, hi)"), {"s": windows}))
    # Rows of lost events may be absent, and one row of an entity is enough for its horizon and its length.
    stated: set[str] = set()
    some = []
    for row in random.sample(rows, len(rows)):
        if row["t"] is None and row["k"] in stated and random.random() < 0.5:
            continue
        if row["k"] in stated and random.random() < 0.5:
            row = row | {"opens": None, "closes": None}
        stated.add(row["k"])
        some.append(row)
    assert answers(run_whole(job_of(BY_COLUMN), {"s": some})) == expected
    live = job_of(f"{BY_COLUMN} WATERMARK 100", live=True)
    assert answers(run_stream(live, batches_of(cuts, some))) == expected


@given(segmented(lost=True))
def test_a_constant_column_is_a_constant(entities: dict) -> None:
    rows = [row | {"opens": -5, "closes": 35} for row in wide_rows(entities)]
    expected = answers(run_whole(wide_job("ORDER n HORIZON [-5, 35]"), {"s": rows}))
    for horizon in ("[opens, closes]", "[-5, closes]", "[opens, 35]"):
        assert answers(run_whole(wide_job(f"ORDER n HORIZON {horizon}"), {"s": rows})) == expected


def test_rows_that_disagree_and_horizons_that_are_no_interval_are_quarantined() -> None:
    rows = [{"k": "x", "seq": seq, "t": t, "opens": o, "closes": 9} for seq, t, o in ((1, None, 0), (2, 5, 1))]
    rows += [{"k": "y", "seq": seq, "t": t, "opens": 9, "closes": 9} for seq, t in ((1, None), (2, 5))]
    run = run_whole(job_of(BY_COLUMN), {"s": rows})
    assert run.reasons() == {"the rows of its entity disagree about the HORIZON": 2, "opens is not before closes": 2}
    assert run.rejected[-1]["row"] == '{"k": "x", "t": 5, "seq": 2, "total": null, "opens": 1, "closes": 9}'


@pytest.mark.parametrize(
    ("clauses", "code"),
    [
        ("MODEL CERTAIN HORIZON [a, b]", "clause-model"), ("MODEL INTERVALS ORDER seq HORIZON [a, a]", "name-twice"),
        ("MODEL INTERVALS ORDER seq HORIZON [a, 'soon']", "not-a-time"),
        ("INTERVALS FROM e WHILE v > 3 HORIZON [a, b]", "clause-model"),
    ],
)  # fmt: skip
def test_horizons_that_do_not_fit(clauses: str, code: str) -> None:
    text = f"CREATE STREAM e KEY (k) VALUE (v) TIME t; CREATE STREAM s KEY (k) TIME t INTEGER {clauses};"
    assert codes(text) == [code]
