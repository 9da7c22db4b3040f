"""Inferred streams on a worker: readings in, rows of the hidden state out, step by step, for every key of a bucket.

A key has rows from the step of its first reading on, as long as there are rows of *any* key: that a tag is not read any
more is evidence about its location. With EXPIRE, its rows end some time after its last reading (`presence.py`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import BEGINNING, F64, I32, I64, Bools
from anabranch.catalog import Model
from anabranch.columns.dictionary import Dictionary
from anabranch.columns.hashing import hash_tuples
from anabranch.columns.times import TimeKind, step_times, steps_before, steps_of
from anabranch.inference.classes import KeyClasses, assign_classes
from anabranch.inference.hmm import Hmm
from anabranch.inference.infer import Inference, Inferred, KeyState, advance_keys
from anabranch.inference.presence import FOREVER, Readings, Spans, spans_of
from anabranch.transport.derivation import Derived
from anabranch.transport.rows import Rows

UNKNOWN_READER = "the model does not know this reader"
UNKNOWN_CLASS = "there is no model for this class"
OTHER_CLASS = "the key has another class since its first reading"
IMPOSSIBLE = "the model cannot explain this reading after the previous ones"

#: The next step of keys that have none, in saved state.
_NOT_BEGUN = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class InferredFrom:
    """How a stream is inferred: the method and its model, the type of the locations, and the length of a step.

    `quantities` are the positions of the model's measured quantities among the VALUE columns of the readings. A key is
    forgotten after more than `expire` steps without a reading. With `classes`, there is an inference for each class,
    and they differ only in their models.
    """

    inferences: tuple[Inference, ...]
    value_type: pa.DataType
    step: float
    quantities: tuple[int, ...] = ()
    expire: int | None = None
    classes: KeyClasses | None = None

    @property
    def lag(self) -> int:
        """How many steps after a step have readings that count."""
        return self.inferences[0].lag

    def identity(self) -> dict[str, object]:
        """The method and a digest of each model: state is valid for the same models only."""
        inference, digests = self.inferences[0], [digest_of(inference.hmm) for inference in self.inferences]
        identity: dict[str, object] = {
            "method": inference.method,
            "particles": inference.particles,
            "prune": inference.prune,
            "step": self.step,
            "value type": str(self.value_type),
            "model": digests[0] if self.classes is None else dict(zip(self.classes.names, digests, strict=True)),
        }
        if self.classes is not None:
            identity["by"] = self.classes.column.lower()
        if self.lag:
            identity["lag"] = self.lag
        if self.expire is not None:
            identity["expire"] = self.expire
        return identity

    def for_people(self) -> InferredFrom:
        """The same with rows that have probabilities, also where queries need weights."""
        return replace(self, inferences=tuple(inference.with_pairs() for inference in self.inferences))

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
        self._inferences = derivation.inferences
        self._classes = derivation.classes
        self._step = derivation.step
        self._kind = kind
        self._longest = FOREVER if derivation.expire is None else derivation.expire
        self._quantities = derivation.quantities
        #: For each key, its state, None while it is absent, the step of its last reading, and its class: the number of
        #: its inference, -1 while it is unknown.
        self._states: list[KeyState | None] = []
        self._last = np.zeros(0, np.int64)
        self._class = np.zeros(0, np.int64)
        #: The first step of which no rows have been made; None before the first key.
        self._done: int | None = None
        #: The readings of steps that LAG has only looked at.
        self._held = Readings.none(len(derivation.quantities))
        self.values, codes = _values(self._inferences, derivation.value_type)
        #: The values of the states of each inference, one inference after the other; each begins with *nothing*.
        self._codes = np.concatenate(codes)
        self._first_code = np.cumsum([0, *map(len, codes[:-1])])

    def advance(self, rows: Rows, keys: Dictionary, readings: Dictionary, watermark: int, ended: bool) -> Derived:
        """Take the readings before the watermark, and infer all steps for which no later reading counts."""
        n_new = len(keys) - len(self._states)
        self._states += [None] * n_new
        self._last = np.concatenate([self._last, np.zeros(n_new, np.int64)])
        refused = self._classify(rows, keys, readings, n_new)
        reader, measured, nothing = self._readings(readings, rows)
        classified = ~np.logical_or.reduce([np.zeros(len(rows), np.bool_), *refused.values()])
        unknown = (reader < 0) & ~nothing & classified
        usable = classified & ~unknown
        step = steps_of(rows.t, self._step, self._kind)
        arrived = Readings(rows.key.astype(np.int64), step, reader, measured).where(usable)
        known = self._held.followed_by(arrived)
        done = -FOREVER if self._done is None else self._done
        end = done if watermark == BEGINNING else max(done, steps_before(watermark, self._step, self._kind))
        final_end = end if ended else max(done, end - self._inferences[0].lag)
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
        impossible[usable] = np.isin(step_index[len(known.key) - len(arrived.key) :], inferred.impossible)
        impossible &= reader >= 0
        duplicates = _count_duplicates(rows.where(usable & ~impossible))
        rejected = {**refused, UNKNOWN_READER: unknown, IMPOSSIBLE: impossible}
        return Derived(made, rejected, duplicates, instants)

    def _classify(self, rows: Rows, keys: Dictionary, readings: Dictionary, n_new: int) -> dict[str, Bools]:
        """Give new keys their class, and return which rows have no class, or another than their key."""
        if self._classes is None:
            self._class = np.zeros(len(keys), np.int64)
            return {}
        if self._classes.in_key:
            new = keys.take(np.arange(len(keys) - n_new, len(keys), dtype=np.int32))
            self._class = np.append(self._class, self._classes.numbers(new[self._classes.position]))
            return {UNKNOWN_CLASS: self._class[rows.key] < 0}
        self._class = np.append(self._class, np.full(n_new, -1))
        columns = readings.take(np.arange(len(readings), dtype=np.int32))
        of_reading = self._classes.numbers(columns[self._classes.position])[rows.value]
        assign_classes(self._class, rows.key, rows.t, of_reading)
        unknown = of_reading < 0
        return {UNKNOWN_CLASS: unknown, OTHER_CLASS: ~unknown & (of_reading != self._class[rows.key])}

    def _readings(self, readings: Dictionary, rows: Rows) -> tuple[I64, F64, Bools]:
        """The model's code of each reader, -1 if it has none; what was measured; and whether *nothing* was read."""
        columns = readings.take(np.arange(len(readings), dtype=np.int32))
        names = pc.cast(columns[0], pa.string()).to_pylist()
        codes = [{name: code for code, name in enumerate(each.hmm.readers)} for each in self._inferences]
        reader = np.array([[of_model.get(name, -1) for name in names] for of_model in codes], np.int64)
        measured = np.zeros((len(readings), len(self._quantities)))
        for number, at in enumerate(self._quantities):
            measured[:, number] = pc.fill_null(pc.cast(columns[at], pa.float64()), np.nan).to_numpy()
        nothing = columns[0].is_null().to_numpy(zero_copy_only=False) & np.isnan(measured).all(axis=1)
        return reader[self._class[rows.key], rows.value], measured[rows.value], nothing[rows.value]

    def _begin(self, spans: Spans, keys: Dictionary) -> list[KeyState]:
        """The state of each span: that of its key, or a new one."""
        new = spans.key[spans.begins].astype(np.int32)
        seeds = iter(hash_tuples(keys.take(new), len(new)).tolist())
        present = (None if begins else self._states[key] for key, begins in zip(spans.key, spans.begins, strict=True))
        return [
            inference.start(next(seeds)) if state is None else state
            for inference, state in zip(self._of_spans(spans), present, strict=True)
        ]

    def _of_spans(self, spans: Spans) -> list[Inference]:
        """The inference of each span: that of its key."""
        return [self._inferences[number] for number in self._class[spans.key]]

    def _infer(
        self, states: list[KeyState], spans: Spans, step_starts: I64, step_index: I64, known: Readings
    ) -> Inferred:
        """Infer the steps of all spans, and update their states."""
        seen = spans.order[known.reader[spans.order] >= 0]
        reading_starts = np.searchsorted(step_index[seen], np.arange(step_starts[-1] + 1))
        return advance_keys(
            self._of_spans(spans), states, step_starts, reading_starts.astype(np.int64),
            known.reader[seen].astype(np.int32), known.measured[seen] if self._quantities else None,
            (spans.end - spans.final).tolist(),
        )  # fmt: skip

    def _rows(self, spans: Spans, states: list[KeyState], step_starts: I64, inferred: Inferred) -> Rows:
        """The inferred rows, and those of keys that leave."""
        of_step = np.repeat(np.arange(len(spans.key)), np.diff(step_starts))
        number = np.arange(step_starts[-1]) - (step_starts[:-1] - spans.first)[of_step]
        step, span = inferred.step, of_step[inferred.step]
        rows = self._make_rows(spans.key[span], number[step], inferred.prev, inferred.location, inferred.p)
        if self._inferences[0].model is not Model.MARKOV or self._inferences[0].pairs:
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
        nothing = 0 if self._classes is None else self._first_code[self._class[key]]
        return Rows(
            stream=np.zeros(len(p), np.int32),
            key=key.astype(np.int32),
            value=self._codes[nothing + location + 1],
            prev=self._codes[nothing + prev + 1],
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
        if self._classes is not None:
            columns["class"] = self._class
        if self._inferences[0].lag:
            columns |= self._held.to_columns(len(states))
        return pa.table(columns)

    def load(self, saved: pa.Table) -> None:
        """Restore what `save` returned."""
        nexts = saved["next"].to_numpy()
        self._class = np.zeros(len(nexts), np.int64) if self._classes is None else saved["class"].to_numpy().copy()
        n_states = [len(self._inferences[number].states.location) for number in self._class]
        self._done = int(nexts.min()) if len(nexts) and nexts.min() < _NOT_BEGUN else None
        self._states = [
            KeyState.from_arrays(np.array(floats, np.float64), np.array(ints, np.int64), n) if begun else None
            for n, begun, floats, ints in zip(
                n_states, *(saved[name].to_pylist() for name in ("begun", "floats", "ints")), strict=True
            )
        ]
        self._last = saved["last"].to_numpy().copy() if "last" in saved.column_names else np.zeros(len(nexts), np.int64)
        if self._inferences[0].lag:
            self._held = Readings.of_columns(saved, len(self._quantities))


def _values(inferences: Sequence[Inference], kind: pa.DataType) -> tuple[Dictionary, list[I32]]:
    """The values of the inferred rows, and for each inference those of *nothing* (0) and of its locations, by code.

    In a MARKOV stream, the codes are those of the states. So a location has a value for each stage, and conditions see
    only the location.
    """
    markov = inferences[0].model is Model.MARKOV
    staged = markov and not all(inference.states.plain for inference in inferences)
    values = Dictionary([kind, pa.int32()] if staged else [kind])
    codes = []
    for inference in inferences:
        states, locations = inference.states, inference.hmm.locations
        names = [locations[x] for x in states.location] if markov else locations
        columns = {"0": pa.array([None, *names], pa.string()).cast(kind)}
        if staged:
            columns["1"] = pa.array([None, *states.stage.tolist()], pa.int32())
        codes.append(values.encode(pa.table(columns)))
    return values, codes


def _count_duplicates(rows: Rows) -> int:
    """How many rows have the key, the time and the reader of another row."""
    distinct = np.unique(np.stack([rows.key, rows.t, rows.value]), axis=1).shape[1] if len(rows) else 0
    return len(rows) - distinct
