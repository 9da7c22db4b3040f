"""The contest of RELATE on tiny data: who is asked what, what is made of the answers, and the pictures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from benchmarks import relate, relate_charts
from benchmarks.engines import make_job
from benchmarks.harness import Options, Record
from benchmarks.relate import Asked, Race, answers_in_process, ask, check_same, race, sizes, typed
from benchmarks.relate_contest import (
    IGNORE,
    OURS,
    SASE,
    STATIC,
    SURE,
    TREE,
    Contest,
    Found,
    contestants,
    contests,
    nodes,
    poisson,
)

from anabranch.simulate import traffic
from anabranch.simulate.segmented import Entities

SVG = "{http://www.w3.org/2000/svg}"
QUICK = Options(quick=True, rounds=1)


@pytest.fixture(scope="module")
def short() -> Contest:
    return poisson(QUICK, 10, 7, seed=7).losing(0.2, seed=7)


@pytest.fixture(autouse=True)
def pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(relate_charts, "PICTURES", tmp_path)
    return tmp_path


# ---------------------------------------------------------------- the data


def test_a_lost_event_lies_between_its_recorded_neighbours() -> None:
    times, lost = np.array([0.0, 1, 2, 3, 4, 5, 6, 7]), np.array([0, 1, 1, 0, 0, 0, 1, 0], bool)
    entities = Entities({}, np.array([0, 4, 8]), times, lost, (0.0, 8.0))
    contest = Contest("by hand", entities, np.array([[0, 1]]), 2)
    pairs, starts, known, lo, hi, *query = contest.asked
    assert pairs.tolist() == [[0, 1]]
    assert starts.tolist() == [0, 4, 8]
    np.testing.assert_array_equal(known, [0, np.nan, np.nan, 3, 4, 5, np.nan, 7])
    assert lo.tolist() == [0, 0, 0, 3, 4, 5, 5, 7]
    assert hi.tolist() == [0, 3, 3, 3, 4, 5, 7, 7]
    assert query[:2] == [2, 1]
    assert contest.events == 8
    assert not contest.truth.any(), "they lie apart"


def test_first_and_last_events_are_kept_and_more_noise_loses_more(short: Contest) -> None:
    lost = [short.losing(noise, seed=3).entities.lost for noise in (0.0, 0.2, 0.4)]
    assert [mask.any() for mask in lost] == [False, True, True]
    assert not (lost[1] & ~lost[2]).any()
    starts = short.entities.starts
    assert not lost[2][starts[:-1]].any()
    assert not lost[2][starts[1:] - 1].any()


def test_what_is_lost_has_nothing_to_do_with_when_it_happened() -> None:
    contest = poisson(Options(), 20, 7, seed=7).losing(0.5, seed=7)
    waits = np.diff(contest.entities.times, prepend=0.0)
    inner = np.ones(len(waits), bool)
    inner[contest.entities.starts[:-1]] = inner[contest.entities.starts[1:] - 1] = False
    assert abs(np.corrcoef(waits[inner], contest.entities.lost[inner])[0, 1]) < 0.02


def test_some_pairs_come_with_their_entities() -> None:
    lossy = contests(QUICK)[-1].losing(0.3, seed=7)
    chosen = np.zeros(len(lossy.pairs), bool)
    chosen[[3, 40, 41]] = True
    few = lossy.only(chosen)
    assert len(few.entities.counts) == len(np.unique(lossy.pairs[chosen]))
    np.testing.assert_array_equal(few.truth, lossy.truth[chosen])
    for asked in contestants(1_000).values():
        np.testing.assert_array_equal(asked(few).probability, asked(lossy).probability[chosen])


def test_without_noise_everybody_is_right() -> None:
    for contest in contests(QUICK):
        for name, asked in contestants(1_000).items():
            found = asked(contest)
            assert found.finished.all(), name
            np.testing.assert_array_equal(found.probability, contest.truth, name)


# ---------------------------------------------------------------- throughput


def test_trees_that_are_given_up_are_estimated_by_the_nodes_they_would_have(short: Contest) -> None:
    hard = short.losing(0.4, seed=7)
    ran = race(hard, (OURS, TREE, SURE, STATIC), QUICK)
    assert set(ran.measured) == set(ran.estimated) == {OURS, TREE, SURE, STATIC}
    assert ran.finished[OURS] == ran.finished[STATIC] == 1
    assert ran.finished[TREE] <= ran.finished[SURE] < 1
    assert ran.estimated[OURS] == ran.measured[OURS]
    made = np.minimum(nodes(hard, TREE), 1_000).sum()
    assert ran.estimated[TREE] / ran.measured[TREE] == pytest.approx(made / nodes(hard, TREE).sum(), rel=0.01)


def test_the_records_of_a_race_say_what_is_a_bound() -> None:
    ran = Race({OURS: 100.0, TREE: 10.0, STATIC: 500.0}, {OURS: 100.0, TREE: 0.1, STATIC: 500.0},
               {OURS: 1.0, TREE: 0.25, STATIC: 1.0})  # fmt: skip
    told = {
        each.metric: (each.value, each.ratio)
        for each in ran.records(lambda *given: Record("relate", "by hand", *given), "x")
    }
    assert told == {
        "x: ours": (100, None),
        "x: tree (at most; 25% finished)": (10, 0.1),
        "x: tree, estimated": (0.1, 0.001),
        "x: ours / tree, at least": (10, None),
        "x: ours / tree, estimated": (1000, None),
        "x: BaselineStatic": (500, 5),
    }


def test_an_exact_contestant_that_is_not_ours_is_told() -> None:
    ours = Found(np.array([0.5, 0.25]))
    assert check_same(Found(np.array([0.5, np.nan])), ours) == 0
    with pytest.raises(AssertionError, match="differ by"):
        check_same(Found(np.array([np.nan, 0.25001])), ours)


# ---------------------------------------------------------------- accuracy


def test_accuracy_is_the_share_decided_as_the_whole_data_say() -> None:
    asked = Asked(
        np.array([True, True, False, False]),
        {OURS: np.array([0.6, 0.4, 0.0, 0.5]), SURE: np.array([0.6, np.nan, np.nan, 0.5])},
        apart=0.0,
    )
    assert asked.accuracy(OURS) == 0.5
    assert asked.accuracy(OURS, threshold=0.0) == 0.75, "what is impossible is never found"
    assert asked.accuracy(OURS, threshold=0.6) == 0.75
    assert asked.accuracy(SURE) == asked.accuracy(OURS, among=SURE) == 0.5


def test_everybody_is_asked_as_far_as_they_come(short: Contest) -> None:
    rounds = [short, replace(short, entities=poisson(QUICK, 10, 7, seed=8).losing(0.4, seed=8).entities)]
    asked = ask(rounds, QUICK)
    answered = {name: ~np.isnan(found) for name, found in asked.answers.items()}
    assert answered[OURS].all()
    assert answered[STATIC].all()
    assert not answered[TREE].any(), "the sure tree says the same, sooner"
    assert answered[SURE].tolist() == [*(nodes(short, SURE) < 1_000), *[False] * 20]
    assert not answered[SASE[30]][20:].any(), "most of its trees are too large"
    assert asked.apart <= 1e-9


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("data", ["road", "poisson"])
def test_the_process_that_spark_is_held_against_finds_the_truth(tmp_path: Path, data: str) -> None:
    drawn = traffic.Options(data=data, loss=0.0, sectors=60, pairs=30)
    simulated = traffic.simulate(drawn, seed=7)
    traffic.write(simulated, tmp_path)
    query, k = ("shared", 7) if data == "poisson" else ("jam", 2)
    job = make_job(typed(simulated.workbook), query, {})
    answers = answers_in_process(job, tmp_path / "congestion.parquet")
    happening, _ = np.random.default_rng(7).spawn(2)
    if data == "poisson":
        entities = traffic.simulate_poisson(drawn, happening)
        pairs = np.arange(60).reshape(-1, 2)
    else:
        entities, _ = traffic.simulate_road(drawn, happening)
        pairs = np.stack(np.triu_indices(len(entities.counts), 1), axis=1)
    true = Contest(data, entities, pairs, k)
    assert answers.num_rows == true.truth.sum() > 0
    assert set(answers["probability"].to_pylist()) == {1.0}
    assert sizes(job, tmp_path / "congestion.parquet") == (len(pairs), true.events)


# ---------------------------------------------------------------- parts and pictures


@pytest.mark.parametrize("part", ["kernel", "throughput", "accuracy", "selectivity", "sase"])
def test_every_part_runs(part: str) -> None:
    records = list(relate.PARTS[part](QUICK))
    assert {record.benchmark for record in records} == {f"relate.{part}"}
    assert len({record.workload for record in records}) >= 2
    assert all(np.isfinite(record.value) for record in records)
    assert len({(record.workload, record.metric, record.unit) for record in records}) == len(records)


def colours_of(path: Path) -> Iterator[str]:
    return (line.attrib["stroke"] for line in ElementTree.parse(path).iter(f"{SVG}polyline"))  # noqa: S314 (our own)


def test_speeds_are_drawn_dashed_where_they_are_estimated(pictures: Path) -> None:
    speeds = {0.0: {OURS: (1e6, False), TREE: (1e6, False)}, 0.2: {OURS: (1e5, False), TREE: (10.0, True)}}
    relate_charts.draw_throughput({"a": speeds})
    picture = ElementTree.parse(pictures / "relate-throughput.svg")  # noqa: S314 (our own)
    lines = [line for line in picture.iter(f"{SVG}polyline") if " " in line.attrib["points"]]
    dashed = {line.attrib["stroke"] for line in lines if "stroke-dasharray" in line.attrib}
    assert dashed == {relate_charts.COLOURS[TREE]}
    written = "".join(picture.getroot().itertext())
    assert OURS in written
    assert STATIC not in written, "who does not take part is not explained"
    relate_charts.draw_selectivity({"20 segments": {1: speeds[0.0], 4: speeds[0.2]}})
    assert (pictures / "relate-selectivity.svg").exists()


def test_accuracy_is_drawn_of_those_who_answered(pictures: Path, short: Contest) -> None:
    asked = ask([short], QUICK)
    by_noise = {"a": {0.2: asked, 0.4: asked}}
    relate_charts.draw_noise(by_noise)
    relate_charts.draw_thresholds(by_noise, (0.0, 0.5, 1.0), (0.2, 0.4))
    relate_charts.draw_k({"a": {1: asked, 4: asked}})
    for name in ("noise", "threshold", "k"):
        drawn = set(colours_of(pictures / f"relate-{name}.svg"))
        assert {relate_charts.COLOURS[who] for who in (OURS, IGNORE, STATIC)} <= drawn
        assert not {relate_charts.COLOURS[who] for who in (TREE, SURE)} & drawn, "they are ours"
