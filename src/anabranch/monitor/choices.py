"""Which predictions are compared: every choice of one for each operand that can match at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import F64, I64, Bools
from anabranch.binding.typed import MIRRORED, Reference, Typed, conjunction, walk
from anabranch.columns.conditions import holds
from anabranch.columns.dictionary import Dictionary, flat
from anabranch.columns.times import decode_times
from anabranch.monitor.analysis import MAY, MonitorAnalysis, reach
from anabranch.monitor.kernel import candidates
from anabranch.monitor.placement import belongs
from anabranch.monitor.predictions import Predictions, clock_of, unit_of
from anabranch.transport.layout import Layout, require_prediction

#: So many choices are looked at together.
AT_ONCE = 1 << 18

_OPS = {
    "<": candidates.LESS, "<=": candidates.AT_MOST, ">": candidates.MORE,
    ">=": candidates.AT_LEAST, "=": candidates.EQUAL, "<>": candidates.UNEQUAL,
}  # fmt: skip


class Choices:
    """The choices among the predictions of a bucket.

    Parameters
    ----------
    streams : the number of the stream of each operand
    columns : the place of each value among those of its stream
    keys : the keys of each stream
    """

    def __init__(
        self, analysis: MonitorAnalysis, layouts: Sequence[Layout], streams: Sequence[int], columns: Sequence[int],
        keys: Sequence[Dictionary], relations: Mapping[str, pa.Table], parts: tuple[int, ...] | None,
    ) -> None:  # fmt: skip
        self._analysis = analysis
        self._layouts = layouts
        self._streams = streams
        self._columns = columns
        self._keys = keys
        self._relations = relations
        self._parts = parts

    def of(self, held: Predictions, fresh: Bools) -> Iterator[I64]:
        """All choices with at least one fresh prediction, as rows of their numbers."""
        operands = len(self._analysis.operands)
        if operands == 1:
            found = np.flatnonzero(fresh & self._able(held, 0))
            parts: Iterator[I64] = (found[at : at + AT_ONCE].reshape(-1, 1) for at in range(0, len(found), AT_ONCE))
        elif operands == 2:
            parts = self._fresh_pairs(held, fresh)
        else:
            parts = self._joined(held, fresh)
        for members in parts:
            yield self.asked(held, members)

    def of_pairs(self, held: Predictions, pairs: I64) -> Iterator[I64]:
        """The choices that pairs of a new prediction and another come to, either as the first operand."""
        able = held.able[pairs]
        for first, second in ((0, 1), (1, 0)):
            good = (able[:, first] & 1).astype(np.bool_) & (able[:, second] >> 1 & 1).astype(np.bool_)
            for operand, column in ((0, first), (1, second)):
                good &= held.stream[pairs[:, column]] == self._streams[operand]
            members = pairs[good][:, [first, second]]
            members = members[self._agrees(held, members)]
            for at in range(0, len(members), AT_ONCE):
                yield self.asked(held, members[at : at + AT_ONCE])

    def asked(self, held: Predictions, members: I64) -> I64:
        """The choices for which the bucket answers, and which meet the conditions on several rows."""
        if self._parts is not None and len(self._parts) == members.shape[1] > 2:
            members = members[belongs(held.home[members], self._parts)]
        condition = conjunction(self._analysis.other_conditions)
        if condition is None or not len(members):
            return members
        columns: dict[str, pa.Array] = {}
        for operand, name in sorted(_named(condition, self._analysis)):
            label = self._analysis.operands[operand].name
            columns[f"{label}.{name}"] = self.column(held, members[:, operand], self._streams[operand], name)
        return members[holds(condition, columns, self._relations, len(members))]

    def column(self, held: Predictions, rows: I64, stream: int, name: str) -> pa.Array:
        """A column of the rows of some predictions of one stream, as conditions have it."""
        layout = self._layouts[stream]
        keys = [each.lower() for each in layout.keys]
        if name in keys:
            return self._keys[stream].take(held.key[rows])[keys.index(name)]
        if name == layout.time.lower():
            return decode_times(held.code[rows], layout.time_kind)
        for place, value in enumerate(layout.values):
            if name == f"{value}_rate".lower():
                return pa.array(held.rates[rows, place])
        errors = [str(each).lower() for each in require_prediction(layout).errors]
        return pa.array(held.errors[rows, errors.index(name)])

    def _able(self, held: Predictions, operand: int) -> Bools:
        return held.buffered & ((held.able >> operand) & 1).astype(np.bool_)

    # ------------------------------------------------------------ pairs

    def _fresh_pairs(self, held: Predictions, fresh: Bools) -> Iterator[I64]:
        first, second = self._able(held, 0), self._able(held, 1)
        yield from self._pairs(held, 0, 1, np.flatnonzero(first & fresh), np.flatnonzero(second))
        if not fresh.all():
            yield from self._pairs(held, 0, 1, np.flatnonzero(first & ~fresh), np.flatnonzero(second & fresh))

    def _pairs(self, held: Predictions, one: int, other: int, firsts: I64, seconds: I64) -> Iterator[I64]:
        """The pairs of predictions of two operands whose boxes meet, some at a time."""
        if not len(firsts) or not len(seconds):
            return
        # In order of time those that meet lie near each other in memory.
        firsts, seconds = (rows[np.argsort(held.code[rows])] for rows in (firsts, seconds))
        low, high, second_low, second_high = self._boxes(held, one, other, firsts, seconds)
        sizes = candidates.cell_sizes(low, high, second_low, second_high)
        grid = candidates.Grid(second_low, second_high, sizes, *candidates.note(second_low, second_high, sizes))
        ranks = self._comparisons(held, one, other, firsts, seconds)
        parts = self._parts
        apart = parts is not None and len(parts) == 2 and parts[0] != parts[1]
        keys = candidates.Keys(*ranks, held.home[firsts], held.home[seconds], apart)
        begin = 0
        while begin < len(firsts):
            pairs, begin = candidates.meet(begin, AT_ONCE, low, high, grid, keys)
            yield np.stack([firsts[pairs[:, 0]], seconds[pairs[:, 1]]], axis=1)

    def _boxes(self, held: Predictions, one: int, other: int, firsts: I64, seconds: I64) -> tuple[F64, F64, F64, F64]:
        """Time, and the values of which WHERE bounds the difference: what each prediction covers and can reach."""
        kind = self._layouts[0].time_kind
        clock = clock_of(held.code, kind)
        clock = (clock - clock.min()) * unit_of(kind)
        window = self._analysis.query.within
        lows, highs = [clock[firsts] + held.begin[firsts] - window], [clock[firsts] + held.end[firsts] + window]
        second_lows, second_highs = [clock[seconds] + held.begin[seconds]], [clock[seconds] + held.end[seconds]]
        for u, v, low, high in self._bounded(one, other):
            own_low, own_high = self._swept(held, firsts, u)
            lows.append(own_low - high)
            highs.append(own_high - low)
            other_low, other_high = self._swept(held, seconds, v)
            second_lows.append(other_low)
            second_highs.append(other_high)
        sides = [np.ascontiguousarray(np.stack(each, axis=1)) for each in (lows, highs, second_lows, second_highs)]
        for low_side, high_side in (sides[:2], sides[2:]):
            slack = 1e-9 * (np.abs(low_side) + np.abs(high_side) + 1e-9)
            low_side -= slack
            high_side += slack
        return sides[0], sides[1], sides[2], sides[3]

    def _bounded(self, one: int, other: int) -> list[tuple[int, int, float, float]]:
        """At most two differences between values of two operands that are bounded: (value, value, low, high)."""
        found = []
        for (u, v), numbers in self._analysis.forms:
            if v < 0 or {self._analysis.values[u][0], self._analysis.values[v][0]} != {one, other}:
                continue
            low, high = reach(numbers)
            if self._analysis.values[u][0] != one:
                u, v, low, high = v, u, -high, -low
            if isfinite(low) and isfinite(high):
                found.append((u, v, low, high))
        return found[:2]

    def _swept(self, held: Predictions, rows: I64, value: int) -> tuple[F64, F64]:
        """Between which numbers a value is predicted to be while its predictions apply, or may be where that counts."""
        column = self._columns[value]
        at, rate = held.values[rows, column], held.rates[rows, column]
        ends = at + rate * held.begin[rows], at + rate * held.end[rows]
        error = held.errors[rows, column] if self._analysis.query.semantics == MAY else 0.0
        return np.minimum(*ends) - error, np.maximum(*ends) + error

    # ------------------------------------------------------------ keys

    def _comparisons(self, held: Predictions, one: int, other: int, firsts: I64, seconds: I64) -> tuple[I64, I64, I64]:
        """What is asked of the keys of two operands, on ranks: those of the first, those of the second, and how."""
        left, right, how = [], [], []
        if self._streams[one] == self._streams[other]:
            left.append(held.key[firsts].astype(np.int64))
            right.append(held.key[seconds].astype(np.int64))
            how.append(_OPS["<>"])
        for first, op, second in self._analysis.comparisons:
            owners = [self._analysis.operand_number(each.owner) for each in (first, second)]
            if set(owners) != {one, other}:
                continue
            if owners[0] != one:
                first, op, second = second, MIRRORED[op], first
            ranks = self._rank(one, first, other, second)
            left.append(ranks[0][held.key[firsts]])
            right.append(ranks[1][held.key[seconds]])
            how.append(_OPS[op])
        return _matrix(left, len(firsts)), _matrix(right, len(seconds)), np.array(how, np.int64)

    def _rank(self, one: int, first: Reference, other: int, second: Reference) -> tuple[I64, I64]:
        """The ranks of two key columns among all their entries, by the number of the key."""
        columns = []
        for operand, reference in ((one, first), (other, second)):
            stream = self._streams[operand]
            names = [name.lower() for name in self._layouts[stream].keys]
            columns.append(flat(self._keys[stream].to_table().column(names.index(reference.name))))
        both = pa.concat_arrays([columns[0], columns[1].cast(columns[0].type)])
        ranks = pc.rank(both, tiebreaker="dense").to_numpy().astype(np.int64)
        return ranks[: len(columns[0])], ranks[len(columns[0]) :]

    # ------------------------------------------------------------ more than two operands

    def _joined(self, held: Predictions, fresh: Bools) -> Iterator[I64]:
        """Pairs of operands that are linked, joined operand by operand."""
        operands = len(self._analysis.operands)
        every = [np.flatnonzero(self._able(held, operand)) for operand in range(operands)]
        known, members = [0], every[0].reshape(-1, 1)
        while len(known) < operands:
            old, new = _next_link(self._analysis, known)
            pairs = list(self._pairs(held, old, new, np.unique(members[:, known.index(old)]), every[new]))
            both = np.concatenate([np.zeros((0, 2), np.int64), *pairs])
            members = _extended(members, known.index(old), both)
            known.append(new)
        members = members[:, np.argsort(known)]
        members = members[fresh[members].any(axis=1)]
        members = members[self._agrees(held, members)]
        for at in range(0, len(members), AT_ONCE):
            yield members[at : at + AT_ONCE]

    def _agrees(self, held: Predictions, members: I64) -> Bools:
        """Whether the keys of choices compare as they must, and no key is there twice."""
        good = np.ones(len(members), np.bool_)
        for one in range(members.shape[1]):
            for other in range(one + 1, members.shape[1]):
                left, right, how = self._comparisons(held, one, other, members[:, one], members[:, other])
                for first, second, op in zip(left, right, how, strict=True):
                    good &= _COMPARE[op](first, second)
        return good


_COMPARE = {
    candidates.LESS: np.less, candidates.AT_MOST: np.less_equal, candidates.MORE: np.greater,
    candidates.AT_LEAST: np.greater_equal, candidates.EQUAL: np.equal, candidates.UNEQUAL: np.not_equal,
}  # fmt: skip


def _matrix(rows: list[I64], n: int) -> I64:
    return np.ascontiguousarray(np.stack(rows)) if rows else np.zeros((0, n), np.int64)


def _named(condition: Typed, analysis: MonitorAnalysis) -> set[tuple[int, str]]:
    return {(analysis.operand_number(node.owner), node.name) for node in walk(condition) if isinstance(node, Reference)}


def _next_link(analysis: MonitorAnalysis, known: list[int]) -> tuple[int, int]:
    """An operand that is known, and one linked with it that is not."""
    for one, other in sorted(analysis.links):
        if (one in known) != (other in known):
            return (one, other) if one in known else (other, one)
    raise AssertionError("every operand is linked")


def _extended(members: I64, place: int, pairs: I64) -> I64:
    """Choices, each with every partner that the member at `place` has among the pairs."""
    order = np.argsort(pairs[:, 0], kind="stable")
    sorted_first = pairs[order, 0]
    begin = np.searchsorted(sorted_first, members[:, place], side="left")
    counts = np.searchsorted(sorted_first, members[:, place], side="right") - begin
    row = np.repeat(np.arange(len(members)), counts)
    offset = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.concatenate([members[row], pairs[order[begin[row] + offset], 1].reshape(-1, 1)], axis=1)
