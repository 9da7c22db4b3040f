"""A SEQUENCE query as numbers: its searches, each with tables of scores, programs, and what must not be found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf, prod
from sys import float_info

import numpy as np

from anabranch.arrays import I64
from anabranch.binding.typed import Reference, Typed, walk
from anabranch.columns.conditions import Relations
from anabranch.sequence.analysis import Disjunct, SequenceAnalysis, owners
from anabranch.sequence.gaps import Between, gap_table
from anabranch.sequence.kernel.query import ALWAYS, NEVER, Demands, Scores
from anabranch.sequence.kernel.tables import Table, joined
from anabranch.sequence.programs import ColumnOf, Programs
from anabranch.sequence.query import BoundComponent
from anabranch.sequence.rates import with_rates

#: Scores are rounded; a match whose score is this little below the threshold, as a share of it, is at the threshold.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Search:
    """One way through the events: for the matches of a disjunct, or for what ran out of time.

    Attributes
    ----------
    disjunct : its number
    reverse : whether it begins with the first event, and so is done when the window has closed
    expired : whether it is for what nothing continues
    scores, demands : what the kernel needs; the matrix of the events is given when there are some
    columns : what programs load
    """

    disjunct: int
    reverse: bool
    expired: bool
    scores: Scores
    demands: Demands
    columns: tuple[ColumnOf, ...]


def lower(analysis: SequenceAnalysis, relations: Relations, scale: float) -> tuple[Search, ...]:
    """All searches of a query; `scale` is how many units of a time make one of its delays."""
    tables = _Tables(analysis)
    return tuple(
        _Lowering(analysis, number, disjunct, relations, scale, tables).search(reverse, expired)
        for number, disjunct in enumerate(analysis.disjuncts)
        for reverse, expired in _directions(analysis)
    )


def _directions(analysis: SequenceAnalysis) -> Iterator[tuple[bool, bool]]:
    yield analysis.query.ending_open, False
    if "expired" in analysis.query.emit:
        yield True, True


def window_of(within: float | None, scale: float) -> float:
    """WITHIN in the unit of times; of microseconds there are whole ones only."""
    if within is None:
        return inf
    return within * scale if scale == 1 else float(round(within * scale))


@dataclass(slots=True)
class _Tables:
    """The tables of a query, each made once."""

    analysis: SequenceAnalysis
    known: dict[tuple[Between, ...], Table] = field(default_factory=dict)

    def of(self, between: Sequence[BoundComponent]) -> Table:
        query = self.analysis.query
        key = tuple(Between(each.negative, each.miss or 0.0, each.delay) for each in between)
        if key not in self.known:
            names = [each.label for each in between]
            self.known[key] = gap_table(key, query.within, query.scoring == "posterior", names)
        return self.known[key]


class _Lowering:
    """One disjunct on its way to numbers."""

    def __init__(
        self, analysis: SequenceAnalysis, number: int, disjunct: Disjunct, relations: Relations, scale: float,
        tables: _Tables,
    ) -> None:  # fmt: skip
        self.analysis, self.number, self.disjunct, self.relations = analysis, number, disjunct, relations
        self.scale, self.tables = scale, tables
        self.components = with_rates(analysis.query, disjunct, relations)
        self.positives = analysis.positives

    def search(self, reverse: bool, expired: bool) -> Search:
        """The numbers of one search."""
        programs = Programs(self.analysis.query, self.relations)
        scores = self._scores(reverse, expired)
        demands = self._demands(programs, reverse, expired)
        return Search(self.number, reverse, expired, scores, demands, tuple(programs.columns))

    # ------------------------------------------------------------ scores

    def _scores(self, reverse: bool, expired: bool) -> Scores:
        query, m = self.analysis.query, len(self.positives)
        threshold = max(query.threshold * (1 - _ROUNDING), float_info.min)
        used: list[Table] = []

        def number_of(between: Sequence[BoundComponent]) -> int:
            if any(not each.negative and not each.miss for each in between):
                return NEVER
            if not any(each.miss for each in between):
                return ALWAYS
            losses = prod(each.miss or 0.0 for each in between if not each.negative)
            if query.scoring == "joint" and losses < threshold:
                return NEVER  # and its table need not be made
            table = self.tables.of(between)
            if table.highest < threshold:
                return NEVER
            used.append(table)
            return len(used) - 1

        gap = np.full((m, m), NEVER, np.int64)
        for i in range(m):
            for j in range(i + 1, m):
                first, second = (m - 1 - j, m - 1 - i) if reverse else (i, j)
                gap[i, j] = number_of(self.components[self.positives[first] + 1 : self.positives[second]])
        head = np.array([number_of(self._before(i, reverse, expired)) for i in range(m)], np.int64)
        return Scores(
            joined(used), gap, head,
            np.array([table.rising for table in used], np.bool_),
            np.array([table.falling for table in used], np.bool_),
            np.array([table.highest for table in used], np.float64),
            window_of(query.within, self.scale), 1 / self.scale, threshold,
        )  # fmt: skip

    def _before(self, number: int, reverse: bool, expired: bool) -> Sequence[BoundComponent]:
        """What lies between a positive component and the end to which a search goes."""
        if not reverse:
            return self.components[: self.positives[number]]
        after = self.components[self.positives[len(self.positives) - 1 - number] + 1 :]
        if not expired:
            return after
        # What has run out of time waits for the next positive component; the negatives ahead of that end the wait.
        next_positive = next((place for place, each in enumerate(after) if not each.negative), len(after))
        return after[:next_positive]

    # ------------------------------------------------------------ demands

    def _demands(self, programs: Programs, reverse: bool, expired: bool) -> Demands:
        m = len(self.positives)
        names = [component.name for component in self.components]
        numbers = {names[place]: m - 1 - n if reverse else n for n, place in enumerate(self.positives)}
        conditions = [*self.disjunct.joint, *self.analysis.equalities(self.disjunct)]
        written = [(programs.add(condition), owners(condition)) for condition in conditions]
        asked: list[list[int]] = [[] for _ in range(m + 1)]
        for (number, named), condition in zip(written, conditions, strict=True):
            if _is_of_matches(condition, named - set(numbers)):
                # What speaks of the trigger alone is asked with the first step of the search.
                asked[1 + min([m - 2, *(numbers[name] for name in named & set(numbers))])].append(number)
        guards: list[tuple[int, int, int]] = []
        own: list[list[int]] = []
        watch: list[list[int]] = [[] for _ in range(m + 1)]
        for component, after, as_missing in self._guards(numbers, reverse):
            mine = [number for number, named in written if names[component] in named and len(named) > 1]
            decided = after if as_missing else after - 1
            if not expired:
                others = {name for number, named in written if number in mine for name in named} & set(numbers)
                decided = min([decided, *(numbers[name] for name in others - {names[component]})])
            watch[1 + decided].append(len(guards))
            guards.append((component, after, as_missing))
            own.append(mine)
        (asked_all, asked_first), (own_all, own_first), (watch_all, watch_first) = map(_flat, (asked, own, watch))
        return Demands(
            np.array(list(self.positives[::-1] if reverse else self.positives), np.int64),
            np.array(programs.rows, np.int64).reshape(-1, 4), np.array(programs.first, np.int64),
            asked_all, asked_first, np.array(guards, np.int64).reshape(-1, 3), own_all, own_first,
            watch_all, watch_first, np.zeros((0, 0)), np.array(programs.members, np.float64),
            np.zeros(len(programs.rows) + 1),
        )  # fmt: skip

    def _guards(self, numbers: dict[str, int], reverse: bool) -> Iterator[tuple[int, int, int]]:
        """The components of which there must be no event, as `Demands.guards` has them."""
        m, before = len(self.positives), 0
        for place, component in enumerate(self.components):
            if component.negative:
                after = m - before if reverse else before
                if after < m:
                    yield place, after, 0
                continue
            before += 1
            if self.analysis.query.scoring == "posterior" and component.miss:
                yield place, numbers[component.name], 1


def _is_of_matches(condition: Typed, negatives: set[str]) -> bool:
    """Whether a condition is asked of a match, in which negatives did not happen: each needs a value to stand in.

    What names a negative alone is asked of its events alone.
    """
    named = [node for node in walk(condition) if isinstance(node, Reference)]
    if negatives and len({node.owner for node in named}) == 1:
        return False
    return all(node.default is not None for node in named if node.owner in negatives)


def _flat(lists: Sequence[Sequence[int]]) -> tuple[I64, I64]:
    """Lists one after the other, and where each begins."""
    first = np.cumsum([0, *map(len, lists)])
    return np.array([item for each in lists for item in each], np.int64), first.astype(np.int64)
