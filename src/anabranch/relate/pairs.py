"""The probabilities of pairs of entities: the kernel is called only for pairs that the windows do not decide."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anabranch.arrays import F64, I64, Bools
from anabranch.errors import TooLarge
from anabranch.relate import kernel
from anabranch.relate.analysis import RelateAnalysis
from anabranch.relate.attributes import SegmentConditions, numbered
from anabranch.relate.pairing import chunks
from anabranch.relate.query import BoundQuantified
from anabranch.relate.windows import Windows

#: The most weights of a pair; the kernel allocates three doubles per weight.
MOST_WEIGHTS = 1 << 26

#: With COUNT, or with conditions on segments, pairs are decided in parts of about this many numbers.
CELLS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class Decided:
    """What holds for each pair.

    Attributes
    ----------
    probability, complement : that the query holds, and that it does not
    n_counted : the number of segments of the first entity that count
    distribution : with COUNT, the probabilities that 0 to `n_counted` of them satisfy the query, one pair after the
        other; otherwise empty
    """

    probability: F64
    complement: F64
    n_counted: I64
    distribution: F64

    @property
    def offsets(self) -> I64:
        """The index of each pair's first entry in `distribution`; one entry more than pairs."""
        return np.concatenate([[0], np.cumsum(self.n_counted + 1)])

    @property
    def expected(self) -> F64:
        """The expected number of segments of each pair's first entity that satisfy the query."""
        pair, number = numbered(self.n_counted + 1)
        expected: F64 = np.bincount(pair, number * self.distribution, len(self.n_counted)).astype(np.float64)
        return expected

    @property
    def distributions(self) -> pa.Array:
        """The distribution of each pair, as a list."""
        return pa.ListArray.from_arrays(pa.array(self.offsets.astype(np.int32)), pa.array(self.distribution))

    def remove(self, invalid: Bools) -> None:
        """Let the query fail for some pairs."""
        self.probability[invalid], self.complement[invalid] = 0.0, 1.0
        if len(self.distribution):
            pair, number = numbered(self.n_counted + 1)
            self.distribution[invalid[pair]] = number[invalid[pair]] == 0

    def is_same(self, chosen: I64, others: Decided) -> Bools:
        """Whether the same holds for the chosen pairs as for `others`, which has only these."""
        same: Bools = (self.probability[chosen] == others.probability) & (self.complement[chosen] == others.complement)
        if len(self.distribution):
            same &= self.n_counted[chosen] == others.n_counted
            compared = np.flatnonzero(same)
            pair, number = numbered(others.n_counted[compared] + 1)
            mine = self.distribution[self.offsets[chosen[compared]][pair] + number]
            same[compared[pair[mine != others.distribution[others.offsets[compared][pair] + number]]]] = False
        return same


def relate(
    analysis: RelateAnalysis,
    doubles: bool,
    first: Windows,
    second: Windows,
    pairs: I64,
    conditions: SegmentConditions | None = None,
) -> Decided:
    """Decide each pair (n, 2) of entity numbers; `conditions` are those on segments.

    Raises
    ------
    TooLarge
        If the consecutive lost events of a pair need more than MOST_WEIGHTS weights.
    """
    pairing = Pairing(analysis, doubles, first, second, conditions)
    sizes = np.zeros(len(pairs), np.int64)
    if conditions is not None:
        sizes += first.lengths[pairs[:, 0]] * second.lengths[pairs[:, 1]] // 4
    if analysis.query.count:
        sizes += 1 + first.lengths[pairs[:, 0]].max(initial=0) // 2
    ranges = list(chunks(sizes, CELLS_AT_ONCE)) or [(0, 0)]
    parts = [pairing.decide(pairs[low:high]) for low, high in ranges]
    return Decided(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Decided)))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Segments of the first entities of pairs, with the number of their partners.

    Attributes
    ----------
    pair : the index of the pair
    weight : the number of segments that count, 0 or 1; without conditions, a row stands for all segments of its pair
    n_partners : the number of segments of the second entity with which they are compared
    n_counted : the number of segments of the second entity that count
    compared : with which ones they are compared, one row after the other; None without conditions
    """

    pair: I64
    weight: I64
    n_partners: I64
    n_counted: I64
    compared: Bools | None = None


class Pairing:
    """Decides pairs of the entities of a block."""

    def __init__(
        self,
        analysis: RelateAnalysis,
        doubles: bool,
        first: Windows,
        second: Windows,
        conditions: SegmentConditions | None = None,
    ) -> None:
        self._analysis, self._doubles, self._conditions = analysis, doubles, conditions
        self._first, self._second = first, second

    def decide(self, pairs: I64) -> Decided:
        """Decide pairs; only those are swept that time limits and numbers of partners leave open."""
        query = self._analysis.query
        rows = self._rows(pairs)
        least, most = self._satisfied(pairs, rows)
        n_counted = _sums(rows.pair, rows.weight, len(pairs))
        low, high = _limits(query.first, n_counted)
        holds, fails = (least >= low) & (most <= high), (most < low) | (least > high)
        probability, complement = holds.astype(np.float64), fails.astype(np.float64)
        undecided = np.flatnonzero(least < most if query.count else ~(holds | fails))
        offsets = np.concatenate([[0], np.cumsum(n_counted + 1)]) if query.count else np.zeros(1, np.int64)
        distribution = np.zeros(int(offsets[-1]))
        if query.count:
            distribution[offsets[:-1] + least] = 1.0
        if len(undecided):
            floor, needed = _counts(query.first, int(most[undecided].max()) if query.count else None)
            counts = self._swept(pairs[undecided], floor, needed)
            low, high = low[undecided], high[undecided]
            if self._hit_is_failure:
                low, high = np.zeros_like(low), np.zeros_like(high)
            number = np.arange(floor, needed + 1)
            is_true = (number >= low[:, np.newaxis]) & (number <= high[:, np.newaxis])
            true, false = (np.where(chosen, counts, 0.0).sum(axis=1) for chosen in (is_true, ~is_true))
            # A certain pair has probability exactly 1, without rounding errors.
            probability[undecided] = np.where(false == 0, 1.0, np.minimum(true, 1.0))
            complement[undecided] = np.where(true == 0, 1.0, np.minimum(false, 1.0))
            if query.count:
                distribution[offsets[undecided] + least[undecided]] = 0.0
                pair, number = np.nonzero(number <= n_counted[undecided][:, np.newaxis])
                distribution[offsets[undecided][pair] + number] = counts[pair, number]
        return Decided(probability, complement, n_counted, distribution)

    @property
    def _hit_is_failure(self) -> bool:
        """Whether the kernel counts the segments that do not satisfy the query: for ALL, one of them decides."""
        return self._analysis.query.first.at_least is None and not self._analysis.query.count

    def _rows(self, pairs: I64) -> _Rows:
        """The segments of the first entities."""
        n_first, n_second = self._first.lengths[pairs[:, 0]] // 2, self._second.lengths[pairs[:, 1]] // 2
        if self._conditions is None:
            return _Rows(np.arange(len(pairs)), n_first, n_second, n_second)
        partners = self._conditions.partners(pairs)
        pair = np.repeat(np.arange(len(pairs)), n_first)
        row = np.repeat(np.arange(len(pair)), n_second[pair])
        n_partners = _sums(row, partners.compared, len(pair))
        weight = partners.counts.astype(np.int64)
        return _Rows(pair, weight, n_partners, partners.n_partners[pair], partners.compared)

    def _satisfied(self, pairs: I64, rows: _Rows) -> tuple[I64, I64]:
        """The least and the most segments of each pair's first entity that can satisfy the query."""
        first, second, (a, b) = self._first, self._second, (pairs[:, 0], pairs[:, 1])
        is_before, is_after = first.latest[a] < second.earliest[b], first.earliest[a] > second.latest[b]
        is_apart = is_before | is_after
        relations = (self._analysis.has_relation(name) for name in ("PRECEDES", "PRECEDED BY"))
        is_related = ~is_apart | np.where(is_before, *relations)
        most_related = rows.n_partners * is_related[rows.pair]
        least_related = np.where(is_apart[rows.pair], most_related, 0)
        low, high = _limits(self._analysis.query.second, rows.n_counted)
        surely = (least_related >= low) & (most_related <= high)
        possibly = (most_related >= low) & (least_related <= high)
        least, most = (_sums(rows.pair, rows.weight * chosen, len(pairs)) for chosen in (surely, possibly))
        return least, most

    def _swept(self, pairs: I64, floor: int, needed: int) -> F64:
        """The probabilities of the numbers of hits, by the kernel for the laws of the two streams."""
        a, b = pairs[:, 0], pairs[:, 1]
        classes = self.classes(pairs)
        if self._first.has_laws or self._second.has_laws:
            chains = self._first.chained(a), self._second.chained(b)
            _check_size(chains[0].longest[a], chains[1].longest[b], classes, needed)
            return kernel.relate_chains(pairs, *chains, classes, floor, needed, self._doubles)
        marked = self._first.marked(a), self._second.marked(b)
        _check_size(marked[0].longest[a], marked[1].longest[b], classes, needed)
        return kernel.relate_pairs(pairs, *marked, classes, floor, needed, self._doubles)

    # ------------------------------------------------------------ tables of classes

    def classes(self, pairs: I64) -> kernel.Classes:
        """The tables of classes for pairs; without conditions, pairs with equally many second segments share one."""
        rows = self._rows(pairs)
        low, high = _limits(self._analysis.query.second, rows.n_counted)
        never = rows.n_partners < low
        low, high = np.where(never, 1, low), np.where(never, 0, high)
        if self._hit_is_failure:  # a segment that does not count is no failure
            low, high = np.where(rows.weight == 0, 0, low), np.where(rows.weight == 0, rows.n_counted, high)
        else:
            low, high = np.where(rows.weight == 0, 1, low), np.where(rows.weight == 0, 0, high)
        n_segments = self._second.lengths[pairs[:, 1]][rows.pair] // 2
        offsets = np.cumsum(n_segments) - n_segments
        tables: list[tuple[npt.NDArray[Any], ...]] = []
        first_row, n_rows, table_of = np.zeros(len(rows.pair), np.int64), 0, np.zeros(1, np.int64)
        for n in np.unique(n_segments):
            chosen = np.flatnonzero(n_segments == n)
            if rows.compared is None:
                compared, examples = np.ones((1, n), np.bool_), np.zeros(1, np.int64)
            else:
                compared = rows.compared[offsets[chosen][:, np.newaxis] + np.arange(n)] & ~never[chosen][:, np.newaxis]
                examples, table_of = _distinct(compared, low[chosen], high[chosen])
            for example in examples:
                row = chosen[example]
                tables.append(self._table(compared[example], int(low[row]), int(high[row])))
            first_row[chosen] = n_rows + (2 * n + 1) * table_of
            n_rows += (2 * n + 1) * len(examples)
        widest = max(after.shape[1] for _, after, *_ in tables)
        columns = (np.concatenate([_widened(part, widest) for part in parts]) for parts in zip(*tables, strict=True))
        step = 0 if rows.compared is None else 1
        return kernel.Classes(first_row, np.searchsorted(rows.pair, np.arange(len(pairs))), step, *columns)

    def _table(self, compared: Bools, low: int, high: int) -> tuple[npt.NDArray[Any], ...]:
        partners = np.concatenate([[0], np.cumsum(compared)])
        return _table(partners.astype(np.int64).tobytes(), low, high, self._analysis.relations, self._hit_is_failure)


@lru_cache(maxsize=4096)
def _table(partners: bytes, low: int, high: int, relations: int, hit_is_failure: bool) -> tuple[npt.NDArray[Any], ...]:
    return kernel.segment_classes(np.frombuffer(partners, np.int64).copy(), low, high, relations, hit_is_failure)


def _distinct(compared: Bools, low: I64, high: I64) -> tuple[I64, I64]:
    """One row for each distinct combination of partners and limits, and the combination of each row."""
    columns = [np.packbits(compared, axis=1), low[:, np.newaxis].view(np.uint8), high[:, np.newaxis].view(np.uint8)]
    rows = np.ascontiguousarray(np.concatenate(columns, axis=1))
    _, examples, table_of = np.unique(rows.view(f"V{rows.shape[1]}").ravel(), return_index=True, return_inverse=True)
    return examples, table_of


def _limits(operand: BoundQuantified, n_counted: I64) -> tuple[I64, I64]:
    """The least and the most segments that satisfy a quantifier, if so many count."""
    if operand.at_least is None:
        return n_counted, n_counted
    least = np.full_like(n_counted, operand.at_least)
    return least, n_counted if operand.at_most is None else np.full_like(n_counted, operand.at_most)


def _counts(operand: BoundQuantified, count_up_to: int | None) -> tuple[int, int]:
    """The number of hits up to which, and from which on, the kernel does not distinguish; see `relate_pairs`."""
    if count_up_to is not None:
        return 0, count_up_to
    if operand.at_least is None:  # hits are failures
        return 0, 1
    if operand.at_most is None:
        return operand.at_least - 1, operand.at_least
    return operand.at_least - 1 if operand.at_least else operand.at_most, operand.at_most + 1


def _sums(groups: I64, values: npt.NDArray[Any], n_groups: int) -> I64:
    """The sum of the values of each group."""
    return np.bincount(groups, values, n_groups).astype(np.int64)


def _check_size(longest_a: I64, longest_b: I64, classes: kernel.Classes, needed: int) -> None:
    """Raise TooLarge if a pair needs too many weights."""
    cells = int(((longest_a + 1) * (longest_b + 1)).max())
    weights = cells * int(classes.count.max()) * (needed + 1)
    if weights > MOST_WEIGHTS:
        lost = f"two entities have {longest_a.max()} and {longest_b.max()} consecutive lost events"
        hint = "use a smaller number in the first quantifier, remove COUNT, or filter out such entities"
        raise TooLarge(f"{lost}, which needs {weights:,} weights (at most {MOST_WEIGHTS:,} are allowed); {hint}")


def _widened(column: npt.NDArray[Any], width: int) -> npt.NDArray[Any]:
    if column.ndim == 1 or column.shape[1] == width:
        return column
    return np.pad(column, ((0, 0), (0, width - column.shape[1])))
