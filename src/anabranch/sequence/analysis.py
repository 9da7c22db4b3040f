"""Analyses SEQUENCE queries: splits WHERE into disjuncts, each with conditions on single events and on several events.

WHERE is converted to disjunctive normal form, and each disjunct is searched separately. A condition on one component
is never split: for a negative y, `y.reader IN ('a', 'b')` means that neither must happen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from anabranch.binding.equalities import equated_columns, merge_overlapping
from anabranch.binding.typed import Constant, Operation, Reference, Typed, conjunction, of_event, walk
from anabranch.binding.words import condition_text
from anabranch.errors import Finding
from anabranch.language.findings import shown
from anabranch.language.types import Type
from anabranch.plan import Sampling, sampled_columns
from anabranch.sequence.query import BoundComponent, BoundSequence

#: The most disjuncts of a WHERE.
MOST_DISJUNCTS = 64

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

#: A component and one of its columns, both in lower case.
ComponentColumn = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Disjunct:
    """One disjunct of WHERE.

    Attributes
    ----------
    own : tuple of Typed or None
        For each component, the conditions on its event only, on the columns of its stream.
    joint : tuple of Typed
        The conditions on several components, and those on the defaults of missing components.
    classes : tuple of frozenset
        The classes of columns that are equal in all events of a match.
    """

    own: tuple[Typed | None, ...]
    joint: tuple[Typed, ...]
    classes: tuple[frozenset[ComponentColumn], ...]


@dataclass(frozen=True)
class SequenceAnalysis:
    """The analysis of a SEQUENCE query."""

    query: BoundSequence
    disjuncts: tuple[Disjunct, ...]

    @property
    def positives(self) -> tuple[int, ...]:
        """The numbers of the positive components."""
        return tuple(number for number, component in enumerate(self.query.components) if not component.negative)

    @property
    def runs(self) -> tuple[int, ...]:
        """The numbers of the components that are runs."""
        return tuple(number for number, component in enumerate(self.query.components) if component.run)

    @property
    def singles(self) -> tuple[int, ...]:
        """The numbers of the positive components that are one event."""
        return tuple(number for number in self.positives if not self.query.components[number].run)

    @property
    def slots(self) -> tuple[int, ...]:
        """The component of each event of a match: a run has two, its first and its last event."""
        return tuple(sorted((*self.positives, *self.runs)))

    @cached_property
    def key(self) -> tuple[tuple[ComponentColumn, ...], ...]:
        """The classes by which events are grouped: each has a column of every component.

        If there is none, a column of every positive component is enough, or of every single one.
        """
        components = self.query.components
        choices = (range(len(components)), self.positives, self.singles)
        found = (self._common_classes({components[number].name for number in numbers}) for numbers in choices)
        return next(filter(None, found), ())

    def _common_classes(self, names: set[str]) -> tuple[tuple[ComponentColumn, ...], ...]:
        """The classes that every disjunct has, and that have a column of each of these components."""
        if not self.disjuncts:
            return ()
        common = []
        for equal_columns in self.disjuncts[0].classes:
            columns = dict(sorted(equal_columns))
            chosen = tuple((name, columns[name]) for name in sorted(names & set(columns)))
            is_shared = all(any(set(chosen) <= other for other in rest.classes) for rest in self.disjuncts[1:])
            if len(chosen) == len(names) and is_shared:
                common.append(chosen)
        return tuple(common)

    def key_columns(self, name: str) -> tuple[str, ...] | None:
        """The columns of a component by which its events are grouped; None if its events belong to every group."""
        columns = [dict(equal_columns).get(name) for equal_columns in self.key]
        return None if None in columns else tuple(column for column in columns if column is not None)

    @property
    def sampling(self) -> Sampling:
        """The events of a match are equal in the columns of the key; without a key, they are in one window."""
        components = self.query.components
        if self.key and all(self.key_columns(component.name) is not None for component in components):
            streams = {component.name: component.stream.name.lower() for component in components}
            pairs = ((streams[name], column) for name, column in self.key[0])
            columns = sampled_columns([stream.name.lower() for stream in self.query.streams], pairs)
            if columns is not None:
                return Sampling(columns)
        return Sampling(window=self.query.within)

    def is_compared_as_double(self, equal_columns: Sequence[ComponentColumn]) -> bool:
        """Whether the columns of a class are numbers of different types."""
        types = {self._type(*column) for column in equal_columns}
        return len(types) > 1 and Type.DOUBLE in types

    def _type(self, name: str, column: str) -> Type:
        stream = next(component.stream for component in self.query.components if component.name == name)
        return next(candidate.type for candidate in stream.columns if candidate.name.lower() == column)

    def equalities(self, disjunct: Disjunct) -> Iterator[Typed]:
        """The equalities between pairs of components that grouping by the key does not already ensure."""
        keys = [set(equal_columns) for equal_columns in self.key]
        order = [component.name for component in self.query.components]
        for equal_columns in disjunct.classes:
            names = sorted({name for name, _ in equal_columns}, key=order.index)
            column_of = dict(sorted(equal_columns))
            in_key = {name for name, _ in next((key for key in keys if key <= equal_columns), set())}
            by_read = any(component.is_always_read and component.name in names for component in self.query.components)
            for i, first in enumerate(names):
                for second in names[i + 1 :]:
                    # If both are equal to an event that is always read, they are equal to each other.
                    if not ({first, second} <= in_key or (by_read and self._relates_run({first, second}))):
                        yield self._equal(first, column_of[first], second, column_of[second])

    def _relates_run(self, names: set[str]) -> bool:
        """Whether these components are a run and another run, or a negative component: neither is one event."""
        components = [component for component in self.query.components if component.name in names]
        return any(component.run for component in components) and (
            sum(component.run or component.negative for component in components) > 1
        )

    def _equal(self, first: str, column: str, second: str, other: str) -> Typed:
        sides = (
            Reference(first, column, self._type(first, column)),
            Reference(second, other, self._type(second, other)),
        )
        return Operation("=", sides, Type.BOOLEAN)

    def objection(self) -> Finding | None:
        """Why the query cannot run; None if it can."""
        if not self.disjuncts:
            message = f"the WHERE of {self.query.name} has more than {MOST_DISJUNCTS} alternatives"
            return Finding("too-many", message, "put lists into a RELATION, or split the query", self.query.span)
        for disjunct in self.disjuncts:
            for component, condition in zip(self.query.components, disjunct.own, strict=True):
                if condition is None and not self._has_own_stream(component):
                    message = f"{shown(component.label)} has no condition of its own, so it could be any event"
                    alternatives = " in each alternative of OR" if len(self.disjuncts) > 1 else ""
                    example = f"{component.label}.column = 'value'{alternatives}"
                    hint = f"add a condition such as {example}, or use a separate stream"
                    return Finding("no-own-condition", message, hint, component.span)
        for disjunct in self.disjuncts if self.query.has_runs else ():
            for condition in (*disjunct.joint, *self.equalities(disjunct)):
                if self._relates_run(owners(condition)):
                    run = next(component for component in self.query.components if component.run)
                    message = f"{condition_text(condition)} does not say which event of a run is compared"
                    return Finding("run-condition", message, "compare a run with single components", run.span)
        by_world = self.query.excludes_events or self.query.has_runs
        if self.query.has_probabilities and by_world and len(self.disjuncts) > 1:
            message = (
                f"the WHERE of {self.query.name} has alternatives that exclude different events with probabilities"
            )
            hint = "write one query for each alternative of OR, or put lists into a RELATION"
            return Finding("uncertain-or", message, hint, self.query.span)
        return None

    def _has_own_stream(self, component: BoundComponent) -> bool:
        others = [other.stream.name.lower() for other in self.query.components if other is not component]
        return component.stream.name.lower() not in others


def analyse(query: BoundSequence) -> SequenceAnalysis:
    """Analyse a bound query."""
    conjunctions = [[]] if query.where is None else _disjunctive(query.where, False) or []
    return SequenceAnalysis(query, tuple(_disjunct(query, literals) for literals in conjunctions))


def owners(tree: Typed) -> set[str]:
    """The components in a condition, and in its defaults."""
    return {node.owner or "" for each in walk(tree) if isinstance(each, Reference) for node in alternatives(each)}


def alternatives(reference: Reference) -> Iterator[Reference]:
    """The columns of `x.id[y.id]` in the order in which they are tried."""
    column: Constant | Reference | None = reference
    while isinstance(column, Reference):
        yield column
        column = column.default


# ---------------------------------------------------------------- normal form


def _disjunctive(tree: Typed, negated: bool) -> list[list[Typed]] | None:
    """The disjunctive normal form of a condition, or of its negation: lists of literals; None if there are too many."""
    if isinstance(tree, Operation) and tree.op == "not":
        return _disjunctive(tree.arguments[0], not negated)
    if isinstance(tree, Operation) and tree.op in ("and", "or"):
        is_conjunction = (tree.op == "and") != negated
        if is_conjunction or len(owners(tree)) > 1:
            return _combined([_disjunctive(part, negated) for part in tree.arguments], is_conjunction)
    return [[_negated(tree) if negated else tree]]


def _negated(literal: Typed) -> Typed:
    """The negation of a literal. The operator of a comparison is replaced, so that equalities are recognised.

    But not `<` and similar operators on one event: for NaN, a comparison and its opposite are both false.
    """
    if isinstance(literal, Operation) and literal.op in _OPPOSITE:
        if literal.op in ("=", "<>") or len(owners(literal)) > 1:
            return replace(literal, op=_OPPOSITE[literal.op])
    return Operation("not", (literal,), Type.BOOLEAN, literal.span)


def _combined(parts: Sequence[list[list[Typed]] | None], is_conjunction: bool) -> list[list[Typed]] | None:
    """The normal form of a conjunction or disjunction of normal forms; None if it has too many disjuncts."""
    forms = [part for part in parts if part is not None]
    if len(forms) < len(parts):
        return None
    count = 1
    for form in forms:
        count = count * len(form) if is_conjunction else count + len(form)
        if count > MOST_DISJUNCTS + 1:
            return None
    if is_conjunction:
        return [[literal for disjunct in choice for literal in disjunct] for choice in product(*forms)]
    return [disjunct for form in forms for disjunct in form]


def _disjunct(query: BoundSequence, literals: Sequence[Typed]) -> Disjunct:
    own: dict[str, list[Typed]] = {component.name: [] for component in query.components}
    joint: list[Typed] = []
    pairs: list[set[ComponentColumn]] = []
    for literal in literals:
        names = owners(literal)
        if not names:
            # A condition without columns applies to every event of a match.
            for component in query.components:
                own[component.name].append(literal)
            continue
        equated = equated_columns(literal)
        if equated is not None:
            pairs.append({(column.owner or "", column.name) for column in equated})
        if len(names) == 1:
            own[names.pop()].append(literal)
            if _has_defaults(literal):
                joint.append(literal)
        elif equated is None or any(isinstance(node, Reference) and node.default for node in walk(literal)):
            joint.append(literal)
    classes = tuple(merge_overlapping(pairs))
    for equal_columns in classes:
        _add_own_equalities(query, equal_columns, own)
    conditions = tuple(conjunction(tuple(map(of_event, own[component.name]))) for component in query.components)
    return Disjunct(conditions, tuple(joint), classes)


def _has_defaults(tree: Typed) -> bool:
    """Whether every column in a condition has a default."""
    return all(node.default is not None for node in walk(tree) if isinstance(node, Reference))


def stand_in(tree: Typed) -> Typed:
    """The tree with every reference replaced by its default, or NULL: its value if the component is missing."""
    if isinstance(tree, Reference):
        return tree.default if isinstance(tree.default, Constant) else Constant(None, Type.NULL)
    if isinstance(tree, Constant):
        return tree
    return replace(tree, arguments=tuple(map(stand_in, tree.arguments)))


def _add_own_equalities(
    query: BoundSequence, equal_columns: frozenset[ComponentColumn], own: dict[str, list[Typed]]
) -> None:
    """Add the equalities between columns of the same component to its own conditions."""
    for component in query.components:
        columns = sorted(column for name, column in equal_columns if name == component.name)
        types = {column.name.lower(): column.type for column in component.stream.columns}
        for first, second in zip(columns, columns[1:], strict=False):
            sides = tuple(Reference(component.name, column, types[column]) for column in (first, second))
            own[component.name].append(Operation("=", sides, Type.BOOLEAN))
