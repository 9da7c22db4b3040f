"""When the keys of an inferred stream are present: from a reading on, until none has come for longer than EXPIRE."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import F64, I64, Bools

#: Longer than any gap between two readings: without EXPIRE, a key is present from its first reading on.
FOREVER = 2**62


@dataclass(frozen=True, slots=True)
class Readings:
    """Readings of known readers; `reader` is -1 where nothing was read. `measured` is (readings, quantities)."""

    key: I64
    step: I64
    reader: I64
    measured: F64

    @classmethod
    def none(cls, n_quantities: int) -> Readings:
        """No readings."""
        empty = np.zeros(0, np.int64)
        return cls(empty, empty, empty, np.zeros((0, n_quantities)))

    def where(self, chosen: Bools | I64) -> Readings:
        """Some of the readings."""
        return Readings(self.key[chosen], self.step[chosen], self.reader[chosen], self.measured[chosen])

    def to_columns(self, n_keys: int) -> dict[str, pa.Array]:
        """The readings of each key, as lists."""
        order = np.argsort(self.key, kind="stable")
        starts = np.searchsorted(self.key[order], np.arange(n_keys + 1))
        columns = {"held step": self.step[order], "held reader": self.reader[order]}
        columns |= {f"held {quantity}": values for quantity, values in enumerate(self.measured[order].T)}
        return {name: pa.LargeListArray.from_arrays(starts, pa.array(column)) for name, column in columns.items()}

    @classmethod
    def of_columns(cls, saved: pa.Table, n_quantities: int) -> Readings:
        """The readings from what `to_columns` returned."""
        counts = pc.list_value_length(saved["held step"]).to_numpy()
        names = ("step", "reader", *map(str, range(n_quantities)))
        step, reader, *measured = (pc.list_flatten(saved[f"held {name}"]).to_numpy() for name in names)
        return cls(
            np.repeat(np.arange(len(counts)), counts), step, reader, np.reshape(measured, (n_quantities, len(step))).T
        )

    def followed_by(self, other: Readings) -> Readings:
        """These readings, and others."""
        columns = ((getattr(self, name), getattr(other, name)) for name in Readings.__slots__)
        return Readings(*(np.concatenate(parts) for parts in columns))


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans of steps in which keys are present, sorted by key and step.

    Attributes
    ----------
    key : the key of each
    first, final, end : rows are made of the steps first:final; the steps final:end are only looked at
    last : the step of the last reading before `final`; below every step if there is none
    begins : whether the key begins anew, and does not continue
    leaves : whether it is known that the key is absent, or begins anew, at the step `final`
    of_reading : for each reading, the number of its span
    order : the readings, sorted by key and step
    """

    key: I64
    first: I64
    final: I64
    end: I64
    last: I64
    begins: Bools
    leaves: Bools
    of_reading: I64
    order: I64


def spans_of(present: I64, last: I64, done: int, known: Readings, longest: int, final_end: int, end: int) -> Spans:
    """The spans of all keys that are present, or have readings.

    Parameters
    ----------
    present, last : the keys that are present at step `done`, ascending, and the steps of their last readings before it
    done : the first step of which no rows have been made
    known : the readings of the steps from `done` on
    longest : a key is absent when it has had no reading for more than this number of steps
    final_end, end : rows are made of the steps before `final_end`; readings are known of those before `end`
    """
    key, step = np.concatenate([present, known.key]), np.concatenate([last, known.step])
    is_reading = np.arange(len(key)) >= len(present)
    order = np.lexsort((step, is_reading, key))
    key, step, continues = key[order], step[order], order < len(present)
    new_key = np.diff(key, prepend=-1) != 0
    is_start = new_key | (np.diff(step, prepend=0) > longest)
    starts = np.flatnonzero(is_start)
    of_reading = np.zeros(len(key), np.int64)
    of_reading[order] = np.cumsum(is_start) - 1
    last_of_all = step[np.append(starts[1:], len(step)) - 1] if len(step) else step
    absent_from = last_of_all + longest + 1
    first = np.where(continues[starts], done, step[starts])
    before_final = np.where(step < final_end, step, np.iinfo(np.int64).min)
    return Spans(
        key=key[starts],
        first=first,
        final=np.maximum(first, np.minimum(final_end, absent_from)),
        end=np.maximum(first, np.minimum(end, absent_from)),
        last=np.maximum.reduceat(before_final, starts) if len(starts) else before_final,
        begins=~continues[starts],
        leaves=absent_from < final_end,
        of_reading=of_reading[len(present) :],
        order=order[~continues] - len(present),
    )
