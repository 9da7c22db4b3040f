"""Data for the benchmarks and the tests: people who walk through a ring of rooms, as seen by three kinds of stream.

Every person (a key) has a true path. At each instant the stream holds a *window* of rooms around the truth:

- CERTAIN: the room itself, one row a (key, t);
- INDEPENDENT: each room of the window with its probability, `alternatives` rows a (key, t);
- MARKOV: from each room of the last window to `successors` rooms of this one, `alternatives * successors` rows.

Rows are in order of time, then key, as they would arrive. The same `Spec` always gives the same rows. Files are written
once, to a folder under the system's temporary one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

#: Raise it when the same Spec gives other rows than before: older files are then not used again.
VERSION = 1

#: Row groups of about the size that engines write, so that an archive can be read in parts.
ROWS_A_GROUP = 250_000

MODELS = ("MARKOV", "INDEPENDENT", "CERTAIN")


@dataclass(frozen=True, slots=True)
class Spec:
    """The size of a stream, and the seed it is drawn with."""

    model: str
    keys: int
    instants: int
    values: int = 20
    alternatives: int = 5
    successors: int = 2
    seed: int = 7

    @property
    def rows_an_instant(self) -> int:
        """How many rows all keys have together at an instant (at the first, a MARKOV stream has fewer)."""
        rows = {"MARKOV": self.alternatives * self.successors, "INDEPENDENT": self.alternatives, "CERTAIN": 1}
        return self.keys * rows[self.model]

    @property
    def name(self) -> str:
        """A name that tells this workload from all others."""
        sizes = f"{self.keys}k-{self.instants}t-{self.values}v-{self.alternatives}a-{self.successors}s"
        return f"{self.model.lower()}-{sizes}-seed{self.seed}"

    def __str__(self) -> str:
        return f"{self.model}, {self.keys:,} keys, {self.instants:,} instants"


def room(number: int) -> str:
    """The name of a room."""
    return f"room-{number:02d}"


def person(number: int) -> str:
    """The name of a key."""
    return f"person-{number:06d}"


# ------------------------------------------------------------ rows


def make_stream(spec: Spec) -> pa.Table:
    """All rows of a stream: person, t, room, and by the model prev_room and p."""
    draw = np.random.default_rng(spec.seed)
    # Half the steps stay, most others go on to the next room: everyone comes round again and again.
    steps = draw.choice(np.array([0, 1, 2]), size=(spec.instants, spec.keys), p=[0.5, 0.4, 0.1])
    steps[0] = draw.integers(spec.values, size=spec.keys)
    paths = np.cumsum(steps, axis=0) % spec.values
    t, key = np.divmod(np.arange(spec.instants * spec.keys), spec.keys)
    if spec.model == "CERTAIN":
        return _table(spec, key, t, {"room": paths.reshape(-1)})
    if spec.model == "INDEPENDENT":
        return _independent(spec, draw, key, t, paths.reshape(-1))
    return _markov(spec, draw, key, t, paths)


def _independent(spec: Spec, draw: np.random.Generator, key, t, path) -> pa.Table:
    width = spec.alternatives
    rooms = (path[:, None] + np.arange(width)) % spec.values
    p = _distributions(draw, len(path), width)
    return _table(spec, np.repeat(key, width), np.repeat(t, width), {"room": rooms.reshape(-1)}, p.reshape(-1))


def _markov(spec: Spec, draw: np.random.Generator, key, t, paths) -> pa.Table:
    """First from nothing (NULL) to a window of rooms; then from its room i to rooms i, i + 1, ... of the next."""
    width, fan, keys = spec.alternatives, spec.successors, spec.keys
    first = (paths[0][:, None] + np.arange(width)) % spec.values
    start = _distributions(draw, keys, width)
    place = np.arange(width)
    target = (place[:, None] + np.arange(fan)) % width
    before = np.broadcast_to(((paths[:-1, :, None] + place) % spec.values)[..., None], (*paths[1:].shape, width, fan))
    after = (paths[1:, :, None, None] + target) % spec.values
    p = _distributions(draw, before.size // fan, fan)
    rows = width * fan
    return _table(
        spec,
        np.concatenate([np.repeat(key[:keys], width), np.repeat(key[keys:], rows)]),
        np.concatenate([np.repeat(t[:keys], width), np.repeat(t[keys:], rows)]),
        {
            "room": np.concatenate([first.reshape(-1), after.reshape(-1)]),
            "prev_room": np.concatenate([np.full(first.size, -1), before.reshape(-1)]),
        },
        np.concatenate([start.reshape(-1), p.reshape(-1)]),
    )


def _distributions(draw: np.random.Generator, n: int, width: int) -> npt.NDArray[np.float64]:
    """Distributions over `width` outcomes, of which a twentieth is left to nothing."""
    weights = draw.random((n, width)) + 0.05
    return 0.95 * weights / weights.sum(axis=1, keepdims=True)


def _table(spec: Spec, key, t, rooms: dict[str, npt.NDArray], p=None) -> pa.Table:
    columns = {"person": _coded(key, [person(number) for number in range(spec.keys)]), "t": pa.array(t, pa.int64())}
    names = [room(number) for number in range(spec.values)]
    columns |= {name: _coded(codes, names) for name, codes in rooms.items()}
    if p is not None:
        columns["p"] = pa.array(p)
    return pa.table(columns)


def _coded(codes: npt.NDArray, names: list[str]) -> pa.DictionaryArray:
    """Text by code; a code of -1 is NULL."""
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32), mask=codes < 0), pa.array(names))


# ------------------------------------------------------------ relations


def make_relations(spec: Spec) -> dict[str, pa.Table]:
    """office(person, room): everyone's own; hall(room): those between; coffee_room(room): one."""
    rooms = [room(number) for number in range(spec.values)]
    offices, halls = spec.values // 4, 3 * spec.values // 4
    people = range(spec.keys)
    return {
        "office": pa.table({"person": [person(n) for n in people], "room": [rooms[n % offices] for n in people]}),
        "hall": pa.table({"room": rooms[offices:halls]}),
        "coffee_room": pa.table({"room": [rooms[halls]]}),
    }


# ------------------------------------------------------------ files


def cache_folder() -> Path:
    """Where the files lie."""
    return Path(tempfile.gettempdir()) / f"anabranch-benchmarks-{VERSION}"


def archive(spec: Spec) -> Path:
    """A folder with the whole stream as stream.parquet, beside a Parquet file for each relation."""

    def write(folder: Path) -> None:
        _write(make_stream(spec), folder / "stream.parquet")
        for name, table in make_relations(spec).items():
            _write(table, folder / f"{name}.parquet")

    return written_once(f"archive-{spec.name}", write)


def micro_batches(spec: Spec, files: int) -> Path:
    """The stream as stream/part-*.parquet, files of equally many instants, each modified later than the one before."""
    if spec.instants % files:
        message = f"{spec.instants} instants cannot be cut into {files} equal files"
        raise ValueError(message)

    def write(folder: Path) -> None:
        for name, table in make_relations(spec).items():
            _write(table, folder / f"{name}.parquet")
        stream = make_stream(spec)
        bounds = np.searchsorted(stream["t"].to_numpy(), np.arange(files + 1) * (spec.instants // files))
        (folder / "stream").mkdir()
        for number, (lo, hi) in enumerate(zip(bounds[:-1], bounds[1:], strict=True)):
            path = folder / "stream" / f"part-{number:03d}.parquet"
            _write(stream.slice(lo, hi - lo), path)
            os.utime(path, (1_700_000_000 + 10 * number,) * 2)

    return written_once(f"files-{files}-{spec.name}", write)


def _write(table: pa.Table, path: Path) -> None:
    # Without Arrow's own schema the columns are plain text to every reader, as other engines would have written them.
    pq.write_table(table, path, row_group_size=ROWS_A_GROUP, store_schema=False)


def written_once(name: str, write: Callable[[Path], None]) -> Path:
    """The folder `name` of the cache; a run that is broken off leaves no half of it behind."""
    folder = cache_folder() / name
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix="writing-", dir=folder.parent))
        write(staging)
        try:
            staging.rename(folder)
        except OSError:  # another process was first
            shutil.rmtree(staging)
    return folder
