"""The data of the PATTERN benchmarks: people who walk through a ring of rooms, as a stream of each model.

Every person (a key) has a true path. At each instant the stream has a *window* of rooms around the true one:

- CERTAIN: the room itself, one row per (key, t);
- INDEPENDENT: each room of the window with its probability, `alternatives` rows per (key, t);
- MARKOV: from each room of the previous window to `successors` rooms of this one, `alternatives * successors` rows.

Rows are ordered by time, then key, as they would arrive. The same `Spec` always gives the same rows. Files are written
once, to a subfolder of the temporary folder of the system.
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

#: Increase this when the same Spec gives other rows than before, so that older files are not used.
VERSION = 2

#: Row groups of about the size that engines write, so that an archive can be read in parts.
ROWS_PER_GROUP = 250_000

MODELS = ("MARKOV", "INDEPENDENT", "CERTAIN")


@dataclass(frozen=True, slots=True)
class Spec:
    """The size of a stream, and the seed of its random numbers."""

    model: str
    keys: int
    instants: int
    values: int = 20
    alternatives: int = 5
    successors: int = 2
    seed: int = 7

    @property
    def rows_per_instant(self) -> int:
        """The rows of all keys at one instant (at the first instant a MARKOV stream has fewer)."""
        rows = {"MARKOV": self.alternatives * self.successors, "INDEPENDENT": self.alternatives, "CERTAIN": 1}
        return self.keys * rows[self.model]

    @property
    def name(self) -> str:
        """A unique name of this workload."""
        sizes = f"{self.keys}k-{self.instants}t-{self.values}v-{self.alternatives}a-{self.successors}s"
        return f"{self.model.lower()}-{sizes}-seed{self.seed}"

    def __str__(self) -> str:
        return f"{self.model}, {self.keys:,} keys, {self.instants:,} instants"


def room(number: int) -> str:
    """Return the name of a room."""
    return f"room-{number:02d}"


def person(number: int) -> str:
    """Return the name of a person, the key."""
    return f"person-{number:06d}"


# ------------------------------------------------------------ rows


def make_stream(spec: Spec) -> pa.Table:
    """Return all rows of a stream: person, t, room, and depending on the model prev_room and p."""
    rng = np.random.default_rng(spec.seed)
    # Half of the steps stay, most others move to the next room: everyone passes each room repeatedly.
    steps = rng.choice(np.array([0, 1, 2]), size=(spec.instants, spec.keys), p=[0.5, 0.4, 0.1])
    steps[0] = rng.integers(spec.values, size=spec.keys)
    paths = np.cumsum(steps, axis=0) % spec.values
    t, key = np.divmod(np.arange(spec.instants * spec.keys), spec.keys)
    if spec.model == "CERTAIN":
        return _table(spec, key, t, {"room": paths.reshape(-1)})
    if spec.model == "INDEPENDENT":
        return _independent(spec, rng, key, t, paths.reshape(-1))
    return _markov(spec, rng, key, t, paths)


def _independent(spec: Spec, rng: np.random.Generator, key, t, path) -> pa.Table:
    width = spec.alternatives
    rooms = (path[:, None] + np.arange(width)) % spec.values
    p = _distributions(rng, len(path), width)
    return _table(spec, np.repeat(key, width), np.repeat(t, width), {"room": rooms.reshape(-1)}, p.reshape(-1))


def _markov(spec: Spec, rng: np.random.Generator, key, t, paths) -> pa.Table:
    """Return rows from NULL to the first window of rooms; then from room i of it to rooms i, i + 1, ... of the next."""
    width, fan, keys = spec.alternatives, spec.successors, spec.keys
    first = (paths[0][:, None] + np.arange(width)) % spec.values
    start = _distributions(rng, keys, width)
    offset = np.arange(width)
    target = (offset[:, None] + np.arange(fan)) % width
    before = np.broadcast_to(((paths[:-1, :, None] + offset) % spec.values)[..., None], (*paths[1:].shape, width, fan))
    after = (paths[1:, :, None, None] + target) % spec.values
    p = _distributions(rng, before.size // fan, fan)
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


def _distributions(rng: np.random.Generator, n: int, width: int) -> npt.NDArray[np.float64]:
    """Return distributions over `width` outcomes that sum to 0.95."""
    weights = rng.random((n, width)) + 0.05
    return 0.95 * weights / weights.sum(axis=1, keepdims=True)


def _table(spec: Spec, key, t, rooms: dict[str, npt.NDArray], p=None) -> pa.Table:
    people, names = [person(number) for number in range(spec.keys)], [room(number) for number in range(spec.values)]
    columns = {"person": _text_column(key, people), "t": pa.array(t, pa.int64())}
    columns |= {name: _text_column(codes, names) for name, codes in rooms.items()}
    if p is not None:
        columns["p"] = pa.array(p)
    return pa.table(columns)


def _text_column(codes: npt.NDArray, names: list[str]) -> pa.DictionaryArray:
    """Return the texts of some codes; a code of -1 is NULL."""
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32), mask=codes < 0), pa.array(names))


# ------------------------------------------------------------ relations


def make_relations(spec: Spec) -> dict[str, pa.Table]:
    """Return office(person, room), hall(room) and coffee_room(room); there is one coffee room."""
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
    """Return the folder of the files."""
    return Path(tempfile.gettempdir()) / f"anabranch-benchmarks-{VERSION}"


def archive(spec: Spec) -> Path:
    """Return a folder with the stream as stream.parquet and a Parquet file for each relation."""

    def write(folder: Path) -> None:
        write_parquet(make_stream(spec), folder / "stream.parquet")
        _write_relations(spec, folder)

    return written_once(f"archive-{spec.name}", write)


def micro_batches(spec: Spec, files: int) -> Path:
    """Return a folder with the stream as stream/part-*.parquet.

    The files have equally many instants, and each is modified later than the previous one.
    """
    if spec.instants % files:
        message = f"{spec.instants} instants cannot be split into {files} equal files"
        raise ValueError(message)

    def write(folder: Path) -> None:
        _write_relations(spec, folder)
        stream = make_stream(spec)
        bounds = np.searchsorted(stream["t"].to_numpy(), np.arange(files + 1) * (spec.instants // files))
        (folder / "stream").mkdir()
        for number, (lo, hi) in enumerate(zip(bounds[:-1], bounds[1:], strict=True)):
            write_part(stream.slice(lo, hi - lo), folder / "stream", number)

    return written_once(f"files-{files}-{spec.name}", write)


def _write_relations(spec: Spec, folder: Path) -> None:
    for name, table in make_relations(spec).items():
        write_parquet(table, folder / f"{name}.parquet")


def write_part(table: pa.Table, folder: Path, number: int) -> None:
    """Write one file of a stream; its modification time is later than that of the files before."""
    path = folder / f"part-{number:03d}.parquet"
    write_parquet(table, path)
    os.utime(path, (1_700_000_000 + 10 * number,) * 2)


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write a Parquet file as other engines would: without Arrow's schema every reader sees plain text columns."""
    pq.write_table(table, path, row_group_size=ROWS_PER_GROUP, store_schema=False)


def written_once(name: str, write: Callable[[Path], None]) -> Path:
    """Return the folder `name` of the cache, and write it first if it is missing; it is never partially written."""
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
