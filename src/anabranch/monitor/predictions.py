"""What a bucket holds: predictions as columns, each with when it applies, and the keys that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I32, I64, Bools
from anabranch.columns.times import TimeKind, restore_doubles
from anabranch.transport.layout import Layout, require_prediction


def unit_of(kind: TimeKind) -> float:
    """How long one of a time is, in the unit of rates and durations."""
    return 1e-6 if kind is TimeKind.TIMESTAMP else 1.0


def clock_of(code: I64, kind: TimeKind) -> I64 | F64:
    """Times whose differences are exact: whole numbers where the times are, else doubles."""
    return restore_doubles(code) if kind is TimeKind.DOUBLE else code


@dataclass(frozen=True, slots=True)
class Predictions:
    """Predictions, as columns.

    Attributes
    ----------
    stream, key, home : number of the stream, of the key in it, and of the part of all keys that it belongs to
    code : the code of the time
    begin, end : from when to when it applies, counted from its time; the end is open
    able : which operands it can be, a bit each
    buffered : whether those to come are compared with it
    values, rates, errors : (n, columns)
    """

    stream: I32
    key: I32
    home: I32
    code: I64
    begin: F64
    end: F64
    able: I64
    buffered: Bools
    values: F64
    rates: F64
    errors: F64

    def __len__(self) -> int:
        return len(self.code)

    @staticmethod
    def empty(columns: int) -> Predictions:
        """No predictions of so many values."""
        whole, real = np.zeros(0, np.int32), np.zeros(0)
        matrix = np.zeros((0, columns))
        none = np.zeros(0, np.int64)
        return Predictions(whole, whole, whole, none, real, real, none, np.zeros(0, np.bool_), matrix, matrix, matrix)

    @staticmethod
    def concat(parts: Sequence[Predictions]) -> Predictions:
        """All predictions of some parts, at least one, in order."""
        return Predictions(
            **{each.name: np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(Predictions)}
        )

    def take(self, chosen: Bools | I64) -> Predictions:
        """Some of them."""
        return Predictions(**{each.name: getattr(self, each.name)[chosen] for each in fields(Predictions)})

    def where(self, chosen: Bools) -> Predictions:
        """The predictions at which a mask is true."""
        return self if chosen.all() else self.take(chosen)

    @property
    def event_time(self) -> I64:
        """The code of the time of each prediction."""
        return self.code

    def ending(self, end: F64) -> Predictions:
        """The same with other ends."""
        return replace(self, end=end)

    # ------------------------------------------------------------ state

    def save(self) -> pa.Table:
        """As a table."""
        columns = {}
        for each in fields(self):
            array = getattr(self, each.name)
            if array.ndim == 1:
                columns[each.name] = array
            else:
                columns |= {f"{each.name} {place}": array[:, place] for place in range(array.shape[1])}
        return pa.table(columns)

    @staticmethod
    def load(table: pa.Table, columns: int) -> Predictions:
        """Take over what `save` gave."""
        given = {name: table[name].to_numpy().copy() for name in table.column_names}
        parts = {}
        for each in fields(Predictions):
            if each.name in given:
                parts[each.name] = given[each.name]
            else:
                own = [given[f"{each.name} {place}"] for place in range(columns)]
                parts[each.name] = np.ascontiguousarray(np.stack(own, axis=1)) if own else np.zeros((len(table), 0))
        return Predictions(**parts)


# ---------------------------------------------------------------- when they apply


def by_key_and_time(held: Predictions) -> I64:
    """The order of predictions by stream, key and time; those given first come first."""
    return np.lexsort((held.code, held.key, held.stream))


def without_repeats(held: Predictions, known: int) -> tuple[Predictions, int]:
    """The predictions without those from `known` on that say what one before says, and how many these were.

    Of what is known there may be several versions, which say the same about different times.
    """
    kept = np.ones(len(held), np.bool_)
    order = by_key_and_time(held)
    same = np.zeros(len(held), np.bool_)
    same[order[1:]] = _same_instant(held, order)
    suspects = np.flatnonzero(same | _followed(same, order))
    if len(suspects):
        whole = np.stack([held.stream[suspects], held.key[suspects], held.code[suspects]], axis=1)
        real = np.concatenate([each[suspects] + 0.0 for each in (held.values, held.rates, held.errors)], axis=1)
        said = np.concatenate([whole.astype(np.int64), np.ascontiguousarray(real).view(np.int64)], axis=1)
        _, firsts = np.unique(said, axis=0, return_index=True)
        kept[suspects[suspects >= known]] = False
        kept[suspects[firsts]] = True
    return (held if kept.all() else held.take(kept)), int((~kept).sum())


def _same_instant(held: Predictions, order: I64) -> Bools:
    """Whether each prediction but the first, in order, is of the key and time of the one before."""
    one, two = order[:-1], order[1:]
    return (
        (held.stream[one] == held.stream[two]) & (held.key[one] == held.key[two]) & (held.code[one] == held.code[two])
    )


def _followed(same: Bools, order: I64) -> Bools:
    before = np.zeros(len(same), np.bool_)
    before[order[:-1]] = same[order[1:]]
    return before


def ends(held: Predictions, layouts: Sequence[Layout]) -> F64:
    """When each prediction no longer applies: after the period, or where its key has a later one."""
    kind = layouts[0].time_kind
    if not len(held):
        return np.zeros(0)
    order = by_key_and_time(held)
    begins = np.ones(len(order), np.bool_)
    begins[1:] = ~_same_instant(held, order)
    firsts = order[begins]  # the first prediction of each key and time
    clock = clock_of(held.code, kind)
    gap = np.full(len(firsts), np.inf)
    one, two = firsts[:-1], firsts[1:]
    goes_on = (held.stream[one] == held.stream[two]) & (held.key[one] == held.key[two])
    gap[:-1] = np.where(goes_on, (clock[two] - clock[one]) * unit_of(kind), np.inf)
    until = np.empty(len(held))
    until[order] = gap[np.cumsum(begins) - 1]
    return np.minimum(until, periods_of(layouts)[held.stream])


def periods_of(layouts: Sequence[Layout]) -> F64:
    """The PERIOD of each stream."""
    return np.array([require_prediction(layout).period for layout in layouts])
