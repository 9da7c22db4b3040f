"""Inferred streams on a worker: readings in, rows of the hidden state out, step by step, for every key of a bucket.

A key has rows from the step of its first reading on, as long as there are rows of *any* key: that a tag is not read any
more is evidence about its location. With EXPIRE, its rows end some time after its last reading (`presence.py`).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import BEGINNING, F64, I32, I64
from anabranch.catalog import Model
from anabranch.columns.dictionary import Dictionary
from anabranch.columns.hashing import hash_tuples
from anabranch.columns.times import TimeKind, step_times, steps_before, steps_of
from anabranch.inference.hmm import Hmm
from anabranch.inference.infer import Inference, Inferred, KeyState
from anabranch.inference.presence import FOREVER, Readings, Spans, spans_of
from anabranch.transport.derivation import Derived
from anabranch.transport.rows import Rows

UNKNOWN_READER = "the model does not know this reader"
IMPOSSIBLE = "the model cannot explain this reading after the previous ones"

#: The next step of keys that have none, in saved state.
_NOT_BEGUN = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class InferredFrom:
    """How a stream is inferred: the method and its model, the type of the locations, and the length of a step.

    `quantities` are the positions of the model's measured quantities among the VALUE columns of the readings. A key is
    forgotten after more than `expire` steps without a reading.
    """

    inference: Inference
    value_type: pa.DataType
    step: float
    quantities: tuple[int, ...] = ()
    expire: int | None = None

    @property
    def lag(self) -> int:
        """How many steps after a step have readings that count."""
        return self.inference.lag

    def identity(self) -> dict[str, object]:
        """The method and a digest of the model: state is valid for the same model only."""
        identity: dict[str, object] = {
            "method": self.inference.method,
            "particles": self.inference.particles,
            "prune": self.inference.prune,
            "step": self.step,
            "value type": str(self.value_type),
            "model": digest_of(self.inference.hmm),
        }
        if self.lag:
            identity["lag"] = self.lag
        if self.expire is not None:
            identity["expire"] = self.expire
        return identity

    def for_people(self) -> InferredFrom:
        """The same with rows that have probabilities, also where queries need weights."""
        return replace(self, inference=self.inference.with_pairs())

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
    """The inferred keys of one bucket: the state of each that is present."""

    def __init__(self, derivation: InferredFrom, kind: TimeKind) -> None:
        self._inference = derivation.inference
        self._step = derivation.step
        self._kind = kind
        self._longest = FOREVER if derivation.expire is None else derivation.expire
        self._quantities = derivation.quantities
        #: For each key, its state, None while it is absent, and the step of its last reading.
        self._states: list[KeyState | None] = []
        self._last = np.zeros(0, np.int64)
        #: The first step of which no rows have been made; None before the first key.
        self._done: int | None = None
        #: The readings of steps that LAG has only looked at.
        self._held = Readings.none(len(derivation.quantities))
        self.values = _values(self._inference, derivation.value_type)

    def advance(self, rows: Rows, keys: Dictionary, readings: Dictionary, watermark: int, ended: bool) -> Derived:
        """Take the readings before the watermark, and infer all steps for which no later reading counts."""
        n_new = len(keys) - len(self._states)
        self._states += [None] * n_new
        self._last = np.concatenate([self._last, np.zeros(n_new, np.int64)])
        reader, measured = self._readings(readings, rows.value)
        unknown = (reader < 0) & (rows.value != 0)
        step = steps_of(rows.t, self._step, self._kind)
        arrived = Readings(rows.key.astype(np.int64), step, reader, measured).where(~unknown)
        known = self._held.followed_by(arrived)
        done = -FOREVER if self._done is None else self._done
        end = done if watermark == BEGINNING else max(done, steps_before(watermark, self._step, self._kind))
        final_end = end if ended else max(done, end - self._inference.lag)
        present = np.flatnonzero([state is not None for state in self._states])
        spans = spans_of(present, self._last[present], done, known, self._longest, final_end, end)
        step_starts = np.concatenate([[0], np.cumsum(spans.end - spans.first)])
        # The steps of all spans are numbered consecutively, span after span.
        step_index = step_starts[spans.of_reading] + known.step - spans.first[spans.of_reading]
        states = self._begin(spans, keys)
        inferred = self._infer(states, spans, step_starts, step_index, known)
        made = self._rows(spans, states, step_starts, inferred)
        instants = self._finish(spans, states, known, final_end)
        impossible = np.zeros(len(rows), np.bool_)
        impossible[~unknown] = np.isin(step_index[len(known.key) - len(arrived.key) :], inferred.impossible)
        impossible &= reader >= 0
        duplicates = _count_duplicates(rows.where(~unknown & ~impossible))
        return Derived(made, {UNKNOWN_READER: unknown, IMPOSSIBLE: impossible}, duplicates, instants)

    def _readings(self, readings: Dictionary, value: I32) -> tuple[I64, F64]:
        """The model's code of each reader, -1 for unknown readers and for *nothing*; and what the readings measured."""
        codes = {name: code for code, name in enumerate(self._inference.hmm.readers)}
        names, *columns = readings.take(np.arange(len(readings), dtype=np.int32))
        reader = np.array([codes.get(name, -1) for name in pc.cast(names, pa.string()).to_pylist()], np.int64)
        numbers = [pc.fill_null(pc.cast(columns[at - 1], pa.float64()), np.nan) for at in self._quantities]
        measured = np.zeros((len(readings), len(numbers)))
        for at, column in enumerate(numbers):
            measured[:, at] = column.to_numpy()
        return reader[value], measured[value]

    def _begin(self, spans: Spans, keys: Dictionary) -> list[KeyState]:
        """The state of each span: that of its key, or a new one."""
        new = spans.key[spans.begins].astype(np.int32)
        seeds = iter(hash_tuples(keys.take(new), len(new)).tolist())
        present = (None if begins else self._states[key] for key, begins in zip(spans.key, spans.begins, strict=True))
        return [self._inference.start(next(seeds)) if state is None else state for state in present]

    def _infer(
        self, states: list[KeyState], spans: Spans, step_starts: I64, step_index: I64, known: Readings
    ) -> Inferred:
        """Infer the steps of all spans, and update their states."""
        seen = spans.order[known.reader[spans.order] >= 0]
        reading_starts = np.searchsorted(step_index[seen], np.arange(step_starts[-1] + 1))
        return self._inference.advance_keys(
            states, step_starts, reading_starts.astype(np.int64), known.reader[seen].astype(np.int32),
            known.measured[seen] if self._quantities else None, (spans.end - spans.final).tolist(),
        )  # fmt: skip

    def _rows(self, spans: Spans, states: list[KeyState], step_starts: I64, inferred: Inferred) -> Rows:
        """The inferred rows, and those of keys that leave."""
        of_step = np.repeat(np.arange(len(spans.key)), np.diff(step_starts))
        number = np.arange(step_starts[-1]) - (step_starts[:-1] - spans.first)[of_step]
        step, span = inferred.step, of_step[inferred.step]
        rows = self._make_rows(spans.key[span], number[step], inferred.prev, inferred.location, inferred.p)
        if self._inference.model is not Model.MARKOV or self._inference.pairs:
            return rows
        leaving = [
            self._leaving_rows(spans, left, states[left], step_starts, inferred)
            for left in np.flatnonzero(spans.leaves).tolist()
        ]
        return Rows.concat([rows, *leaving])

    def _leaving_rows(self, spans: Spans, left: int, state: KeyState, step_starts: I64, inferred: Inferred) -> Rows:
        """The rows that move the last values of a key, which must not remain, to nothing or to its new first ones."""
        (before,) = np.nonzero(state.marginal)
        after, p = np.array([-1], np.int32), np.ones(1)
        key, step, next_span = spans.key[left], spans.final[left], left + 1
        if next_span < len(spans.key) and spans.key[next_span] == key and spans.first[next_span] == step:
            first = inferred.step == step_starts[next_span]
            after, p = inferred.location[first], inferred.p[first]
        n, n_after = len(before) * len(after), len(after)
        prev, location = np.repeat(before, n_after), np.tile(after, len(before))
        return self._make_rows(np.full(n, key), np.full(n, step), prev, location, np.tile(p, len(before)))

    def _make_rows(self, key: I64, step: I64, prev: I32 | I64, location: I32, p: F64) -> Rows:
        return Rows(
            stream=np.zeros(len(p), np.int32),
            key=key.astype(np.int32),
            value=(location + 1).astype(np.int32),
            prev=(prev + 1).astype(np.int32),
            t=step_times(step, self._step, self._kind),
            p=p,
        )

    def _finish(self, spans: Spans, states: list[KeyState], known: Readings, final_end: int) -> I64:
        """Keep what the next call needs, and return the times of the steps of which rows were made, of any key."""
        self._held = known.where(known.step >= final_end)
        has_rows = spans.first < spans.final
        for number in np.flatnonzero(has_rows | ~spans.begins).tolist():
            key = spans.key[number]
            self._states[key] = None if spans.leaves[number] else states[number]
            self._last[key] = spans.last[number]
        if self._done is None and not has_rows.any():
            return np.zeros(0, np.int64)
        begin = int(spans.first[has_rows].min()) if self._done is None else self._done
        self._done = final_end
        return step_times(np.arange(begin, final_end), self._step, self._kind)

    def save(self) -> pa.Table:
        """The state of every key."""
        states = [
            (np.zeros(0), np.zeros(0, np.int64)) if state is None else state.to_arrays() for state in self._states
        ]
        floats, ints = zip(*states, strict=True) if states else ((), ())
        columns = {
            "next": np.full(len(states), _NOT_BEGUN if self._done is None else self._done),
            "begun": [state is not None for state in self._states],
            "floats": pa.array(floats, pa.list_(pa.float64())),
            "ints": pa.array(ints, pa.list_(pa.int64())),
        }
        if self._longest < FOREVER:
            columns["last"] = self._last
        if self._inference.lag:
            columns |= self._held.to_columns(len(states))
        return pa.table(columns)

    def load(self, saved: pa.Table) -> None:
        """Restore what `save` returned."""
        n_states = len(self._inference.states.location)
        nexts = saved["next"].to_numpy()
        self._done = int(nexts.min()) if len(nexts) and nexts.min() < _NOT_BEGUN else None
        self._states = [
            KeyState.from_arrays(np.array(floats, np.float64), np.array(ints, np.int64), n_states) if begun else None
            for begun, floats, ints in zip(
                *(saved[name].to_pylist() for name in ("begun", "floats", "ints")), strict=True
            )
        ]
        self._last = saved["last"].to_numpy().copy() if "last" in saved.column_names else np.zeros(len(nexts), np.int64)
        if self._inference.lag:
            self._held = Readings.of_columns(saved, len(self._quantities))


def _values(inference: Inference, kind: pa.DataType) -> Dictionary:
    """The values of the inferred rows, by code; the first is *nothing*.

    In a MARKOV stream, the codes are those of the states. So a location has a value for each stage, and conditions see
    only the location.
    """
    states, locations = inference.states, inference.hmm.locations
    if inference.model is not Model.MARKOV or states.plain:
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
