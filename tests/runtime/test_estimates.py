"""Estimates from a sample: within a factor of the counts of a run, on simulated data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from anabranch import Session
from anabranch.planning.estimates import estimate
from anabranch.planning.prepared import with_job
from anabranch.runtime import execution
from anabranch.runtime.estimates import take_sample
from anabranch.simulate import SCENARIOS
from anabranch.simulate.options import make_options

#: How far an estimate may be from the count, as the documentation says.
FACTOR = 3

#: Scenario, its options, a query of it, and about how many rows are sampled.
CASES: list[tuple[str, dict[str, Any], str, int]] = [
    ("office", {"people": 30, "minutes": 30}, "coffee", 20_000),
    ("shop", {"items": 1500}, "purchase", 500),
    ("traffic", {"sectors": 60}, "jam", 600),
    ("vehicles", {"objects": 150}, "near", 800),
    ("buoys", {}, "cold_wake", 5_000),
]


@pytest.mark.parametrize(("scenario", "options", "query", "rows"), CASES, ids=[case[0] for case in CASES])
def test_an_estimate_is_within_the_stated_factor(
    spark: SparkSession, tmp_path: Path, scenario: str, options: dict[str, Any], query: str, rows: int
) -> None:
    chosen = SCENARIOS[scenario]
    session = Session(spark)
    session.execute_file(str(chosen.fill(tmp_path, 1, make_options(chosen.options, options))))
    n_answers = session.run(query).count()
    resolved = execution.resolve(
        session._workspace.planner, session._workspace.bindings, [session.catalog.query(query)]
    )
    (prepared,) = resolved.prepared
    sample = take_sample(resolved.sources, resolved.job.layouts, prepared.analysis.sampling, rows)
    assert sample.n_rows < 0.7 * sample.total_rows
    estimated = estimate(resolved.job, None, sample)
    assert n_answers / FACTOR <= estimated.answers <= n_answers * FACTOR


def test_all_rows_give_the_exact_count(spark: SparkSession) -> None:
    session = Session(spark)
    session.execute(
        "CREATE STREAM s KEY (k STRING) VALUE (v STRING) TIME t INTEGER;"
        "CREATE QUERY q AS PATTERN s(x, 'a') THEN s(x, 'b') GROUP BY x;"
    )
    session.bind("s", [{"k": f"k{n}", "v": "ab"[t], "t": t} for n in range(5) for t in range(2)])
    steps = {step.id: step.does for step in session.estimate("q").steps}
    assert steps["answers"] == "5"
    assert steps["sample"] == "all rows (10 of 10 rows)"
    assert "of state in a stream" in steps["memory"]


def test_the_state_of_a_stream_has_the_copies_of_all_buckets(spark: SparkSession) -> None:
    """Without an equality, an entity of RELATE is in two of the buckets of a checkpoint that has four."""
    session = Session(spark)
    session.execute(
        "CREATE STREAM s KEY (k STRING) TIME t INTEGER ORDER n LENGTH l MODEL INTERVALS;"
        "CREATE QUERY q AS RELATE SOME a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k;"
    )
    session.bind("s", [{"k": f"key {n}", "t": n + e, "n": e, "l": 3} for n in range(2000) for e in (1, 2)])
    resolved = execution.resolve(session._workspace.planner, session._workspace.bindings, [session.catalog.query("q")])
    (prepared,) = resolved.prepared
    _, live_job = with_job([prepared], replace(resolved.context, live=True))
    sample = take_sample(resolved.sources, resolved.job.layouts, prepared.analysis.sampling, 10_000)
    one, four = (estimate(resolved.job, live_job, sample, n_buckets).state for n_buckets in (1, 4))
    assert 1.8 * one < four < 2.4 * one
