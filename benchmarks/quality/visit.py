"""One visit to a room: the effect of correlations between instants on queries about longer stays."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from anabranch.simulate import rfid
from benchmarks.engines import spark_session
from benchmarks.harness import Options, Record, recorder
from benchmarks.quality import charts
from benchmarks.quality.queries import open_session, simulate_round, stayed

LENGTHS = (1, 2, 3, 5, 10, 20)
METHODS = ("SMOOTH", "MARGINALS", "VITERBI")

DRAWN_LENGTHS = range(60, 181)
"""The possible lengths, in seconds, of the visit that is drawn."""

MARGIN = 15
"""The seconds that are drawn before and after it."""

Probabilities = dict[tuple[str, int], float]
"""The probability of an answer, by tag and t; missing ones are below the threshold of the query."""

Stay = tuple[str, range]
"""A tag, and the instants at which it was in the office of its owner."""


def visit(options: Options) -> Iterator[Record]:
    """Has somebody been in their own office for k seconds? With correlations, without, and by the most likely path."""
    world = simulate_round(options, 0)
    answers = _run_lengths(world)
    stays = _true_stays(world)
    for seconds in LENGTHS:
        means = {method: _mean(answers[method, seconds], stays, seconds) for method in METHODS}
        record = recorder("quality_rfid.visit", f"stayed {seconds} s, building, where true", options)
        first = means["SMOOTH"]
        yield record("SMOOTH: mean probability", first, "probability")
        for method in METHODS[1:]:
            ratio = means[method] / first if first else None
            yield record(f"{method}: mean probability", means[method], "probability", "SMOOTH", ratio)
    if not options.quick:
        draw_typical_visit({method: answers[method, rfid.STAYED] for method in METHODS}, stays)


def _run_lengths(world: rfid.Rfid) -> dict[tuple[str, int], Probabilities]:
    """Return the answers by method and length of the stay."""
    answers = {}
    queries = "".join(stayed(f"stayed_{seconds}", seconds) for seconds in LENGTHS)
    with spark_session() as spark, tempfile.TemporaryDirectory(prefix="anabranch-quality-") as folder:
        rfid.write(world, Path(folder))
        for method in METHODS:
            session = open_session(spark, Path(folder), "building", method, queries)
            for seconds in LENGTHS:
                table = session.run(f"stayed_{seconds}").toArrow()
                keys = zip(table["x"].to_pylist(), table["t"].to_pylist(), strict=True)
                answers[method, seconds] = dict(zip(keys, table["probability"].to_pylist(), strict=True))
    return answers


def _true_stays(world: rfid.Rfid) -> list[Stay]:
    """Return the visits of people to their own offices."""
    office = dict(zip(*world.relations["office"].to_pydict().values(), strict=True))
    people = set(world.relations["person"]["tag"].to_pylist())
    stays = []
    for tag, rows in groupby(world.locations.to_pylist(), key=lambda row: row["tag"]):
        if tag in people:
            for inside, stay in groupby(rows, key=lambda row: row["location"] == office[row["tag"]]):
                times = [row["t"] for row in stay]
                if inside:
                    stays.append((tag, range(times[0], times[-1] + 1)))
    return stays


def _mean(probabilities: Probabilities, stays: Sequence[Stay], seconds: int) -> float:
    """Return the mean probability over all instants at which somebody had been there for that long."""
    true = [(tag, t) for tag, times in stays for t in times[seconds - 1 :]]
    return sum(probabilities.get(instant, 0.0) for instant in true) / len(true) if true else float("nan")


def draw_typical_visit(answers: Mapping[str, Probabilities], stays: Sequence[Stay]) -> None:
    """Draw a visit that VITERBI misses; of all such visits, the one with the median probability by SMOOTH."""
    missed = [
        (tag, times)
        for tag, times in stays
        if len(times) in DRAWN_LENGTHS and not any((tag, t) in answers["VITERBI"] for t in times)
    ]
    missed.sort(key=lambda stay: _mean(answers["SMOOTH"], [stay], rfid.STAYED))
    tag, times = missed[len(missed) // 2]
    offsets = range(-MARGIN, len(times) + MARGIN)
    truth = [(float(t), float(rfid.STAYED - 1 <= t < len(times))) for t in offsets]
    estimates = {
        method: [(float(t), answers[method].get((tag, times[0] + t), 0.0)) for t in offsets] for method in METHODS
    }
    charts.draw_visit(truth, estimates, rfid.STAYED)
