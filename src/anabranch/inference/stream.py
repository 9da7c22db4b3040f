"""Inferred streams on a worker: readings in, rows of the hidden state out, step by step, for every key of a bucket.

A key has rows from the step of its first reading on, as long as there are rows of *any* key: that a tag is not read any
more is evidence about its location.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import BEGINNING, F64, I32, I64
from anabranch.columns.dictionary import Dictionary
from anabranch.columns.hashing import hash_tuples
from anabranch.columns.times import TimeKind, step_times, steps_before, steps_of
from anabranch.inference.hmm import Hmm
from anabranch.inference.infer import Inference, KeyState
from anabranch.transport.derivation import Derived
from anabranch.transport.rows import Rows

UNKNOWN_READER = "the model does not know this reader"
IMPOSSIBLE = "the model cannot explain this reading after the previous ones"


@dataclass(frozen=True, slots=True)
class InferredFrom:
    """How a stream is inferred: the method and its model, the type of the locations, and the length of a step.

    `quantities` are the positions of the model's measured quantities among the VALUE columns of the readings.
    """

    inference: Inference
    value_type: pa.DataType
    step: float
    quantities: tuple[int, ...] = ()

    def identity(self) -> dict[str, object]:
        """The method and a digest of the model: state is valid for the same model only."""
        return {
            "method": self.inference.method,
            "particles": self.inference.particles,
            "prune": self.inference.prune,
            "step": self.step,
            "value type": str(self.value_type),
            "model": digest_of(self.inference.hmm),
        }

    def open(self, kind: TimeKind) -> InferredKeys:
        """The keys of one bucket."""
        return InferredKeys(self, kind)


def digest_of(hmm: Hmm) -> str:
    """A digest of the contents of a model."""
    digest = hashlib.sha256(json.dumps([hmm.locations, hmm.readers, hmm.sensing.name]).encode())
    arrays = [hmm.initial, hmm.starts, hmm.targets, hmm.p, hmm.reader_starts, hmm.reader_locations, hmm.reader_p]
    optional = [hmm.silence, hmm.stages]
    if hmm.gaussians is not None:
        digest.update(json.dumps(hmm.gaussians.quantities).encode())
        optional += [hmm.gaussians.mean, hmm.gaussians.deviation]
    for array in [*arrays, *(array for array in optional if array is not None)]:
        digest.update(np.ascontiguousarray(array).tobytes())
    # A model without tempering has the digest that it had before there was any.
    if hmm.exponent != 1 or hmm.exponent_so_far is not None:
        digest.update(repr((hmm.exponent, hmm.exponent_so_far)).encode())
    return digest.hexdigest()


class InferredKeys:
    """The inferred keys of one bucket: the state and the next step of each."""

    def __init__(self, derivation: InferredFrom, kind: TimeKind) -> None:
        self._inference = derivation.inference
        self._step = derivation.step
        self._kind = kind
        self._states: list[KeyState] = []
        #: For each key, the next step to infer, and whether it has had a reading.
        self._next = np.zeros(0, np.int64)
        self._begun = np.zeros(0, np.bool_)
        self._quantities = derivation.quantities
        self.values = _values(self._inference, derivation.value_type)

    def advance(self, rows: Rows, keys: Dictionary, readings: Dictionary, watermark: int) -> Derived:
        """Take the readings before the watermark, and infer all complete steps before it."""
        reader, measured = self._readings(readings, rows.value)
        unknown = (reader < 0) & (rows.value != 0)
        step = steps_of(rows.t, self._step, self._kind)
        self._begin(keys, rows.key[~unknown], step[~unknown])
        end = self._end(watermark)
        first_step = np.where(self._begun, np.minimum(self._next, end), end)
        counts = end - first_step
        step_starts = np.concatenate([[0], np.cumsum(counts)])
        # The steps of all keys are numbered consecutively, key after key.
        step_index = step_starts[rows.key] + step - first_step[rows.key]
        seen = np.flatnonzero((reader >= 0) & ~unknown)
        seen = seen[np.argsort(step_index[seen], kind="stable")]
        reading_starts = np.searchsorted(step_index[seen], np.arange(step_starts[-1] + 1))
        inferred = self._inference.advance_keys(
            self._states, step_starts, reading_starts.astype(np.int64), reader[seen].astype(np.int32),
            None if measured is None else measured[seen],
        )  # fmt: skip
        self._next = np.where(self._begun, end, self._next)
        key = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        number = np.arange(step_starts[-1]) - np.repeat(step_starts[:-1] - first_step, counts)
        times = step_times(number, self._step, self._kind)
        inferred_rows = Rows(
            stream=np.zeros(len(inferred.step), np.int32),
            key=key[inferred.step],
            value=inferred.location + np.int32(1),
            prev=inferred.prev + np.int32(1),
            t=times[inferred.step],
            p=inferred.p,
        )
        impossible = np.isin(step_index, inferred.impossible) & (reader >= 0) & ~unknown
        duplicates = _count_duplicates(rows.where(~unknown & ~impossible))
        return Derived(inferred_rows, {UNKNOWN_READER: unknown, IMPOSSIBLE: impossible}, duplicates)

    def _readings(self, readings: Dictionary, value: I32) -> tuple[I64, F64 | None]:
        """The model's code of each reader, -1 for unknown readers and for *nothing*; and what the readings measured."""
        codes = {name: code for code, name in enumerate(self._inference.hmm.readers)}
        names, *columns = readings.take(np.arange(len(readings), dtype=np.int32))
        reader = np.array([codes.get(name, -1) for name in pc.cast(names, pa.string()).to_pylist()], np.int64)
        if not self._quantities:
            return reader[value], None
        numbers = [pc.fill_null(pc.cast(columns[at - 1], pa.float64()), np.nan) for at in self._quantities]
        return reader[value], np.stack([column.to_numpy() for column in numbers], axis=1)[value]

    def _begin(self, keys: Dictionary, key: I32, step: I64) -> None:
        """Add new keys, and set the first step of each key that is read for the first time."""
        n_known = len(self._states)
        n_new = len(keys) - n_known
        if n_new > 0:
            seeds = hash_tuples(keys.take(np.arange(n_known, len(keys), dtype=np.int32)), n_new)
            self._states += [self._inference.start(int(seed)) for seed in seeds]
            self._next = np.concatenate([self._next, np.full(n_new, np.iinfo(np.int64).max)])
            self._begun = np.concatenate([self._begun, np.zeros(n_new, np.bool_)])
        first = ~self._begun[key]
        np.minimum.at(self._next, key[first], step[first])
        self._begun[key] = True

    def _end(self, watermark: int) -> int:
        """The first step that cannot be inferred yet."""
        if watermark == BEGINNING:
            return int(self._next[self._begun].min(initial=0))
        return steps_before(watermark, self._step, self._kind)

    def save(self) -> pa.Table:
        """The state of every key."""
        floats, ints = zip(*(state.to_arrays() for state in self._states), strict=True) if self._states else ((), ())
        return pa.table(
            {
                "next": self._next,
                "begun": self._begun,
                "floats": pa.array(floats, pa.list_(pa.float64())),
                "ints": pa.array(ints, pa.list_(pa.int64())),
            }
        )

    def load(self, saved: pa.Table) -> None:
        """Restore what `save` returned."""
        n_states = len(self._inference.states.location)
        self._next = saved["next"].to_numpy().copy()
        self._begun = saved["begun"].to_numpy().copy()
        self._states = [
            KeyState.from_arrays(np.array(floats, np.float64), np.array(ints, np.int64), n_states)
            for floats, ints in zip(saved["floats"].to_pylist(), saved["ints"].to_pylist(), strict=True)
        ]


def _values(inference: Inference, kind: pa.DataType) -> Dictionary:
    """The values of the inferred rows, by code; the first is *nothing*.

    With SMOOTH, the codes are those of the states. So a location has a value for each stage, and conditions see only
    the location.
    """
    states, locations = inference.states, inference.hmm.locations
    if inference.method != "SMOOTH" or states.plain:
        values = Dictionary([kind])
        values.encode(pa.table({"0": pa.array([None, *locations], pa.string()).cast(kind)}))
        return values
    values = Dictionary([kind, pa.int32()])
    names = pa.array([None, *(locations[x] for x in states.location)], pa.string()).cast(kind)
    values.encode(pa.table({"0": names, "1": pa.array([None, *states.stage.tolist()], pa.int32())}))
    return values


def _count_duplicates(rows: Rows) -> int:
    """How many rows have the key, the time and the reader of another row."""
    distinct = np.unique(np.stack([rows.key, rows.t, rows.value]), axis=1).shape[1] if len(rows) else 0
    return len(rows) - distinct
