"""Live answers: what each method of inference knows about a move, at the instant of the move and later.

Two questions about successive steps, for every location l and every instant: has the key just *left* l, and has it
*stayed* at l for three steps? The probabilities of the PATTERN query are compared with the true path.

- `corridor` (simulated): people walk between eight rooms in a row, and four antennas miss most of them. The model is
  the one that generated the data, so only the method differs.
- `rfid_batteryless`: the activities of `inference.py`, on trials that are held out. They are known for up to ten
  seconds after a reading.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table

from anabranch.arrays import F64, Bools
from anabranch.binding.binder import bind, declare
from anabranch.catalog import Catalog
from anabranch.evaluation import scores
from anabranch.inference.hmm import Entries, Hmm, Sensing, make_hmm
from anabranch.inference.labels import Labelled
from anabranch.inference.model import write_hmm
from anabranch.language.parser import parse
from anabranch.planning.derived import layouts_of
from anabranch.planning.prepared import prepare, with_job
from anabranch.transport.job import JobContext
from anabranch.transport.routing import route
from anabranch.transport.watermark import Clock
from benchmarks.calibration.inference import learned_tags
from benchmarks.calibration.results import Result
from benchmarks.harness import Options, Record

#: The methods, by what an answer is given.
METHODS = {
    "FILTER": "the readings so far, instants independent",
    "JOINT": "the readings so far",
    "LAG 5": "the readings up to 5 steps later",
    "SMOOTH": "all readings",
}

#: The queries about a location, and how many steps back each looks.
QUERIES = {
    "left": ("at(x, '{l}') THEN at(x, m) WHERE m <> '{l}'", 1),
    "stayed three steps": ("at(x, '{l}') THEN at(x, m) THEN at(x, n) WHERE m = '{l}' AND n = '{l}'", 2),
}

WORKBOOK = """
CREATE STREAM readings KEY (tag INTEGER) VALUE (reader STRING{measured}) TIME t INTEGER;
CREATE STREAM at KEY (tag INTEGER) VALUE (location STRING) TIME t INTEGER
  INFERRED FROM readings USING HMM 'model/' METHOD {method};
CREATE QUERY q AS PATTERN {query} GROUP BY x;
"""

#: A probability counts as at least this in the log loss, which is infinite for an impossible truth.
LEAST = 1e-6

PEOPLE, STEPS = 60, 120


def measure(options: Options) -> Iterator[Record]:
    """Print the table of docs/quality.md; there are no records."""
    seeds = range(1 if options.quick else options.rounds)
    groups: dict[tuple[str, str, str], list[Result]] = {}
    for result in results(seeds):
        groups.setdefault((result.data, result.task, result.method), []).append(result)
    names = ("data", "question", "method")
    table = Table(box=box.MARKDOWN)
    for heading in (*names, "answers", "true", "Brier", "constant", "log loss", "ECE", "resolution"):
        table.add_column(heading, justify="left" if heading in names else "right")
    for group, parts in groups.items():
        p, true = (np.concatenate([getattr(part, name) for part in parts]) for name in ("probabilities", "true"))
        score = scores(p, true)
        figures = (score.brier, score.constant, log_loss(p, true), score.calibration_error, score.resolution)
        table.add_row(*group, f"{score.count:,}", f"{score.share:.3f}", *(f"{figure:.4f}" for figure in figures))
    Console(width=200, markup=False, highlight=False).print(table)
    yield from ()


def log_loss(p: F64, true: Bools) -> float:
    """The mean of -log(the probability of what happened)."""
    return float(-np.log(np.clip(np.where(true, p, 1 - p), LEAST, 1.0)).mean())


def results(seeds: Sequence[int]) -> Iterator[Result]:
    """The results of all methods on simulated and real data; real data that are missing are left out."""
    for seed in seeds:
        hmm, truth, readings = corridor(seed)
        yield from _compare("corridor (simulated)", hmm, truth, readings, seed)
    try:
        for task in learned_tags(seeds):
            yield from _compare(task.data, task.hmm, task.truth, task.readings, task.seed)
    except FileNotFoundError as error:
        print(f"live: {error.filename} is missing; the real data belong into ../shared/data")


def corridor(seed: int) -> tuple[Hmm, Labelled, Labelled]:
    """A model of eight rooms in a row, and the paths and readings of people, drawn from it."""
    n = 8
    moves = 0.7 * np.eye(n) + 0.15 * (np.eye(n, k=1) + np.eye(n, k=-1))
    moves /= moves.sum(axis=1, keepdims=True)
    near = np.abs(np.arange(n)[np.newaxis] - np.arange(0, n, 2)[:, np.newaxis])
    seen = np.where(near == 0, 0.4, np.where(near == 1, 0.15, 0.0))
    rooms = [f"room {x}" for x in range(n)]
    antennas = [f"antenna {r}" for r in range(len(seen))]
    hmm = make_hmm(
        rooms, antennas, np.full(n, 1 / n), Entries.of_dense(moves), Sensing.DETECTION, Entries.of_dense(seen)
    )
    draw = np.random.default_rng(seed)
    path = np.empty((PEOPLE, STEPS), np.int32)
    path[:, 0] = draw.integers(n, size=PEOPLE)
    cumulative = moves.cumsum(axis=1)
    for t in range(1, STEPS):
        path[:, t] = (draw.random((PEOPLE, 1)) > cumulative[path[:, t - 1]]).sum(axis=1)
    key, step = (index.reshape(-1) for index in np.indices(path.shape))
    reader, row = np.nonzero(draw.random((len(seen), path.size)) < seen[:, path.reshape(-1)])
    truth = Labelled(key, step, path.reshape(-1))
    return hmm, truth, Labelled(key[row], step[row], reader.astype(np.int32))


def _compare(data: str, hmm: Hmm, truth: Labelled, readings: Labelled, seed: int) -> Iterator[Result]:
    """The probabilities of both questions by all methods, for all locations together."""
    for question, (query, back) in QUERIES.items():
        asked, past = _asked(truth, readings, back)
        for method, given in METHODS.items():
            parts = []
            for code, location in enumerate(hmm.locations):
                left = question == "left"
                true = (past[0] != code if left else past[0] == code) & (past[1:] == code).all(axis=0)
                found = answers(hmm, method, query.format(l=location), readings)
                p = np.array([found.get(moment, 0.0) for moment in asked])
                parts.append((p, true))
            p, true = (np.concatenate(columns) for columns in zip(*parts, strict=True))
            yield Result(data, question, f"{method}: {given}", seed, p, true)


def _asked(truth: Labelled, readings: Labelled, back: int) -> tuple[list[tuple[int, int]], F64]:
    """The keys and steps at which the locations of the last steps are known, and these, the latest first."""
    first = {}
    for key, step in zip(readings.key.tolist(), readings.step.tolist(), strict=True):
        first[key] = min(step, first.get(key, step))
    known = dict(zip(zip(truth.key.tolist(), truth.step.tolist(), strict=True), truth.code.tolist(), strict=True))
    moments = [
        (key, step)
        for key, step in known
        if step - back >= first.get(key, np.inf) and all((key, step - n) in known for n in range(back + 1))
    ]
    return moments, np.array([[known[key, step - n] for key, step in moments] for n in range(back + 1)])


def answers(hmm: Hmm, method: str, query: str, readings: Labelled) -> dict[tuple[int, int], float]:
    """The answers of a query over an inferred stream, by key and step, in this process."""
    quantities = () if hmm.gaussians is None else hmm.gaussians.quantities
    measured = "".join(f", {name} DOUBLE" for name in quantities)
    catalog = Catalog()
    findings = declare(parse(WORKBOOK.format(method=method, query=query, measured=measured)), catalog)
    if findings:
        raise ValueError(str(findings))
    columns = {"tag": readings.key, "reader": [hmm.readers[code] for code in readings.code]}
    if readings.quantities is not None:
        columns |= dict(zip(quantities, readings.quantities.T, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        write_hmm(hmm, Path(folder, "model"))
        asked = catalog.query("q")
        prepared = prepare(asked, bind(asked, catalog))
        layouts = layouts_of([catalog.stream("at")], [catalog.stream("readings")], [folder])
    _, job = with_job([prepared], JobContext(layouts, {}, "00" * 32, False, (".",)))
    routed = route(pa.table(columns | {"t": readings.step}), 0, job, 1)
    watermark = Clock(job.layouts).advance([routed.newest], ended=True)
    found = job.operator().step([(0, blob) for _, blob in routed.packets], watermark, ended=True).answers
    moments = zip(found["x"].to_pylist(), found["t"].to_pylist(), strict=True)
    return dict(zip(moments, found["probability"].to_pylist(), strict=True))
