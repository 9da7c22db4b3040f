"""Which predictions are compared: all combinations of one prediction per operand that can match."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import F64, I64, Bools
from anabranch.binding.typed import MIRRORED, Reference, Typed, conjunction, walk
from anabranch.columns.conditions import holds
from anabranch.columns.dictionary import Dictionary, flat
from anabranch.columns.times import decode_times
from anabranch.monitor.analysis import MAY, MonitorAnalysis, reach
from anabranch.monitor.globe import implied_by, scale_at
from anabranch.monitor.kernel import candidates
from anabranch.monitor.placement import is_answered_here
from anabranch.monitor.predictions import Predictions, Terms, elapsed
from anabranch.transport.layout import Layout, require_prediction

#: The most combinations of a chunk.
CHUNK = 1 << 18

_OPS = {
    "<": candidates.LESS, "<=": candidates.AT_MOST, ">": candidates.MORE,
    ">=": candidates.AT_LEAST, "=": candidates.EQUAL, "<>": candidates.UNEQUAL,
}  # fmt: skip


class Combinations:
    """Finds the combinations of a bucket's predictions; a combination is a row of indexes, one per operand.

    Parameters
    ----------
    streams : the number of the stream of each operand
    columns, sums : the column of each value, and the columns that are sums of others
    keys : the keys of each stream
    parts : the parts of the bucket
    """

    def __init__(
        self, analysis: MonitorAnalysis, layouts: Sequence[Layout], streams: Sequence[int], columns: Sequence[int],
        sums: Sequence[Terms], keys: Sequence[Dictionary], relations: Mapping[str, pa.Table],
        parts: tuple[int, ...] | None,
    ) -> None:  # fmt: skip
        self._analysis = analysis
        self._layouts = layouts
        self._streams = streams
        self._columns, self._sums = columns, sums
        self._keys = keys
        self._relations = relations
        self._parts = parts

    def with_new(self, held: Predictions, is_new: Bools) -> Iterator[I64]:
        """All combinations with at least one new prediction, in chunks."""
        operands, held = len(self._analysis.operands), held.with_sums(self._sums)
        if operands == 1:
            rows = np.flatnonzero(is_new & self._able(held, 0))
            chunks: Iterator[I64] = (rows[at : at + CHUNK].reshape(-1, 1) for at in range(0, len(rows), CHUNK))
        elif operands == 2:
            chunks = self._new_pairs(held, is_new)
        else:
            chunks = self._joined(held, is_new)
        for members in chunks:
            yield self._filtered(held, members)

    def from_pairs(self, held: Predictions, pairs: I64) -> Iterator[I64]:
        """The combinations of pairs of predictions; either of the two may be the first operand."""
        able = held.able[pairs]
        for first, second in ((0, 1), (1, 0)):
            good = (able[:, first] & 1).astype(np.bool_) & (able[:, second] >> 1 & 1).astype(np.bool_)
            for operand, column in ((0, first), (1, second)):
                good &= held.stream[pairs[:, column]] == self._streams[operand]
            members = pairs[good][:, [first, second]]
            members = members[self._keys_agree(held, members)]
            for at in range(0, len(members), CHUNK):
                yield self._filtered(held, members[at : at + CHUNK])

    def _filtered(self, held: Predictions, members: I64) -> I64:
        """The combinations that this bucket answers, and that satisfy the conditions on several rows."""
        if self._parts is not None and len(self._parts) == members.shape[1] > 2:
            members = members[is_answered_here(held.part[members], self._parts)]
        condition = conjunction(self._analysis.other_conditions)
        if condition is None or not len(members):
            return members
        return members[self._holds(condition, held, members)]

    def row_tests(self, held: Predictions, members: I64) -> list[Bools]:
        """Which combinations satisfy each of the conditions on rows that OR joins with constraints."""
        return [self._holds(condition, held, members) for condition in self._analysis.row_tests]

    def _holds(self, condition: Typed, held: Predictions, members: I64) -> Bools:
        """Which combinations satisfy a condition on rows."""
        columns: dict[str, pa.Array] = {}
        for operand, name in sorted(_column_names(condition, self._analysis)):
            label = self._analysis.operands[operand].name
            columns[f"{label}.{name}"] = self.column(held, members[:, operand], self._streams[operand], name)
        return holds(condition, columns, self._relations, len(members))

    def column(self, held: Predictions, rows: I64, stream: int, name: str) -> pa.Array:
        """A column of some predictions of one stream, as conditions use it."""
        layout = self._layouts[stream]
        keys = [key.lower() for key in layout.keys]
        if name in keys:
            return self._keys[stream].take(held.key[rows])[keys.index(name)]
        if name == layout.time.lower():
            return decode_times(held.code[rows], layout.time_kind)
        for index, value in enumerate(layout.values):
            if name == f"{value}_rate".lower():
                return pa.array(held.rates[rows, index])
        errors = [str(error).lower() for error in require_prediction(layout).errors]
        return pa.array(held.errors[rows, errors.index(name)])

    def _able(self, held: Predictions, operand: int) -> Bools:
        return held.buffered & ((held.able >> operand) & 1).astype(np.bool_)

    # ------------------------------------------------------------ pairs

    def _new_pairs(self, held: Predictions, is_new: Bools) -> Iterator[I64]:
        first, second = self._able(held, 0), self._able(held, 1)
        yield from self._pairs(held, 0, 1, np.flatnonzero(first & is_new), np.flatnonzero(second))
        if not is_new.all():
            yield from self._pairs(held, 0, 1, np.flatnonzero(first & ~is_new), np.flatnonzero(second & is_new))

    def _pairs(self, held: Predictions, one: int, other: int, firsts: I64, seconds: I64) -> Iterator[I64]:
        """The pairs of predictions of two operands whose boxes intersect, in chunks."""
        firsts, seconds = self._allowed(held, one, firsts), self._allowed(held, other, seconds)
        if not len(firsts) or not len(seconds):
            return
        low, high, second_low, second_high = self._boxes(held, one, other, firsts, seconds)
        sizes = candidates.cell_sizes(low, high, second_low, second_high)
        order, second_order = _by_cell(low, sizes), _by_cell(second_low, sizes)
        firsts, low, high = firsts[order], low[order], high[order]
        seconds, second_low, second_high = seconds[second_order], second_low[second_order], second_high[second_order]
        grid = candidates.Grid(second_low, second_high, sizes, *candidates.index_boxes(second_low, second_high, sizes))
        ranks = self._comparisons(held, one, other, firsts, seconds)
        parts = self._parts
        different_parts = parts is not None and len(parts) == 2 and parts[0] != parts[1]
        keys = candidates.Keys(*ranks, held.part[firsts], held.part[seconds], different_parts)
        begin = 0
        while begin < len(firsts):
            pairs, begin = candidates.intersecting_pairs(begin, CHUNK, low, high, grid, keys)
            yield np.stack([firsts[pairs[:, 0]], seconds[pairs[:, 1]]], axis=1)

    def _boxes(self, held: Predictions, one: int, other: int, firsts: I64, seconds: I64) -> tuple[F64, F64, F64, F64]:
        """The boxes of predictions: time, and the values whose difference WHERE bounds.

        The box of a second prediction is its own range. That of a first one is widened by the bounds, so that two
        predictions can match only if their boxes intersect.
        """
        time = elapsed(held.code.min(keepdims=True), held.code, self._layouts[0].time_kind)
        window = dict(self._analysis.windows).get((min(one, other), max(one, other)), self._analysis.window)
        lows, highs = [time[firsts] + held.begin[firsts] - window], [time[firsts] + held.end[firsts] + window]
        second_lows, second_highs = [time[seconds] + held.begin[seconds]], [time[seconds] + held.end[seconds]]
        bounds = [window]
        for u, v, low, high in self._bounded_differences(one, other, self._largest_scale(held, firsts, seconds)):
            first_low, first_high = self._value_range(held, firsts, u)
            lows.append(first_low - high)
            highs.append(first_high - low)
            second_low, second_high = self._value_range(held, seconds, v)
            second_lows.append(second_low)
            second_highs.append(second_high)
            bounds.append(max(abs(low), abs(high)))
        sides = [np.ascontiguousarray(np.stack(axes, axis=1)) for axes in (lows, highs, second_lows, second_highs)]
        for low_side, high_side in (sides[:2], sides[2:]):
            # More than the rounding errors, also where a bound cancels out a value.
            slack = 1e-9 * (np.abs(low_side) + np.abs(high_side) + np.array(bounds) + 1e-9)
            low_side -= slack
            high_side += slack
        return sides[0], sides[1], sides[2], sides[3]

    def _largest_scale(self, held: Predictions, firsts: I64, seconds: I64) -> float:
        """The largest scale at any location whose distance on the globe is bounded."""
        scale, rows = 1.0, np.concatenate([firsts, seconds])
        for area in self._analysis.areas:
            if area.is_scaled:
                ranges = ([self._value_range(held, rows, value) for value in form] for form in area.forms)
                scale = max(scale, scale_at(math.hypot(*(float(np.abs(own).max(initial=0.0)) for own in ranges))))
        return scale

    def _bounded_differences(self, one: int, other: int, scale: float) -> list[tuple[int, int, float, float]]:
        """At most two bounded differences between values of two operands: (value, value, low, high)."""
        differences = []
        implied = [bounds for area in self._analysis.areas for bounds in implied_by(area, scale)]
        for (u, v), numbers in (*self._analysis.forms, *implied):
            if v < 0 or {self._analysis.values[u][0], self._analysis.values[v][0]} != {one, other}:
                continue
            if self._analysis.is_of_instants((u, v)):
                continue
            low, high = reach(numbers)
            if self._analysis.values[u][0] != one:
                u, v, low, high = v, u, -high, -low
            if math.isfinite(low) and math.isfinite(high):
                differences.append((u, v, low, high))
        return differences[:2]

    def _allowed(self, held: Predictions, operand: int, rows: I64) -> I64:
        """The predictions of an operand that the constraints on its values alone do not exclude."""
        for (u, v), numbers in self._analysis.forms:
            if v >= 0 or self._analysis.values[u][0] != operand:
                continue
            low, high = reach(numbers)
            least, most = self._value_range(held, rows, u)
            # More than the rounding errors.
            slack = 1e-9 * (np.abs(least) + np.abs(most) + 1e-9)
            rows = rows[(most + slack >= low - 1e-9 * abs(low)) & (least - slack <= high + 1e-9 * abs(high))]
        return rows

    def _value_range(self, held: Predictions, rows: I64, value: int) -> tuple[F64, F64]:
        """The smallest and the largest prediction of a value while its predictions apply; for MAY, with the errors."""
        column = self._columns[value]
        error = held.errors[rows, column] if self._analysis.query.semantics == MAY else 0.0
        low, high = held.range_of(column, rows)
        return low - error, high + error

    # ------------------------------------------------------------ keys

    def _comparisons(self, held: Predictions, one: int, other: int, firsts: I64, seconds: I64) -> tuple[I64, I64, I64]:
        """The comparisons of the keys of two operands: the ranks of the first, of the second, and the operators."""
        left, right, operators = [], [], []
        if self._streams[one] == self._streams[other]:
            left.append(held.key[firsts].astype(np.int64))
            right.append(held.key[seconds].astype(np.int64))
            operators.append(_OPS["<>"])
        for first, op, second in self._analysis.comparisons:
            owners = [self._analysis.operand_number(column.owner) for column in (first, second)]
            if set(owners) != {one, other}:
                continue
            if owners[0] != one:
                first, op, second = second, MIRRORED[op], first
            ranks = self._ranks(one, first, other, second)
            left.append(ranks[0][held.key[firsts]])
            right.append(ranks[1][held.key[seconds]])
            operators.append(_OPS[op])
        return _matrix(left, len(firsts)), _matrix(right, len(seconds)), np.array(operators, np.int64)

    def _ranks(self, one: int, first: Reference, other: int, second: Reference) -> tuple[I64, I64]:
        """The ranks of two key columns among the entries of both, by the number of the key."""
        columns = []
        for operand, reference in ((one, first), (other, second)):
            stream = self._streams[operand]
            names = [name.lower() for name in self._layouts[stream].keys]
            columns.append(flat(self._keys[stream].to_table().column(names.index(reference.name))))
        both = pa.concat_arrays([columns[0], columns[1].cast(columns[0].type)])
        ranks = pc.rank(both, tiebreaker="dense").to_numpy().astype(np.int64)
        return ranks[: len(columns[0])], ranks[len(columns[0]) :]

    # ------------------------------------------------------------ more than two operands

    def _joined(self, held: Predictions, is_new: Bools) -> Iterator[I64]:
        """Combinations of more than two operands: pairs of linked operands, joined operand by operand."""
        able = [self._able(held, operand) for operand in range(len(self._analysis.operands))]
        for first_new in range(len(able)):
            # Each combination is found once: from its first new prediction.
            ages = [~is_new] * first_new + [is_new] + [np.ones(len(held), np.bool_)] * (len(able) - first_new - 1)
            rows = [np.flatnonzero(own & age) for own, age in zip(able, ages, strict=True)]
            if all(map(len, rows)):
                for members in self._with_more(held, rows, [first_new], rows[first_new].reshape(-1, 1)):
                    yield members[self._keys_agree(held, members)]

    def _with_more(self, held: Predictions, rows: list[I64], joined: list[int], members: I64) -> Iterator[I64]:
        """Combinations of the joined operands, extended by all others, in chunks: no level is in memory as a whole."""
        if len(joined) == len(rows):
            yield members[:, np.argsort(joined)]
            return
        old, new = _next_link(self._analysis, joined)
        column = joined.index(old)
        for pairs in self._pairs(held, old, new, np.unique(members[:, column]), rows[new]):
            for extended in _extended(members, column, pairs):
                yield from self._with_more(held, rows, [*joined, new], extended)

    def _keys_agree(self, held: Predictions, members: I64) -> Bools:
        """Whether the keys of combinations satisfy all comparisons, and no key of a stream is repeated."""
        good = np.ones(len(members), np.bool_)
        for one in range(members.shape[1]):
            for other in range(one + 1, members.shape[1]):
                left, right, operators = self._comparisons(held, one, other, members[:, one], members[:, other])
                for first, second, op in zip(left, right, operators, strict=True):
                    good &= _COMPARE[op](first, second)
        return good


_COMPARE = {
    candidates.LESS: np.less, candidates.AT_MOST: np.less_equal, candidates.MORE: np.greater,
    candidates.AT_LEAST: np.greater_equal, candidates.EQUAL: np.equal, candidates.UNEQUAL: np.not_equal,
}  # fmt: skip


def _by_cell(low: F64, sizes: F64) -> I64:
    """The order of boxes by the cell of their lowest corner: boxes that intersect are near each other in memory.

    Cells that are far from the first one, or infinite, are taken as one; only the order depends on that.
    """
    cells = np.floor(low / sizes)
    code = np.zeros(len(low), np.int64)
    for axis in cells.T:
        finite = axis[np.isfinite(axis)]
        first = finite.min() if len(finite) else 0.0
        code = code << 20 | np.clip(axis - first, 0, (1 << 20) - 1).astype(np.int64)
    return np.argsort(code, kind="stable")


def _matrix(rows: list[I64], n: int) -> I64:
    return np.ascontiguousarray(np.stack(rows)) if rows else np.zeros((0, n), np.int64)


def _column_names(condition: Typed, analysis: MonitorAnalysis) -> set[tuple[int, str]]:
    """The columns of a condition: (number of the operand, name)."""
    return {(analysis.operand_number(node.owner), node.name) for node in walk(condition) if isinstance(node, Reference)}


def _next_link(analysis: MonitorAnalysis, joined: list[int]) -> tuple[int, int]:
    """A joined operand, and an operand linked with it that is not joined yet."""
    for (one, other), _ in sorted(analysis.windows):
        if (one in joined) != (other in joined):
            return (one, other) if one in joined else (other, one)
    raise AssertionError("every operand is linked")


def _extended(members: I64, operand: int, pairs: I64) -> Iterator[I64]:
    """Combinations, each extended by every partner of its member at index `operand` among the pairs, in chunks."""
    order = np.argsort(pairs[:, 0], kind="stable")
    sorted_first = pairs[order, 0]
    begin = np.searchsorted(sorted_first, members[:, operand], side="left")
    counts = np.searchsorted(sorted_first, members[:, operand], side="right") - begin
    cuts = np.flatnonzero(np.diff(np.cumsum(counts) // CHUNK)) + 1
    for chosen in np.split(np.flatnonzero(counts), np.searchsorted(np.flatnonzero(counts), cuts)):
        row = np.repeat(chosen, counts[chosen])
        offset = np.arange(len(row)) - np.repeat(np.cumsum(counts[chosen]) - counts[chosen], counts[chosen])
        yield np.concatenate([members[row], pairs[order[begin[row] + offset], 1].reshape(-1, 1)], axis=1)
