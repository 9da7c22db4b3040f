"""The RELATE benchmark on tiny data: its workloads, its comparisons, its records and its charts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks import relate
from benchmarks.engines import make_job
from benchmarks.harness import Options, Record
from benchmarks.relate import charts
from benchmarks.relate.algorithms import (
    ANABRANCH,
    EARLY_STOP,
    IGNORE,
    SASE,
    STATIC,
    TREE,
    Result,
    all_algorithms,
    check_same,
    node_counts,
)
from benchmarks.relate.answers import Answers, answer_all
from benchmarks.relate.spark import answers_in_process, sizes, with_types
from benchmarks.relate.speed import Throughput, measure
from benchmarks.relate.workloads import Workload, all_workloads, journeys, poisson

from anabranch.simulate import traffic
from anabranch.simulate.segmented import Entities
from tests.benchmarks.charts import parse_chart, polylines

QUICK = Options(quick=True, rounds=1)


@pytest.fixture(scope="module")
def short() -> Workload:
    return poisson(QUICK, 10, 7, seed=7).with_losses(0.2, seed=7)


pytestmark = pytest.mark.usefixtures("chart_folder")


# ---------------------------------------------------------------- the data


def test_a_lost_event_is_between_its_recorded_neighbours() -> None:
    times, lost = np.array([0.0, 1, 2, 3, 4, 5, 6, 7]), np.array([0, 1, 1, 0, 0, 0, 1, 0], bool)
    entities = Entities({}, np.array([0, 4, 8]), times, lost, (0.0, 8.0))
    workload = Workload("by hand", entities, np.array([[0, 1]]), 2)
    pairs, starts, known, lo, hi, *query = workload.paper_input
    assert pairs.tolist() == [[0, 1]]
    assert starts.tolist() == [0, 4, 8]
    np.testing.assert_array_equal(known, [0, np.nan, np.nan, 3, 4, 5, np.nan, 7])
    assert lo.tolist() == [0, 0, 0, 3, 4, 5, 5, 7]
    assert hi.tolist() == [0, 3, 3, 3, 4, 5, 7, 7]
    assert query[:2] == [2, 1]
    assert workload.events == 8
    assert not workload.truth.any(), "the entities are apart in time"


def test_first_and_last_events_are_kept_and_more_noise_loses_more(short: Workload) -> None:
    lost = [short.with_losses(noise, seed=3).entities.lost for noise in (0.0, 0.2, 0.4)]
    assert [mask.any() for mask in lost] == [False, True, True]
    assert not (lost[1] & ~lost[2]).any()
    starts = short.entities.starts
    assert not lost[2][starts[:-1]].any()
    assert not lost[2][starts[1:] - 1].any()


def test_losses_do_not_depend_on_times() -> None:
    entities = poisson(Options(), 20, 7, seed=7).with_losses(0.5, seed=7).entities
    waits = np.diff(entities.times, prepend=0.0)
    inner = np.ones(len(waits), bool)
    inner[entities.starts[:-1]] = inner[entities.starts[1:] - 1] = False
    assert abs(np.corrcoef(waits[inner], entities.lost[inner])[0, 1]) < 0.02


def test_only_the_ends_of_journeys_are_known() -> None:
    for lost in (4, 6, 14):
        workload = journeys(QUICK, lost, seed=7)
        entities, (first, second) = workload.entities, workload.pairs.T
        counts = np.add.reduceat(entities.lost, entities.starts[:-1])
        assert (counts[first] + counts[second] == lost).all()
        assert (counts >= 2).all()
        assert not entities.lost[entities.starts[:-1]].any()
        assert not entities.lost[entities.starts[1:] - 1].any()
        inside = np.setdiff1d(np.arange(1, len(entities.times)), entities.starts[:-1])
        assert (entities.times[inside] > entities.times[inside - 1]).all()
        begins, ends = entities.times[entities.starts[:-1]], entities.times[entities.starts[1:] - 1]
        assert ((begins[first] <= begins[second]) & (begins[second] <= ends[first])).all()


def test_the_tree_agrees_about_journeys() -> None:
    workload = journeys(QUICK, 6, seed=7)
    algorithms = all_algorithms(1_000_000)
    results = {name: algorithms[name](workload) for name in (ANABRANCH, TREE, EARLY_STOP)}
    assert results[TREE].complete.all()
    assert check_same(results[TREE], results[ANABRANCH]) < 1e-9
    assert check_same(results[EARLY_STOP], results[ANABRANCH]) < 1e-9
    assert ((results[ANABRANCH].probability > 0.01) & (results[ANABRANCH].probability < 0.99)).mean() > 0.5


def test_a_subset_of_the_pairs_has_their_entities() -> None:
    lossy = all_workloads(QUICK)[-1].with_losses(0.3, seed=7)
    chosen = np.zeros(len(lossy.pairs), bool)
    chosen[[3, 40, 41]] = True
    few = lossy.subset(chosen)
    assert len(few.entities.counts) == len(np.unique(lossy.pairs[chosen]))
    np.testing.assert_array_equal(few.truth, lossy.truth[chosen])
    for algorithm in all_algorithms(1_000).values():
        np.testing.assert_array_equal(algorithm(few).probability, algorithm(lossy).probability[chosen])


def test_without_noise_all_algorithms_are_right() -> None:
    for workload in all_workloads(QUICK):
        for name, algorithm in all_algorithms(1_000).items():
            result = algorithm(workload)
            assert result.complete.all(), name
            np.testing.assert_array_equal(result.probability, workload.truth, name)


# ---------------------------------------------------------------- throughput


def test_the_throughput_of_aborted_trees_is_estimated_from_their_complete_size(short: Workload) -> None:
    hard = short.with_losses(0.4, seed=7)
    result = measure(hard, (ANABRANCH, TREE, EARLY_STOP, STATIC), QUICK)
    assert set(result.measured) == set(result.estimated) == {ANABRANCH, TREE, EARLY_STOP, STATIC}
    assert result.complete[ANABRANCH] == result.complete[STATIC] == 1
    assert result.complete[TREE] <= result.complete[EARLY_STOP] < 1
    assert result.estimated[ANABRANCH] == result.measured[ANABRANCH]
    built, total = np.minimum(node_counts(hard, TREE), 1_000).sum(), node_counts(hard, TREE).sum()
    assert result.estimated[TREE] / result.measured[TREE] == pytest.approx(built / total, rel=0.01)


def test_the_records_of_a_throughput_name_bounds_and_estimates() -> None:
    throughput = Throughput(
        {ANABRANCH: 100.0, TREE: 10.0, STATIC: 500.0},
        {ANABRANCH: 100.0, TREE: 0.1, STATIC: 500.0},
        {ANABRANCH: 1.0, TREE: 0.25, STATIC: 1.0},
    )
    records = throughput.records(lambda *values: Record("relate", "by hand", *values), "x")
    assert {record.metric: (record.value, record.ratio) for record in records} == {
        "x: Anabranch": (100, None),
        "x: tree (at most; 25% complete)": (10, 0.1),
        "x: tree, estimated": (0.1, 0.001),
        "x: Anabranch / tree, at least": (10, None),
        "x: Anabranch / tree, estimated": (1000, None),
        "x: BaselineStatic": (500, 5),
    }


def test_an_exact_algorithm_that_differs_is_an_error() -> None:
    expected = Result(np.array([0.5, 0.25]))
    assert check_same(Result(np.array([0.5, np.nan])), expected) == 0
    with pytest.raises(AssertionError, match="differ by"):
        check_same(Result(np.array([np.nan, 0.25001])), expected)


# ---------------------------------------------------------------- accuracy


def test_accuracy_is_the_share_of_pairs_decided_as_by_the_complete_data() -> None:
    answers = Answers(
        np.array([True, True, False, False]),
        {ANABRANCH: np.array([0.6, 0.4, 0.0, 0.5]), EARLY_STOP: np.array([0.6, np.nan, np.nan, 0.5])},
        difference=0.0,
    )
    assert answers.accuracy(ANABRANCH) == 0.5
    assert answers.accuracy(ANABRANCH, threshold=0.0) == 0.75, "probability 0 is never accepted"
    assert answers.accuracy(ANABRANCH, threshold=0.6) == 0.75
    assert answers.accuracy(EARLY_STOP) == answers.accuracy(ANABRANCH, among=EARLY_STOP) == 0.5


def test_trees_answer_only_pairs_with_small_trees(short: Workload) -> None:
    rounds = [short, replace(short, entities=poisson(QUICK, 10, 7, seed=8).with_losses(0.4, seed=8).entities)]
    answers = answer_all(rounds, QUICK)
    answered = {name: ~np.isnan(probability) for name, probability in answers.by_algorithm.items()}
    assert answered[ANABRANCH].all()
    assert answered[STATIC].all()
    assert not answered[TREE].any(), "the early-stop tree has the same answers and is faster"
    assert answered[EARLY_STOP].tolist() == [*(node_counts(short, EARLY_STOP) < 1_000), *[False] * 20]
    assert not answered[SASE[30]][20:].any(), "most of its trees are too large"
    assert answers.difference <= 1e-9


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("data", ["road", "poisson"])
def test_the_run_in_process_finds_the_truth_if_nothing_is_lost(tmp_path: Path, data: str) -> None:
    options = traffic.Options(data=data, loss=0.0, sectors=60, pairs=30)
    simulated = traffic.simulate(options, seed=7)
    traffic.write(simulated, tmp_path)
    query, k = ("shared", 7) if data == "poisson" else ("jam", 2)
    job = make_job(with_types(simulated.workbook), query)
    answers = answers_in_process(job, tmp_path / "congestion.parquet")
    rng, _ = np.random.default_rng(7).spawn(2)
    if data == "poisson":
        entities = traffic.simulate_poisson(options, rng)
        pairs = np.arange(60).reshape(-1, 2)
    else:
        entities, _ = traffic.simulate_road(options, rng)
        pairs = np.stack(np.triu_indices(len(entities.counts), 1), axis=1)
    workload = Workload(data, entities, pairs, k)
    assert answers.num_rows == workload.truth.sum() > 0
    assert set(answers["probability"].to_pylist()) == {1.0}
    assert sizes(job, tmp_path / "congestion.parquet") == (len(pairs), workload.events)


# ---------------------------------------------------------------- parts and charts


@pytest.mark.parametrize("part", ["kernel", "throughput", "accuracy", "selectivity", "sase"])
def test_every_part_runs(part: str) -> None:
    records = list(relate.PARTS[part](QUICK))
    assert {record.benchmark for record in records} == {f"relate.{part}"}
    assert len({record.workload for record in records}) >= 2
    assert all(np.isfinite(record.value) for record in records)
    assert len({(record.workload, record.metric, record.unit) for record in records}) == len(records)


def test_estimated_speeds_are_dashed(chart_folder: Path) -> None:
    exact = {ANABRANCH: (1e6, False), TREE: (1e6, False)}
    estimated = {ANABRANCH: (1e5, False), TREE: (10.0, True)}
    charts.draw_throughput({"a": {0.0: exact, 0.2: estimated}})
    chart = parse_chart((chart_folder / "relate-throughput.svg").read_text())
    lines = [line for line in polylines(chart) if " " in line["points"]]
    assert {line["stroke"] for line in lines if "stroke-dasharray" in line} == {charts.COLOURS[TREE]}
    text = "".join(chart.itertext())
    assert ANABRANCH in text
    assert STATIC not in text, "the legend has only the algorithms that are drawn"
    charts.draw_selectivity({"20 segments": {1: exact, 4: estimated}})
    assert (chart_folder / "relate-selectivity.svg").exists()


def test_the_accuracy_of_algorithms_with_answers_is_drawn(chart_folder: Path, short: Workload) -> None:
    answers = answer_all([short], QUICK)
    by_noise = {"a": {0.2: answers, 0.4: answers}}
    charts.draw_noise(by_noise)
    charts.draw_thresholds(by_noise, (0.0, 0.5, 1.0), (0.2, 0.4))
    charts.draw_k({"a": {1: answers, 4: answers}})
    for name in ("noise", "threshold", "k"):
        chart = parse_chart((chart_folder / f"relate-{name}.svg").read_text())
        drawn = {line["stroke"] for line in polylines(chart)}
        assert {charts.COLOURS[algorithm] for algorithm in (ANABRANCH, IGNORE, STATIC)} <= drawn
        assert not {charts.COLOURS[algorithm] for algorithm in (TREE, EARLY_STOP)} & drawn, "they equal Anabranch"
