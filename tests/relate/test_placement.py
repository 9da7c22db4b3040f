"""Live queries without an equality: each pair is decided, and each row counted, in one of several buckets."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.local import LocalRun, local_job
from tests.relate.local import run_stream

from anabranch.errors import StateError
from anabranch.relate.operator import PairOperator, RelateOperator
from anabranch.relate.placement import parts_for

STREAM = "CREATE STREAM {name} KEY (k INTEGER, g STRING) TIME t INTEGER ORDER n LENGTH l MODEL INTERVALS;"
QUERY = "CREATE QUERY q AS RELATE SOME a INTERSECTS SOME b FROM {first} AS a, {second} AS b WHERE {where};"
KEYS = 24


def job_of(first: str, second: str, where: str) -> object:
    streams = "".join(STREAM.format(name=name) for name in sorted({first, second}))
    return local_job(streams + QUERY.format(first=first, second=second, where=where), "q", live=True)


def segment(k: int, start: int, end: int) -> list[dict]:
    """The rows of an entity of one segment."""
    return [{"k": k, "g": f"g{k}", "n": n, "t": t, "l": 2} for n, t in ((1, start), (2, end))]


@given(st.integers(1, 60))
def test_one_bucket_decides_each_pair_of_parts_and_one_counts_each_part(n_buckets: int) -> None:
    buckets = parts_for(n_buckets)
    n_parts = buckets[0].of
    assert len(buckets) <= n_buckets < (n_parts + 1) * (n_parts + 2) // 2
    decided = Counter(pair for parts in buckets for pair in {(parts.one, parts.other), (parts.other, parts.one)})
    assert decided == Counter(product(range(n_parts), repeat=2))
    assert Counter(parts.one for parts in buckets if parts.is_repeated) == Counter(range(n_parts))


@pytest.mark.parametrize("n_buckets", [1, 2, 3, 7, 16])
@pytest.mark.parametrize(
    ("first", "second", "where"),
    [("s", "s", "a.k < b.k"), ("s", "s", "a.k <> 3"), ("s", "r", "a.k <= b.k"), ("s", "s", "a.k = b.k AND a.g <> b.g")],
)
def test_answers_and_counts_do_not_depend_on_the_buckets(first: str, second: str, where: str, n_buckets: int) -> None:
    job = job_of(first, second, where)
    batches = []
    for low in range(0, KEYS, 8):
        rows = [row for k in range(low, low + 8) for row in segment(k, 10 * low + k, 10 * low + k + 5)]
        batches.append(dict.fromkeys({first, second}, rows))
    late = segment(1, 0, 9)
    batches.append({first: late})
    run = run_stream(job, batches, n_buckets)
    one = run_stream(job, batches, 1)
    assert run.answers() == one.answers()
    assert sorted(run.all_reported()) == sorted(one.all_reported())
    assert run.counts == one.counts
    assert (run.counts.late, len(run.rejected)) == (len(late), len(late))
    decide = {
        "a.k < b.k": lambda a, b: a < b, "a.k <> 3": lambda a, b: a not in (b, 3), "a.k <= b.k": lambda a, b: a <= b,
    }.get(where, lambda a, b: False)  # fmt: skip
    expected = {
        (a, b) for a, b in product(range(KEYS), repeat=2) if a // 8 == b // 8 and abs(a - b) <= 5 and decide(a, b)
    }
    assert {(a[0], b[0]) for a, b in run.answers()} == expected


def test_several_buckets_have_answers() -> None:
    run = LocalRun(job_of("s", "s", "a.k < b.k"), n_buckets=16)
    run.step({"s": [row for k in range(100) for row in segment(k, 0, 5)]}, end=True)
    answers = [outcome.answers.num_rows for outcome in run.outcomes]
    assert sum(answers) == 100 * 99 // 2
    assert sum(number > 0 for number in answers) == 15


def test_state_with_all_entities_in_one_bucket_is_refused() -> None:
    job = job_of("s", "s", "a.k < b.k")
    with pytest.raises(StateError, match="has all entities in one bucket; start with a new checkpoint folder"):
        PairOperator(job.spec).open(RelateOperator(job.spec).save())
