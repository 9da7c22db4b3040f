"""The predictions of a bucket as columns, and when each of them applies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I32, I64, Bools
from anabranch.columns.times import TimeKind, restore_doubles
from anabranch.transport.layout import Layout, require_prediction

#: A sum of columns, by their indexes, each times a factor.
Terms = tuple[tuple[int, float], ...]


def unit_of(kind: TimeKind) -> float:
    """The length of one unit of a time code, in the unit of rates and durations."""
    return 1e-6 if kind is TimeKind.TIMESTAMP else 1.0


def exact_times(code: I64, kind: TimeKind) -> I64 | F64:
    """Times whose differences are exact: integers for INTEGER and TIMESTAMP, otherwise doubles."""
    return restore_doubles(code) if kind is TimeKind.DOUBLE else code


def elapsed(start: I64, end: I64, kind: TimeKind) -> F64:
    """The time between two time codes, in the unit of rates and durations."""
    return (exact_times(end, kind) - exact_times(start, kind)).astype(np.float64) * unit_of(kind)


@dataclass(frozen=True, slots=True)
class Predictions:
    """Predictions, as columns.

    Attributes
    ----------
    stream, key, part : number of the stream, of the key in the stream, and of the part of the key
    code : the code of the time
    begin, end : when it applies, relative to its time; the end is exclusive
    able : the operands that it can be, one bit each
    buffered : whether later predictions are compared with it
    values, rates, errors : (n, columns)
    accelerations : (n, columns); (n, 0) if no stream has any
    """

    stream: I32
    key: I32
    part: I32
    code: I64
    begin: F64
    end: F64
    able: I64
    buffered: Bools
    values: F64
    rates: F64
    errors: F64
    accelerations: F64

    def __len__(self) -> int:
        return len(self.code)

    @staticmethod
    def empty(columns: int, accelerations: int) -> Predictions:
        """No predictions, with this number of value columns, and of columns of accelerations."""
        i32, i64, f64 = np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0)
        matrix = np.zeros((0, columns))
        return Predictions(
            i32, i32, i32, i64, f64, f64, i64, np.zeros(0, np.bool_), matrix, matrix, matrix,
            np.zeros((0, accelerations)),
        )  # fmt: skip

    @staticmethod
    def concat(parts: Sequence[Predictions]) -> Predictions:
        """All predictions of at least one part, in order."""
        return Predictions(
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in Predictions.names()}
        )

    @staticmethod
    def names() -> list[str]:
        """The names of the columns."""
        return [field.name for field in fields(Predictions)]

    def take(self, chosen: Bools | I64) -> Predictions:
        """The predictions selected by a mask or by indexes."""
        return Predictions(**{name: getattr(self, name)[chosen] for name in Predictions.names()})

    def where(self, chosen: Bools) -> Predictions:
        """The predictions at which a mask is true."""
        return self if chosen.all() else self.take(chosen)

    @property
    def event_time(self) -> I64:
        """The code of the time of each prediction."""
        return self.code

    def ending(self, end: F64) -> Predictions:
        """The same predictions with other ends."""
        return replace(self, end=end)

    def with_sums(self, sums: Sequence[Terms]) -> Predictions:
        """The same predictions with more columns: sums of their values. The error of a sum is the sum of the errors."""
        if not sums:
            return self
        return replace(
            self,
            values=_extended(self.values, sums),
            rates=_extended(self.rates, sums),
            errors=_extended(self.errors, [tuple((k, abs(factor)) for k, factor in terms) for terms in sums]),
            accelerations=_extended(self.accelerations, sums) if self.is_accelerated else self.accelerations,
        )

    @property
    def is_accelerated(self) -> bool:
        """Whether a stream has accelerations."""
        return self.accelerations.shape[1] > 0

    def range_of(self, column: int, rows: I64) -> tuple[F64, F64]:
        """The smallest and the largest value that some predictions have in a column while they apply."""
        at, rate, begin, end = self.values[rows, column], self.rates[rows, column], self.begin[rows], self.end[rows]
        if not self.is_accelerated:
            ends = at + rate * begin, at + rate * end
            return np.minimum(*ends), np.maximum(*ends)
        half = 0.5 * self.accelerations[rows, column]
        # A value that turns has its extreme where its rate is 0.
        turn = np.divide(-rate, 2.0 * half, out=begin.copy(), where=half != 0.0)
        instants = np.stack([begin, end, np.clip(turn, begin, np.maximum(begin, end))])
        values = at + instants * (rate + half * instants)
        return values.min(axis=0), values.max(axis=0)

    # ------------------------------------------------------------ state

    def save(self) -> pa.Table:
        """The predictions as a table."""
        columns = {}
        for name in Predictions.names():
            array = getattr(self, name)
            if array.ndim == 1:
                columns[name] = array
            else:
                columns |= {f"{name} {index}": array[:, index] for index in range(array.shape[1])}
        return pa.table(columns)

    @staticmethod
    def load(table: pa.Table) -> Predictions:
        """Restore what `save` returned."""
        saved = {name: table[name].to_numpy().copy() for name in table.column_names}
        arrays = {}
        for name in Predictions.names():
            if name in saved:
                arrays[name] = saved[name]
            else:
                matrix = [array for saved_name, array in saved.items() if saved_name.startswith(f"{name} ")]
                arrays[name] = np.ascontiguousarray(np.stack(matrix, axis=1)) if matrix else np.zeros((len(table), 0))
        return Predictions(**arrays)


def _extended(columns: F64, sums: Sequence[Terms]) -> F64:
    """The columns, and behind them sums of them."""
    more = [columns[:, [k for k, _ in terms]] @ np.array([factor for _, factor in terms]) for terms in sums]
    return np.ascontiguousarray(np.column_stack([columns, *more]))


# ---------------------------------------------------------------- when predictions apply


def by_key_and_time(held: Predictions) -> I64:
    """The order of predictions by stream, key and time; ties keep their order."""
    return np.lexsort((held.code, held.key, held.stream))


def without_duplicates(held: Predictions, known: int) -> tuple[Predictions, int]:
    """The predictions without those from index `known` on that are equal to an earlier one; and how many these were.

    The first `known` predictions are all kept: they may be versions of one prediction that apply at different times.
    """
    kept = np.ones(len(held), np.bool_)
    order = by_key_and_time(held)
    same_as_before = np.zeros(len(held), np.bool_)
    same_as_before[order[1:]] = _same_instant(held, order)
    same_as_next = np.zeros(len(held), np.bool_)
    same_as_next[order[:-1]] = same_as_before[order[1:]]
    candidates = np.flatnonzero(same_as_before | same_as_next)
    if len(candidates):
        integers = np.stack([held.stream[candidates], held.key[candidates], held.code[candidates]], axis=1)
        doubles = np.concatenate(
            [columns[candidates] + 0.0 for columns in (held.values, held.rates, held.errors, held.accelerations)],
            axis=1,
        )
        contents = np.concatenate([integers.astype(np.int64), np.ascontiguousarray(doubles).view(np.int64)], axis=1)
        _, firsts = np.unique(contents, axis=0, return_index=True)
        kept[candidates[candidates >= known]] = False
        kept[candidates[firsts]] = True
    return (held if kept.all() else held.take(kept)), int((~kept).sum())


def _same_instant(held: Predictions, order: I64) -> Bools:
    """For each prediction except the first, in order: whether it has the key and time of the one before."""
    one, two = order[:-1], order[1:]
    return (
        (held.stream[one] == held.stream[two]) & (held.key[one] == held.key[two]) & (held.code[one] == held.code[two])
    )


def ends(held: Predictions, layouts: Sequence[Layout]) -> F64:
    """When each prediction ceases to apply: after the PERIOD, or at the next prediction of its key."""
    kind = layouts[0].time_kind
    if not len(held):
        return np.zeros(0)
    order = by_key_and_time(held)
    begins = np.ones(len(order), np.bool_)
    begins[1:] = ~_same_instant(held, order)
    firsts = order[begins]  # the first prediction of each key and time
    gap = np.full(len(firsts), np.inf)
    one, two = firsts[:-1], firsts[1:]
    same_key = (held.stream[one] == held.stream[two]) & (held.key[one] == held.key[two])
    gap[:-1] = np.where(same_key, elapsed(held.code[one], held.code[two], kind), np.inf)
    until = np.empty(len(held))
    until[order] = gap[np.cumsum(begins) - 1]
    return np.minimum(until, periods_of(layouts)[held.stream])


def no_predictions(layouts: Sequence[Layout]) -> Predictions:
    """No predictions of some streams."""
    width = max(len(layout.values) for layout in layouts)
    is_accelerated = any(require_prediction(layout).accelerations for layout in layouts)
    return Predictions.empty(width, width if is_accelerated else 0)


def periods_of(layouts: Sequence[Layout]) -> F64:
    """The PERIOD of each stream."""
    return np.array([require_prediction(layout).period for layout in layouts])
