"""A query of each kind, a pass that two queries share, one over answers, and an inferred stream; and their files."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from tests.inference.test_stream import building

from anabranch.inference.model import write_hmm

#: The instants of the rows of one file. A row may be in the file after that of its instant.
INSTANTS = 4
_LATE_SHARE = 0.2

STREAMS = {
    "at": "KEY (person) VALUE (place) TIME t MODEL MARKOV WATERMARK 8",
    "reads": "KEY (tag) VALUE (reader) TIME t WATERMARK 8",
    "jams": "KEY (road, jam) TIME t ORDER seq MODEL INTERVALS LENGTH n WATERMARK 8",
    "cars": "KEY (car) VALUE (x) TIME t MODEL PREDICTED ERROR 1 PERIOD 5",
    "seen": "KEY (car) VALUE (x) TIME t WATERMARK 8",
    "there": "KEY (person) VALUE (place) TIME t MODEL MARKOV WATERMARK 8",
    "readings": "KEY (tag STRING) VALUE (reader STRING) TIME t INTEGER WATERMARK 8",
}
#: The folder of the files of a stream, if it is that of another stream.
_FOLDERS = {"seen": "cars", "there": "at"}


@dataclass(frozen=True, slots=True)
class Group:
    """The queries of one pass over a stream: their texts by name."""

    stream: str
    queries: dict[str, str]

    @property
    def checkpoint(self) -> str:
        """The name of the checkpoint folder."""
        return "+".join(self.queries)

    @property
    def declarations(self) -> str:
        """The statements for a workbook; the stream `inside` is inferred from the readings."""
        folder = _FOLDERS.get(self.stream, self.stream)
        text = f"CREATE STREAM {self.stream} {STREAMS[self.stream]} FROM 'in/{folder}/*.parquet';\n"
        if self.stream == "readings":
            text += (
                "CREATE STREAM inside KEY (tag STRING) VALUE (room STRING) TIME t INTEGER\n"
                "  INFERRED FROM readings USING HMM 'model/' METHOD JOINT;\n"
            )
        return text + "".join(f"CREATE QUERY {name} AS\n  {query};\n" for name, query in self.queries.items())


GROUPS = {
    "pattern": Group(
        "at", {"coffee": "PATTERN at(x, 'hall') THEN at(x, 'hall')+<x | TRUE> THEN at(x, 'coffee') GROUP BY x"}
    ),
    "sequence": Group(
        "reads",
        {
            "unpaid": "SEQUENCE (x, !y, z) FROM reads WHERE x.reader = 'shelf' AND y.reader = 'checkout'"
            " AND z.reader = 'exit' AND x.tag = y.tag AND y.tag = z.tag\n"
            "  MISS y 0.1, x 0.05 DELAY x UNIFORM(0, 4), y EXPONENTIAL(2) WITHIN 5 THRESHOLD 0.2"
        },
    ),
    "relate": Group(
        "jams",
        {
            "met": "RELATE SOME a INTERSECTS SOME b FROM jams AS a, jams AS b"
            " WHERE a.road = b.road AND a.jam < b.jam THRESHOLD 0.5"
        },
    ),
    "monitor": Group(
        "cars",
        {
            "near": "MONITOR a, b FROM cars AS a, cars AS b WHERE ABS(a.x - b.x) <= 3 AND a.car < b.car\n"
            "  WITHIN 1 SEMANTICS MAY MAX DELAY 8"
        },
    ),
    "constrain": Group(
        "seen",
        {
            "passing": "CONSTRAIN u, v FROM seen AS u, seen AS v"
            " WHERE v.t - u.t IN [0, 1] AND v.x - u.x IN [0, 4] AND u.car <> v.car EMIT EARLY",
            "close": "CONSTRAIN u, v FROM seen AS u, seen AS v"
            " WHERE v.t - u.t IN [0, 3] AND u.car < v.car AND v.x - u.x IN [-1, 1]",
        },
    ),
    "chain": Group(
        "there",
        {
            "again": "WITH trips AS (PATTERN there(x, 'hall') THEN there(x, 'coffee') GROUP BY x),\n"
            "  returns AS (PATTERN there(x, 'coffee') THEN there(x, 'hall') GROUP BY x)\n"
            "  SEQUENCE (u, v) FROM trips AS u, returns AS v WHERE u.x = v.x WITHIN 2"
        },
    ),
    "inferred": Group(
        "readings",
        {"left": "PATTERN inside(x, 'hall') THEN inside(x, r) WHERE r <> 'hall' GROUP BY x THRESHOLD 0.35"},
    ),
}


def workbook(kinds: Collection[str]) -> str:
    """The workbook with the queries of some kinds."""
    return "".join(GROUPS[kind].declarations for kind in kinds)


# ------------------------------------------------------------ rows


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a stream, and the number of the file that each is in."""

    table: pa.Table
    files: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Size:
    """How many rows each stream has, about, and in how many files."""

    events: int
    files: int

    @property
    def per_file(self) -> int:
        return self.events // self.files

    def arrival(self, rng: np.random.Generator, t: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The numbers of the files of some instants."""
        return np.minimum(t // INSTANTS + (rng.random(len(t)) < _LATE_SHARE), self.files - 1)


def _names(prefix: str, numbers: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array([f"{prefix} {number}" for number in numbers.tolist()])


def rows_of_people(size: Size, rng: np.random.Generator) -> Rows:
    """Nine transitions per person and instant; at every seventh instant, a row without a person, which is invalid."""
    places = np.array(["hall", "coffee", "room"])
    n_people = max(2, size.per_file // (9 * INSTANTS))
    t, person = (grid.reshape(-1) for grid in np.mgrid[: size.files * INSTANTS, :n_people])
    weights = rng.random((len(t), 3, 3)) + 0.01
    p = weights / weights.sum(axis=2, keepdims=True)
    table = pa.table(
        {
            "person": _names("person", np.repeat(person, 9)),
            "place": np.tile(places, 3 * len(t)),
            "prev_place": pa.array(np.tile(np.repeat(places, 3), len(t)), mask=np.repeat(t == 0, 9)),
            "t": np.repeat(t, 9),
            "p": p.reshape(-1),
        }
    )
    files = np.repeat(size.arrival(rng, t), 9)
    # The first instant has one row per place, from no place.
    wanted = np.arange(len(files)) % 9 < np.where(np.repeat(t, 9) == 0, 3, 9)
    bad = np.arange(0, size.files * INSTANTS, 7)
    invalid = pa.table(
        {
            "person": pa.nulls(len(bad), pa.string()),
            "place": ["hall"] * len(bad),
            "prev_place": ["hall"] * len(bad),
            "t": bad,
            "p": [0.5] * len(bad),
        }
    )
    return Rows(pa.concat_tables([table.filter(wanted), invalid]), np.concatenate([files[wanted], bad // INSTANTS]))


def rows_of_items(size: Size, rng: np.random.Generator) -> Rows:
    """Readings of items at random readers: about one per item and file."""
    n = size.per_file * size.files
    t = rng.integers(size.files * INSTANTS, size=n)
    readers = np.array(["shelf", "checkout", "exit"])[rng.integers(3, size=n)]
    table = pa.table({"tag": _names("tag", rng.integers(size.per_file, size=n)), "reader": readers, "t": t})
    return Rows(table, size.arrival(rng, t))


def rows_of_jams(size: Size, rng: np.random.Generator) -> Rows:
    """Jams of six segments, about three at a time on each road; a fifth of the inner times are lost."""
    n_events, n_jams = 12, size.per_file * size.files // 12
    last_start = max(1, (size.files - 8) * INSTANTS)
    starts = np.sort(rng.integers(last_start, size=n_jams))
    t = starts[:, None] + np.concatenate(
        [np.zeros((n_jams, 1), np.int64), np.cumsum(rng.integers(1, 3, size=(n_jams, n_events - 1)), axis=1)], axis=1
    )
    lost = rng.random(t.shape) < 0.2
    lost[:, [0, -1]] = False
    n_roads = max(2, size.per_file // 8)
    table = pa.table(
        {
            "road": np.repeat(rng.integers(n_roads, size=n_jams), n_events),
            "jam": np.repeat(np.arange(n_jams), n_events),
            "seq": np.tile(np.arange(1, n_events + 1), n_jams),
            "n": np.full(t.size, n_events),
            "t": pa.array(t.reshape(-1), mask=lost.reshape(-1)),
        }
    )
    return Rows(table, size.arrival(rng, t.reshape(-1)))


def rows_of_cars(size: Size, rng: np.random.Generator) -> Rows:
    """Reports of positions on a long road; each car reports at half of the instants."""
    n_cars = max(4, size.per_file * 2 // INSTANTS)
    t, car = (grid.reshape(-1) for grid in np.mgrid[: size.files * INSTANTS, :n_cars])
    reported = rng.random(len(t)) < 0.5
    t, car = t[reported], car[reported]
    road = 20.0 * n_cars
    table = pa.table(
        {
            "car": _names("car", car),
            "t": t,
            "x": rng.uniform(0, road, len(t)),
            "x_rate": rng.uniform(-2, 2, len(t)),
        }
    )
    return Rows(table, size.arrival(rng, t))


def rows_of_readings(size: Size, rng: np.random.Generator) -> Rows:
    """One reading per tag and instant, by a random reader."""
    n_tags = max(2, size.per_file // INSTANTS)
    t, tag = (grid.reshape(-1) for grid in np.mgrid[: size.files * INSTANTS, :n_tags])
    readers = np.array(["east", "west"])[rng.integers(2, size=len(t))]
    return Rows(pa.table({"tag": _names("tag", tag), "reader": readers, "t": t}), size.arrival(rng, t))


_ROWS: dict[str, Callable[[Size, np.random.Generator], Rows]] = {
    "at": rows_of_people,
    "reads": rows_of_items,
    "jams": rows_of_jams,
    "cars": rows_of_cars,
    "readings": rows_of_readings,
}


class Files:
    """Files of all streams that arrive one after another, by renames, in order of time.

    Parameters
    ----------
    folder : has the workbook; rows arrive in its subfolder `in`
    kinds : the kinds of `GROUPS`
    """

    def __init__(self, folder: Path, kinds: Collection[str], size: Size, seed: int) -> None:
        self.count = size.files
        self.added = 0
        self.rows: dict[str, pa.Table] = {}
        self._folder = folder
        for number, (name, make) in enumerate(_ROWS.items()):
            if name in {_FOLDERS.get(GROUPS[kind].stream, GROUPS[kind].stream) for kind in kinds}:
                rows = make(size, np.random.default_rng([seed, number]))
                self.rows[name] = rows.table
                self._write_drafts(name, rows)
        if "inferred" in kinds:
            write_hmm(building(), folder / "model")

    def add_up_to(self, count: int) -> None:
        """Let files arrive until there are `count` per stream, or no more."""
        while self.added < min(count, self.count):
            for name in self.rows:
                self._draft(name, self.added).rename(self._folder / "in" / name / f"{self.added:05d}.parquet")
            self.added += 1

    def _write_drafts(self, name: str, rows: Rows) -> None:
        (self._folder / "in" / name).mkdir(parents=True)
        (self._folder / "drafts" / name).mkdir(parents=True)
        order = np.argsort(rows.files, kind="stable")
        ends = np.searchsorted(rows.files[order], np.arange(self.count + 1))
        table = rows.table.take(order)
        for number in range(self.count):
            draft = self._draft(name, number)
            pq.write_table(table.slice(ends[number], ends[number + 1] - ends[number]), draft)
            # Spark reads files in the order of their times.
            os.utime(draft, (1_700_000_000 + number, 1_700_000_000 + number))

    def _draft(self, name: str, number: int) -> Path:
        return self._folder / "drafts" / name / f"{number:05d}.parquet"
