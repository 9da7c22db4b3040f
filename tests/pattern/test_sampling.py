"""Sampled worlds: their distribution, their intervals, and that they depend only on SEED."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import assume, given
from tests.cases import Case
from tests.drawn import examples
from tests.local import local_job
from tests.pattern.local import LocalRun, run_whole
from tests.pattern.strategies import CLASSES, pattern_cases
from tests.pattern.test_against_worlds import expected, job_of

from anabranch.columns.intervals import interval
from anabranch.errors import TooLarge
from anabranch.pattern import archive
from anabranch.pattern.kernel.words import count_bits, draw_values

#: Two people in one place, one after the other: too large for exact answers with a dozen people.
WORKBOOK = """
CREATE STREAM at KEY (person STRING) VALUE (place STRING) TIME t INTEGER MODEL MARKOV;
CREATE QUERY q AS PATTERN at(p, l) THEN at(q, l) THEN at(p, _) WHERE p <> q {options};
"""


@pytest.fixture
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every query over an archive that may be sampled is sampled."""
    monkeypatch.setattr(archive, "MOST_WORK", 0)


def people(keys: int, instants: int, seed: int = 0) -> dict[str, list[dict]]:
    """People who move between four places."""
    draw = np.random.default_rng(seed)
    places = ["a", "b", "c", "d"]
    rows = []
    for key in range(keys):
        for t in range(1, instants + 1):
            for previous in [None] if t == 1 else places:
                shares = draw.dirichlet(np.ones(4))
                for place, p in zip(places, shares, strict=True):
                    rows.append({"person": f"p{key}", "place": place, "prev_place": previous, "t": t, "p": 0.4 * p})
    return {"at": rows}


def sampled(rows: dict[str, list[dict]], options: str = "", n_buckets: int = 1) -> list[dict]:
    run = LocalRun(local_job(WORKBOOK.format(options=options), "q"), n_buckets)
    run.step(rows, end=True)
    answers = [row for outcome in run.outcomes for row in outcome.answers.to_pylist()]
    assert {row["method"] for row in answers} == {"sampling"}
    return sorted(answers, key=lambda row: row["t"])


@pytest.mark.usefixtures("nothing_is_small")
@examples(20)
@given(pattern_cases(classes=CLASSES))
def test_estimates_are_near_the_exact_probabilities(case: Case) -> None:
    job = job_of(case)
    assume("method" in job.answer_schema.names and job.spec.analysis.query.threshold == 0)
    run = LocalRun(job, 2)
    run.step(case.rows, end=True)
    want, got = expected(case), run.answers()
    for key in want.keys() | got.keys():
        assert abs(want.get(key, 0.0) - got.get(key, 0.0)) <= 3 * job.spec.analysis.query.accuracy


def test_the_same_seed_gives_the_same_answers_for_any_order_and_number_of_buckets() -> None:
    rows = people(12, 5)
    first = sampled(rows, "SEED 3")
    shuffled = {"at": [rows["at"][index] for index in np.random.default_rng(1).permutation(len(rows["at"]))]}
    assert sampled(shuffled, "SEED 3", n_buckets=4) == first
    assert sampled(rows, "SEED 4") != first


def test_intervals_are_as_narrow_as_accuracy_requires() -> None:
    for options, accuracy in (("", 0.01), ("ACCURACY 0.05 CONFIDENCE 0.9", 0.05)):
        for row in sampled(people(12, 5), options):
            assert row["lower"] <= row["probability"] <= row["upper"]
            assert (row["upper"] - row["lower"]) / 2 <= accuracy


def test_few_keys_are_answered_exactly() -> None:
    run = LocalRun(local_job(WORKBOOK.format(options=""), "q"), 1)
    run.step(people(2, 4), end=True)
    (outcome,) = run.outcomes
    assert {row["method"] for row in outcome.answers.to_pylist()} == {"exact"}
    assert all(row["lower"] == row["probability"] == row["upper"] for row in outcome.answers.to_pylist())


# ---------------------------------------------------------------- the draws

HASHES = np.arange(100, 120, dtype=np.uint64)


def shares(p: list[float], n_words: int = 2000) -> Iterator[float]:
    """The share of sampled worlds that have each value of a key; the first is *nothing*."""
    value = np.arange(1, len(p) + 1, dtype=np.int32)
    everywhere = np.full((1, n_words), 0xFFFFFFFFFFFFFFFF, np.uint64)
    codes, masks = draw_values(
        np.zeros(len(p), np.int32), value, np.array(p), np.zeros(1, np.int32), everywhere, HASHES, np.uint64(5), 0
    )
    assert codes.tolist() == [0, *value.tolist()]
    union = masks[0].copy()
    for mask in masks[1:]:
        assert not (union & mask).any()  # a world has one value
        union |= mask
    assert (union == everywhere[0]).all()
    return (count_bits(mask) / (64 * n_words) for mask in masks)


@pytest.mark.parametrize("p", [[0.5], [0.3, 0.2], [1.0], [0.0, 0.25, 0.75], [1e-3, 0.999], [0.1] * 9])
def test_values_are_sampled_with_their_probabilities(p: list[float]) -> None:
    for got, want in zip(shares(p), [1 - sum(p), *p], strict=True):
        assert got == pytest.approx(want, abs=4 * np.sqrt(0.25 / 128_000))


def test_words_do_not_depend_on_how_many_are_sampled_together() -> None:
    rows = np.zeros(2, np.int32), np.array([1, 2], np.int32), np.array([0.3, 0.6])
    everywhere = np.full((1, 8), 0xFFFFFFFFFFFFFFFF, np.uint64)
    at_nothing = np.zeros(1, np.int32)
    _, all_words = draw_values(*rows, at_nothing, everywhere, HASHES, np.uint64(9), 0)
    _, last_words = draw_values(*rows, at_nothing, everywhere[:, :3].copy(), HASHES, np.uint64(9), 5)
    assert (all_words[:, 5:] == last_words).all()


def test_intervals_contain_the_truth_with_their_confidence() -> None:
    draw = np.random.default_rng(0)
    for truth in (0.01, 0.3, 0.5, 0.97):
        lower, upper = interval(draw.binomial(200, truth, size=4000), 200, 0.05)
        assert ((lower <= truth) & (truth <= upper)).mean() >= 0.95


# ---------------------------------------------------------------- some chains exact, others not

THINGS = """
CREATE STREAM has KEY (person STRING, thing STRING) VALUE (place STRING) TIME t INTEGER MODEL MARKOV;
CREATE QUERY q AS PATTERN has(p, _, 'a') THEN has(p, _, 'b') {group} SEED 2;
"""


def things(person: str, count: int, seed: int) -> list[dict]:
    """Things, each of which is at one of four places, or nowhere."""
    rows = people(count, 3, seed)["at"]
    return [
        {"person": person, "thing": row["person"], "t": row["t"], "p": 0.3 * row["p"]}
        | {"place": row["place"], "prev_place": row["prev_place"]}
        for row in rows
    ]


def answers_by_time(group: str, rows: list[dict]) -> dict[tuple, dict]:
    run = LocalRun(local_job(THINGS.format(group=group), "q"), 1)
    run.step({"has": rows}, end=True)
    (outcome,) = run.outcomes
    return {(row.get("p"), row["t"]): row for row in outcome.answers.to_pylist()}


def test_a_group_of_exact_and_sampled_chains_is_their_union() -> None:
    rows = things("ann", 1, seed=1) + things("bob", 14, seed=2)
    by_person = answers_by_time("GROUP BY p", rows)
    assert {row["method"] for (person, _), row in by_person.items() if person == "ann"} == {"exact"}
    assert {row["method"] for (person, _), row in by_person.items() if person == "bob"} == {"sampling"}
    combined = answers_by_time("", rows)
    for (_, t), row in combined.items():
        assert row["method"] == "sampling"
        for name in ("probability", "lower", "upper"):
            ann, bob = (by_person[person, t][name] for person in ("ann", "bob"))
            assert row[name] == pytest.approx(1 - (1 - ann) * (1 - bob), abs=1e-12)


def test_a_joint_state_that_is_too_large_for_a_stream_is_an_error_with_its_size() -> None:
    run = LocalRun(local_job(THINGS.format(group=""), "q", live=True), 1)
    with pytest.raises(TooLarge, match=r"14 Markov keys feed one chain, .* \(limit 1,048,576\)"):
        run.step({"has": things("bob", 14, seed=2)}, end=True)


def test_a_chain_without_events_has_no_answers() -> None:
    """Its only row says that nothing happened, so no row of it is read."""
    workbook = """
    CREATE STREAM r KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT;
    CREATE QUERY q AS PATTERN r(p, 'a') THEN r(p, 'b') GROUP BY p METHOD SAMPLING;
    """
    assert run_whole(local_job(workbook, "q"), {"r": [{"k": "x", "v": None, "t": 1, "p": 1.0}]}) == {}
