"""PATTERN by the number of objects: most likely worlds, the comparison of answers, and the tables."""

from __future__ import annotations

from itertools import pairwise, product
from math import prod

import pyarrow as pa
import pytest
from benchmarks.__main__ import main
from benchmarks.pattern import objects
from benchmarks.pattern.classes import run_archive
from benchmarks.workloads import Spec, make_stream, room


def test_the_most_likely_rooms_have_the_highest_probabilities() -> None:
    spec = Spec("INDEPENDENT", 3, 6)
    table = make_stream(spec)
    highest: dict[tuple, float] = {}
    for row in table.to_pylist():
        key = row["person"], row["t"]
        highest[key] = max(highest.get(key, 0.0), row["p"])
    chosen = objects.most_likely_rooms(spec, table).to_pylist()
    probability = {(row["person"], row["t"], row["room"]): row["p"] for row in table.to_pylist()}
    assert len(chosen) == 18
    assert all(probability[tuple(row.values())] == highest[row["person"], row["t"]] for row in chosen)


def test_the_most_likely_path_is_the_best_of_all_paths() -> None:
    spec = Spec("MARKOV", 2, 4, values=6, alternatives=3)
    table = make_stream(spec)
    found = objects.most_likely_paths(spec, table)
    rooms = [room(number) for number in range(spec.values)]
    for person in ("person-000000", "person-000001"):
        rows = [row for row in table.to_pylist() if row["person"] == person]
        p = {(row["t"], row["prev_room"], row["room"]): row["p"] for row in rows}

        def probability(path: tuple[str, ...], p: dict = p) -> float:
            return prod(p.get((t, before, after), 0.0) for t, (before, after) in enumerate(pairwise((None, *path))))

        best = max(product(rooms, repeat=spec.instants), key=probability)
        assert [row["room"] for row in found.to_pylist() if row["person"] == person] == list(best)


@pytest.mark.kernels
def test_the_most_likely_world_answers_what_it_contains() -> None:
    spec = Spec("INDEPENDENT", 4, 20)
    world = objects.most_likely_rooms(spec, make_stream(spec))
    answers = run_archive(objects.job_of("CERTAIN", objects.QUERIES["Q1"]), [world])
    expected = {(row["t"], row["person"]) for row in world.to_pylist() if row["room"] == room(0)}
    assert expected
    assert set(zip(answers["t"].to_pylist(), answers["p"].to_pylist(), strict=True)) == expected
    assert set(answers["probability"].to_pylist()) == {1.0}


def test_an_answer_that_is_missing_has_probability_zero() -> None:
    one = pa.table({"t": [1, 2], "p": ["a", "a"], "probability": [0.5, 0.25]})
    other = pa.table({"t": [1, 3], "p": ["a", "a"], "probability": [0.4, 0.3]})
    assert objects.largest_difference(one, other) == 0.3
    assert objects.largest_difference(one, one) == 0.0
    assert 0.1 < objects.tolerance() < 0.3


@pytest.mark.kernels
@pytest.mark.usefixtures("wide_terminal")
def test_a_quick_run_compares_all_ways_to_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["objects", "--quick", "--rounds", "1"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for text in (
        "objects.realtime; Q1, INDEPENDENT",
        "objects.archived; Q2, MARKOV",
        "5 objects: most likely world",
        "5 objects: largest error of sampling",
        "5 objects: safe plan",
    ):
        assert text in printed
