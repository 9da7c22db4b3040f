"""Converts a SEQUENCE query to arrays for the kernel: searches with score tables, programs and guards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from math import inf, prod
from sys import float_info

import numpy as np

from anabranch.arrays import I64, ROUNDING
from anabranch.binding.typed import Reference, Typed, walk
from anabranch.columns.conditions import Relations
from anabranch.columns.times import TimeKind
from anabranch.sequence.analysis import Disjunct, SequenceAnalysis, owners
from anabranch.sequence.gaps import Between, gap_table
from anabranch.sequence.kernel.query import ALWAYS, NEVER, Conditions, Runs, Scores, Window
from anabranch.sequence.kernel.tables import Table, joined
from anabranch.sequence.occurrence import occurrence_table
from anabranch.sequence.programs import ColumnOf, Programs
from anabranch.sequence.query import BoundComponent, beside_run
from anabranch.sequence.rates import with_rates


@dataclass(frozen=True, slots=True)
class Search:
    """A search for the matches of a disjunct, or for its expired sequences, which no event continued in time.

    Attributes
    ----------
    disjunct : the number of the disjunct
    reverse : whether the search starts with the first event; it then runs when the window has closed
    skipped : how many positive components are missing before the first event of a reverse search
    expired : whether it searches for expired sequences
    scores, conditions : the arrays for the kernel; the matrix of event values is added in each step
    columns : the values that programs load
    runs : the arrays for the kernel that finds runs; None without runs
    """

    disjunct: int
    reverse: bool
    skipped: int
    expired: bool
    scores: Scores
    conditions: Conditions
    columns: tuple[ColumnOf, ...]
    runs: Runs | None = None

    @property
    def guarded(self) -> I64:
        """The components whose events are looked for between others: those that must have none, and runs."""
        guards = self.conditions.guards[:, 0]
        return guards if self.runs is None else np.append(guards, self.runs.conditions.guards[:, 0])


def lower(analysis: SequenceAnalysis, relations: Relations, kind: TimeKind) -> tuple[Search, ...]:
    """All searches of a query over event times of one kind."""
    tables = _Tables(analysis)
    return tuple(
        _Lowering(analysis, number, disjunct, relations, kind, tables, reverse, skipped, expired).search()
        for number, disjunct in enumerate(analysis.disjuncts)
        for reverse, skipped, expired in _directions(analysis)
    )


def _directions(analysis: SequenceAnalysis) -> Iterator[tuple[bool, int, bool]]:
    """`reverse`, `skipped` and `expired` of each search of a disjunct."""
    query = analysis.query
    yield query.ending_open, 0, False
    if query.ending_open:
        # If the first positive components are missing, the window begins with a later one.
        for skipped, number in enumerate(analysis.singles[:-1], 1):
            if not query.components[number].may_miss:
                break
            yield True, skipped, False
    if "expired" in query.emit:
        yield True, 0, True


def window_of(within: float | None, kind: TimeKind) -> float:
    """WITHIN in the unit of event times; microseconds are rounded to whole numbers."""
    if within is None:
        return inf
    return float(round(within * kind.per_unit)) if kind is TimeKind.TIMESTAMP else within


@dataclass(slots=True)
class _Tables:
    """A cache of the score tables of a query."""

    analysis: SequenceAnalysis
    known: dict[object, Table] = field(default_factory=dict)

    def of(self, between: Sequence[BoundComponent], end: BoundComponent | None) -> Table:
        """The table of a gap with these components; `end` is observed at its end, None at an end of the window."""
        query = self.analysis.query
        if query.has_occurs and end is not None:
            return self._with_occurs(tuple(between), end)
        posterior = query.scoring == "posterior" and not query.has_occurs
        key = tuple(Between(component.negative, component.miss or 0.0, component.delay) for component in between)
        if key not in self.known:
            names = [component.label for component in between]
            self.known[key] = gap_table(key, query.within, posterior, names)
        return self.known[key]

    def _with_occurs(self, between: tuple[BoundComponent, ...], end: BoundComponent) -> Table:
        # Loss probabilities by reader differ between disjuncts.
        key = (end.name, *((component.name, component.miss) for component in between))
        if key not in self.known:
            self.known[key] = occurrence_table(between, end, self.analysis.query.within)
        return self.known[key]


class _Lowering:
    """Converts one disjunct to the arrays of one search."""

    def __init__(
        self, analysis: SequenceAnalysis, number: int, disjunct: Disjunct, relations: Relations, kind: TimeKind,
        tables: _Tables, reverse: bool, skipped: int, expired: bool,
    ) -> None:  # fmt: skip
        self.analysis, self.number, self.disjunct, self.relations = analysis, number, disjunct, relations
        self.kind, self.tables = kind, tables
        self.reverse, self.skipped, self.expired = reverse, skipped, expired
        self.components = with_rates(analysis.query, disjunct, relations)
        self.positives = analysis.singles[skipped:]
        self.threshold = max(analysis.query.least_probability, float_info.min)
        self.used: list[Table] = []

    def search(self) -> Search:
        """The arrays of the search."""
        programs = Programs(self.analysis.query, self.relations)
        conditions, run_conditions = self._conditions(programs)
        runs = self._runs(run_conditions) if self.analysis.runs else None
        columns = tuple(programs.columns)
        return Search(self.number, self.reverse, self.skipped, self.expired, self._scores(), conditions, columns, runs)

    # ------------------------------------------------------------ scores

    def _scores(self) -> Scores:
        query, m = self.analysis.query, len(self.positives)
        gap = np.full((m, m), NEVER, np.int64)
        for i in range(m):
            for j in range(i + 1, m):
                first, second = (m - 1 - j, m - 1 - i) if self.reverse else (i, j)
                gap[i, j] = self._gap_number(self.positives[first], self.positives[second])
        head = np.array([self._head_number(i) for i in range(m)], np.int64)
        lead = self._gap_number(-1, self.positives[0]) if self.reverse and not self.expired else ALWAYS
        return Scores(
            joined(self.used), gap, head, lead,
            np.array([table.rising for table in self.used], np.bool_),
            np.array([table.falling for table in self.used], np.bool_),
            np.array([table.highest for table in self.used], np.float64),
            Window(window_of(query.within, self.kind), ROUNDING if self.kind is TimeKind.DOUBLE else 0.0),
            self._unit(), self.threshold,
        )  # fmt: skip

    def _runs(self, conditions: Conditions) -> Runs:
        """The runs, with the tables of the gaps before and after them."""
        runs, end = self.analysis.runs, len(self.components)
        before = np.full((len(runs), end), NEVER, np.int64)
        after = np.full((len(runs), end + 1), NEVER, np.int64)
        for number, run in enumerate(runs):
            for single in (*self.positives, -1, end):
                if single < run:
                    before[number, single + 1] = self._gap_number(single, run)
                else:
                    after[number, single] = self._gap_number(run, single)
        return Runs(np.array(runs, np.int64), before, after, conditions)

    def _gap_number(self, start: int, end: int) -> int:
        """The number of the table for the gap between two components, or ALWAYS or NEVER.

        -1 and the number of components are the ends of the window. If a run is in the gap, the gaps before and after it
        are scored when it is known, and this one has score 1.
        """
        run = next((number for number in range(start + 1, end) if self.components[number].run), None)
        if run is not None:
            return NEVER if NEVER in (self._gap_number(start, run), self._gap_number(run, end)) else ALWAYS
        at_an_end = start < 0 or end == len(self.components)
        return self._table_number(self.components[start + 1 : end], None if at_an_end else self.components[end])

    def _table_number(self, between: Sequence[BoundComponent], end: BoundComponent | None = None) -> int:
        """The number of the table for the components in a gap that ends with `end`, or ALWAYS or NEVER."""
        query = self.analysis.query
        is_weighed = query.has_occurs and end is not None
        if any(not component.negative and not component.miss for component in between):
            return NEVER
        if not any(component.miss or is_weighed for component in between):
            return ALWAYS
        losses = prod(component.miss or 0.0 for component in between if not component.negative)
        if query.scoring == "joint" and losses < self.threshold:
            return NEVER  # no table is made for it
        table = self.tables.of(between, end)
        if table.highest < self.threshold:
            return NEVER
        self.used.append(table)
        return len(self.used) - 1

    def _unit(self) -> float:
        """The unit of event times, in the unit of delays.

        It is rounded up, so that a gap of 1,100,000 microseconds is not below a delay of 1.1 seconds.
        """
        return 1.0 if self.kind.per_unit == 1 else (1 + ROUNDING) / self.kind.per_unit

    def _head_number(self, number: int) -> int:
        """The number of the table for the gap between a number and the end of the sequence to which a search goes."""
        if not self.reverse:
            return self._gap_number(-1, self.positives[number])
        start = self.positives[len(self.positives) - 1 - number]
        if not self.expired:
            return self._gap_number(start, len(self.components))
        # An expired sequence waits for the next positive component; a negative before that one ends the wait.
        return self._table_number(list(takewhile(lambda component: component.negative, self.components[start + 1 :])))

    # ------------------------------------------------------------ conditions

    def _conditions(self, programs: Programs) -> tuple[Conditions, Conditions]:
        """The conditions of the search, and those of runs and of the components next to them."""
        m = len(self.positives)
        names = [component.name for component in self.components]
        numbers = {names[index]: m - 1 - n if self.reverse else n for n, index in enumerate(self.positives)}
        negatives = {component.name for component in self.components if component.negative}
        joint = [*self.disjunct.joint, *self.analysis.equalities(self.disjunct)]
        written = [(programs.add(condition), owners(condition)) for condition in joint]
        # Entry 1 + i of the lists of due programs and guards is for number i; entry 0 is for the head.
        due_programs: list[list[int]] = [[] for _ in range(m + 1)]
        for (program, owned), condition in zip(written, joint, strict=True):
            if _applies_to_matches(condition, owned - set(numbers), negatives):
                # A condition on the trigger alone is evaluated with the first step of the search.
                due_programs[1 + min([m - 2, *(numbers[name] for name in owned & set(numbers))])].append(program)
        guards: list[tuple[int, int, int]] = []
        guard_programs: list[list[int]] = []
        due_guards: list[list[int]] = [[] for _ in range(m + 1)]

        def programs_on(component: int) -> list[int]:
            return [program for program, owned in written if names[component] in owned and len(owned) > 1]

        beside = {other for run in self.analysis.runs for other in beside_run(self.components, run)}
        at_runs = [(run, 0, 0) for run in self.analysis.runs]
        for component, after, as_missing in self._guards(numbers):
            if component in beside:
                at_runs.append((component, after, as_missing))
                continue
            on_guard = programs_on(component)
            # The stretch beyond the trigger ends with the window of the last event that is found.
            decided = -1 if after == m else after if as_missing else after - 1
            if not self.expired:
                others = {name for program, owned in written if program in on_guard for name in owned} & set(numbers)
                decided = min([decided, *(numbers[name] for name in others - {names[component]})])
            due_guards[1 + decided].append(len(guards))
            guards.append((component, after, as_missing))
            guard_programs.append(on_guard)
        conditions = Conditions(
            np.array(list(self.positives[::-1] if self.reverse else self.positives), np.int64),
            np.array(programs.rows, np.int64).reshape(-1, 4), np.array(programs.first, np.int64),
            *_flat(due_programs), np.array(guards, np.int64).reshape(-1, 3), *_flat(guard_programs),
            *_flat(due_guards), np.zeros((0, 0)), np.array(programs.members, np.float64),
            np.zeros(len(programs.rows) + 1),
        )  # fmt: skip
        run_programs, run_program_starts = _flat([programs_on(component) for component, _, _ in at_runs])
        return conditions, conditions._replace(
            guards=np.array(at_runs, np.int64).reshape(-1, 3),
            guard_programs=run_programs, guard_program_starts=run_program_starts,
        )  # fmt: skip

    def _guards(self, numbers: dict[str, int]) -> Iterator[tuple[int, int, int]]:
        """The components that must have no event between two others, as rows of `Conditions.guards`."""
        m, before = len(self.positives), -self.skipped
        for index, component in enumerate(self.components):
            if component.run:
                continue
            if component.negative:
                after = m - max(before, 0) if self.reverse else before
                if after < m or not self.expired:
                    yield index, after, 0
                continue
            before += 1
            if self.analysis.query.scoring == "posterior" and component.miss:
                yield index, numbers.get(component.name, m), 1


def _applies_to_matches(condition: Typed, absent: set[str], negatives: set[str]) -> bool:
    """Whether a condition is evaluated for matches: references to components without events must have a default.

    Negatives have no event in a match. A condition on one negative alone is only evaluated for its events.
    """
    nodes = [node for node in walk(condition) if isinstance(node, Reference)]
    if len({node.owner for node in nodes}) == 1 and nodes[0].owner in negatives:
        return False
    return all(node.default is not None for node in nodes if node.owner in absent)


def _flat(lists: Sequence[Sequence[int]]) -> tuple[I64, I64]:
    """The concatenated lists, and the index of the first item of each list."""
    first = np.cumsum([0, *map(len, lists)])
    return np.array([item for items in lists for item in items], np.int64), first.astype(np.int64)
