"""Hidden Markov models by hmmlearn, and probabilities by ProbLog.

ProbLog gets the query in two ways: as the rule that defines a match, and as an automaton that a user would have to
write by hand. Anabranch gets the query, and makes an automaton itself.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import Options, Record
from benchmarks.inference.buildings import make_building
from benchmarks.inference.speed import DETECTION
from benchmarks.peers import contestants
from benchmarks.peers.ours import weights_of
from benchmarks.peers.running import compare

LETTERS = "abc"

RULE = """
    between(S, T) :- at(U, b), S < U, U < T.
    match(T) :- at(T, b), at(S, a), S < T, \\+ between(S, T).
    """

AUTOMATON = """
    armed(T) :- T > 0, at(T, a).
    armed(T) :- T > 0, \\+ at(T, a), \\+ at(T, b), P is T - 1, armed(P).
    match(T) :- at(T, b), P is T - 1, armed(P).
    """

WORKBOOK = """
    CREATE STREAM r KEY (k STRING) VALUE (letter STRING) TIME t INTEGER MODEL INDEPENDENT FROM '{path}';
    CREATE QUERY q AS PATTERN r('k', 'a') THEN r('k', 'b');
    """


def inference(options: Options) -> Iterator[Record]:
    """Smoothing and the most likely path; prepared arrays, one thread."""
    for locations in (50,) if options.quick else (50, 350):
        size = {"locations": locations, "steps": 200 if options.quick else 5_000}
        size |= {"detection": DETECTION["read often"], "seed": options.seed}
        building = make_building(**size)
        with tempfile.TemporaryDirectory(prefix="anabranch-peers-") as folder:
            path = Path(folder) / "building.npz"
            np.savez(
                path, initial=building.hmm.initial, transition=building.transition, emission=building.emission,
                symbols=building.symbols, weights=weights_of(building),
            )  # fmt: skip
            for method in ("SMOOTH", "VITERBI"):
                request = contestants.request_of(options, path=str(path), method=method, building=size)
                yield from compare(
                    "inference",
                    f"{method}, {locations} locations, {building.steps:,} steps, one thread",
                    [contestants.anabranch(request), contestants.hmmlearn(request)],
                    options,
                )


def probability(options: Options) -> Iterator[Record]:
    """The probability of a, then b, at each instant of independent rows; the rule is exponential in ProbLog."""
    sizes = (
        {8: (RULE, AUTOMATON)} if options.quick else {12: (RULE, AUTOMATON), 18: (RULE, AUTOMATON), 200: (AUTOMATON,)}
    )
    for instants, programs in sizes.items():
        chances = np.random.default_rng(options.seed).dirichlet(np.ones(len(LETTERS) + 1), instants)[:, :-1]
        with tempfile.TemporaryDirectory(prefix="anabranch-peers-") as folder:
            path = Path(folder) / "rows.parquet"
            pq.write_table(_rows(chances), path)
            request = contestants.request_of(options)
            columns = ["count(*)", "sum(probability)"]
            ours = request | {"workbook": WORKBOOK.format(path=path), "query": "q", "columns": columns}
            names = {RULE: "ProbLog, rule", AUTOMATON: "ProbLog, automaton written by hand"}
            peers = [
                contestants.problog(names[program], request | {"program": _problog(chances) + program})
                for program in programs
            ]
            yield from compare(
                "probability", f"a THEN b, {instants} instants", [contestants.anabranch(ours), *peers], options
            )


def _rows(chances: np.ndarray) -> pa.Table:
    instants, letters = chances.shape
    return pa.table(
        {
            "k": ["k"] * chances.size,
            "letter": list(LETTERS) * instants,
            "t": np.repeat(np.arange(1, instants + 1), letters),
            "p": chances.ravel(),
        }
    )


def _problog(chances: np.ndarray) -> str:
    """Return the rows as a disjunction for each instant, and a query for each instant."""
    lines = []
    for t, row in enumerate(chances, 1):
        lines.append("; ".join(f"{p!r}::at({t}, {letter})" for letter, p in zip(LETTERS, row.tolist(), strict=True)))
        lines.append(f"query(match({t}))")
    return "".join(f"{line}.\n" for line in lines)
