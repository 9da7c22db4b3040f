"""Candidate pairs: equated columns of two types, further conditions, and chunks of pairs."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from tests.local import LocalRun, in_context, local_job
from tests.relate.local import RelateRun, run_stream, run_whole

from anabranch.relate import pairing

TWO_STREAMS = """
CREATE STREAM s KEY (k {left}) TIME t INTEGER MODEL INTERVALS ORDER seq;
CREATE STREAM r KEY (k {right}) TIME t INTEGER MODEL INTERVALS ORDER seq;
CREATE QUERY q AS RELATE SOME a INTERSECTS SOME b FROM s AS a, r AS b WHERE a.k = b.k;
"""


def segment(start: int = 0, end: int = 5, **key: object) -> list[dict]:
    """The rows of an entity of one segment."""
    return [{**key, "seq": 1, "t": start}, {**key, "seq": 2, "t": end}]


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize(
    ("left", "right", "one", "other"),
    [
        ("INTEGER", "DOUBLE", 3, 3.0),
        ("DOUBLE", "DOUBLE", 0.0, -0.0),
        ("INTEGER", "DOUBLE", 2**60 + 1, 2.0**60),
        ("STRING", "STRING", "é", "é"),
    ],
)
def test_entities_with_equal_keys_are_paired(left: str, right: str, one: object, other: object, live: bool) -> None:
    job = local_job(TWO_STREAMS.format(left=left, right=right), "q", live=live)
    others = segment(k="x" if left == "STRING" else 7)
    run = RelateRun(job, n_buckets=5)
    run.step({"s": segment(k=one) + others, "r": segment(k=other)}, end=True)
    assert run.answers().keys() == {(one, other)}


@pytest.mark.parametrize("live", [False, True])
def test_operators_decide_the_pairs_of_their_bucket(live: bool) -> None:
    job = local_job(TWO_STREAMS.format(left="INTEGER", right="INTEGER"), "q", live=live)
    rows = {
        name: [row for k in range(first, first + 6) for row in segment(k=k)] for name, first in (("s", 0), ("r", 3))
    }
    run = LocalRun(job, n_buckets=4)
    run.step(rows, end=True)
    answers = [row for outcome in run.outcomes for row in outcome.answers.to_pylist()]
    assert sorted((row["a"]["k"], row["b"]["k"], row["probability"]) for row in answers) == [
        (3, 3, 1.0), (4, 4, 1.0), (5, 5, 1.0),
    ]  # fmt: skip
    assert sum(outcome.answers.num_rows > 0 for outcome in run.outcomes) > 1


@pytest.mark.parametrize("where", ["a.n = b.m", "a.n < b.n"])
def test_other_pairs_are_decided_in_blocks(where: str) -> None:
    workbook = (
        "CREATE STREAM s KEY (n INTEGER, m INTEGER) TIME t INTEGER MODEL INTERVALS ORDER seq;"
        f"CREATE QUERY q AS RELATE SOME a INTERSECTS SOME b FROM s AS a, s AS b WHERE {where};"
    )
    assert local_job(workbook, "q").finishing().pairing is not None


@pytest.mark.parametrize(
    ("where", "chosen"),
    [
        ("a.road = b.road AND a.n < b.n", lambda a, b: a[0] == b[0] and a[1] < b[1]),
        ("a.n = b.m", lambda a, b: a[1] == b[2]),
        ("a.n = b.m AND b.n = a.m", lambda a, b: a[1] == b[2] and b[1] == a[2]),
        ("a.road = 'M1' AND busy(b.road, a.n)", lambda a, b: a[0] == "M1" and (b[0], a[1]) in BUSY),
        ("a.road = 'M1' OR b.road = 'M1'", lambda a, b: "M1" in (a[0], b[0])),
    ],
)
def test_where_selects_pairs(where: str, chosen: Callable[[tuple, tuple], bool]) -> None:
    workbook = (
        "CREATE RELATION busy (road STRING, n INTEGER);"
        "CREATE STREAM s KEY (road STRING, n INTEGER, m INTEGER) TIME t INTEGER MODEL INTERVALS ORDER seq WATERMARK 9;"
        f"CREATE QUERY q AS RELATE SOME a INTERSECTS SOME b FROM s AS a, s AS b WHERE {where};"
    )
    keys = list(itertools.product(("M1", "M2"), range(3), range(2)))
    rows = [row for road, n, m in keys for row in segment(road=road, n=n, m=m)]
    want = {(a, b) for a, b in itertools.product(keys, repeat=2) if a != b and chosen(a, b)}
    job = local_job(workbook, "q", {"busy": BUSY})
    whole = run_whole(job, {"s": rows}, n_buckets=4)
    stream = run_stream(in_context(job, live=True), [{"s": rows[:9]}, {"s": rows[9:]}], n_buckets=4)
    for run in (whole, stream):
        assert run.answers().keys() == want
        assert run.counts.used == run.counts.read


BUSY = [("M1", 0), ("M2", 1), ("M2", 2)]


def test_pairs_are_processed_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row for n in range(40) for row in segment(start=n, end=n + 7, k=n)]
    workbook = """
    CREATE STREAM s KEY (k INTEGER) TIME t INTEGER MODEL INTERVALS ORDER seq;
    CREATE QUERY q AS RELATE SOME a OVERLAPS SOME b FROM s AS a, s AS b;
    """
    job = local_job(workbook, "q")
    whole = run_whole(job, {"s": rows}).answers()
    assert whole.keys() == {(a, b) for a in range(40) for b in range(40) if a < b < a + 7}
    for at_once in (1, 13, 100):
        monkeypatch.setattr(pairing, "PAIRS_AT_ONCE", at_once)
        assert run_whole(job, {"s": rows}).answers() == whole
