"""What a SEQUENCE query asks: its disjuncts, each with what is asked of single events, and of several together.

WHERE becomes a disjunction of conjunctions, and each disjunct stands for itself. A condition on one component alone is
never taken apart: `y.reader IN ('a', 'b')` of a negative y means that neither must happen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from anabranch.binding.typed import (
    Constant,
    Operation,
    Reference,
    Typed,
    conjunction,
    walk,
    with_references,
)
from anabranch.errors import Finding
from anabranch.language.findings import shown
from anabranch.language.types import Type
from anabranch.sequence.query import BoundComponent, BoundSequence

#: More ways to meet a WHERE than anybody means.
MOST_DISJUNCTS = 64

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

#: A column of a component, both by lower-case name.
Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Disjunct:
    """One way to meet WHERE.

    Attributes
    ----------
    own : for each component what is asked of its event alone, on the columns of its stream
    joint : what is asked of several components together, and of the values that stand for missing ones
    classes : columns of components that are equal in all events of a match
    """

    own: tuple[Typed | None, ...]
    joint: tuple[Typed, ...]
    classes: tuple[frozenset[Place], ...]


@dataclass(frozen=True)
class SequenceAnalysis:
    """A SEQUENCE query taken apart."""

    query: BoundSequence
    disjuncts: tuple[Disjunct, ...]

    @property
    def positives(self) -> tuple[int, ...]:
        """The numbers of the positive components."""
        return tuple(number for number, each in enumerate(self.query.components) if not each.negative)

    @cached_property
    def key(self) -> tuple[tuple[Place, ...], ...]:
        """The classes by which events meet: of each, a column of every component, or of every positive one."""
        everyone = {component.name for component in self.query.components}
        positive = {component.name for component in self.query.components if not component.negative}
        return self._common_classes(everyone) or self._common_classes(positive)

    def _common_classes(self, names: set[str]) -> tuple[tuple[Place, ...], ...]:
        """The classes of all disjuncts that have a column of each of these components."""
        if not self.disjuncts:
            return ()
        found = []
        for each in self.disjuncts[0].classes:
            columns = dict(sorted(each))
            place = tuple((name, columns[name]) for name in sorted(names & set(columns)))
            shared = all(any(set(place) <= other for other in rest.classes) for rest in self.disjuncts[1:])
            if len(place) == len(names) and shared:
                found.append(place)
        return tuple(found)

    def key_columns(self, name: str) -> tuple[str, ...] | None:
        """The columns of a component by which its events meet others; None where they meet all."""
        columns = [dict(each).get(name) for each in self.key]
        return None if None in columns else tuple(column for column in columns if column is not None)

    def is_compared_as_double(self, place: Sequence[Place]) -> bool:
        """Whether the columns of a class are numbers of different types."""
        types = {self._type(*each) for each in place}
        return len(types) > 1 and Type.DOUBLE in types

    def _type(self, name: str, column: str) -> Type:
        stream = next(each.stream for each in self.query.components if each.name == name)
        return next(each.type for each in stream.columns if each.name.lower() == column)

    def equalities(self, disjunct: Disjunct) -> Iterator[Typed]:
        """What the classes ask of pairs of components that does not hold already because events met by the key."""
        met = [set(place) for place in self.key]
        order = [component.name for component in self.query.components]
        for each in disjunct.classes:
            names = sorted({name for name, _ in each}, key=order.index)
            one = dict(sorted(each))
            keyed = next((place for place in met if place <= each), set())
            for i, first in enumerate(names):
                for second in names[i + 1 :]:
                    if not ({(first, one[first]), (second, one[second])} <= keyed or _both_met(keyed, first, second)):
                        yield self._equal(first, one[first], second, one[second])

    def _equal(self, first: str, column: str, second: str, other: str) -> Typed:
        sides = (
            Reference(first, column, self._type(first, column)),
            Reference(second, other, self._type(second, other)),
        )
        return Operation("=", sides, Type.BOOLEAN)

    def objection(self) -> Finding | None:
        """What stands against the query as it is written."""
        if not self.disjuncts:
            message = f"the WHERE of {self.query.name} can be met in more than {MOST_DISJUNCTS} ways"
            return Finding("too-many", message, "put lists into a RELATION, or split the query", self.query.span)
        for component, asked in ((c, d.own[n]) for d in self.disjuncts for n, c in enumerate(self.query.components)):
            if asked is None and not self._has_own_stream(component):
                message = f"nothing is asked of {shown(component.label)} alone, so that it could be any event"
                alternatives = " in each alternative of its OR" if len(self.disjuncts) > 1 else ""
                hint = f"add a condition such as {component.label}.column = 'value'{alternatives}, or give it a stream"
                return Finding("no-own-condition", message, hint, component.span)
        return None

    def _has_own_stream(self, component: BoundComponent) -> bool:
        others = [each for each in self.query.components if each is not component]
        return all(each.stream.name.lower() != component.stream.name.lower() for each in others)


def _both_met(keyed: set[Place], first: str, second: str) -> bool:
    names = {name for name, _ in keyed}
    return first in names and second in names


def analyse(query: BoundSequence) -> SequenceAnalysis:
    """Take a query apart."""
    ways = [[]] if query.where is None else _disjunctive(query.where, False)
    ways = [] if ways is None else ways
    return SequenceAnalysis(query, tuple(_disjunct(query, literals) for literals in ways))


def owners(tree: Typed) -> set[str]:
    """The components that a condition speaks of."""
    return {node.owner or "" for node in walk(tree) if isinstance(node, Reference)}


# ---------------------------------------------------------------- normal form


def _disjunctive(tree: Typed, negated: bool) -> list[list[Typed]] | None:
    """The ways to meet a condition, or its negation: each a list of what must hold; None where there are too many."""
    if isinstance(tree, Operation) and tree.op == "not":
        return _disjunctive(tree.arguments[0], not negated)
    if isinstance(tree, Operation) and tree.op in ("and", "or"):
        all_of_them = (tree.op == "and") != negated
        if all_of_them or len(owners(tree)) > 1:
            return _joined([_disjunctive(part, negated) for part in tree.arguments], all_of_them)
    return [[_negated(tree) if negated else tree]]


def _negated(literal: Typed) -> Typed:
    """What a literal denies; a comparison is turned round, so that an equality is seen as one.

    Not so `<` and its like where they are asked of one event, whose values may be NaN: of that both are false.
    """
    if isinstance(literal, Operation) and literal.op in _OPPOSITE:
        if literal.op in ("=", "<>") or len(owners(literal)) > 1:
            return replace(literal, op=_OPPOSITE[literal.op])
    return Operation("not", (literal,), Type.BOOLEAN, literal.span)


def _joined(parts: Sequence[list[list[Typed]] | None], all_of_them: bool) -> list[list[Typed]] | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    count = 1
    for part in known:
        count = count * len(part) if all_of_them else count + len(part)
        if count > MOST_DISJUNCTS + 1:
            return None
    if all_of_them:
        return [[literal for way in ways for literal in way] for ways in product(*known)]
    return [way for part in known for way in part]


def _disjunct(query: BoundSequence, literals: Sequence[Typed]) -> Disjunct:
    own: dict[str, list[Typed]] = {component.name: [] for component in query.components}
    joint: list[Typed] = []
    pairs: list[frozenset[Place]] = []
    for literal in literals:
        named = owners(literal)
        if not named:
            # What is asked of nothing is asked of every event that a match has.
            for component in query.components:
                own[component.name].append(literal)
            continue
        pair = _equality(literal)
        pairs += [] if pair is None else [pair]
        if len(named) == 1:
            own[named.pop()].append(literal)
            if _can_stand_in(literal):
                joint.append(literal)
        elif pair is None or any(isinstance(node, Reference) and node.default for node in walk(literal)):
            joint.append(literal)
    classes = _closed(pairs)
    for each in classes:
        _add_own_equalities(query, each, own)
    of_events = tuple(conjunction(tuple(map(of_event, own[component.name]))) for component in query.components)
    return Disjunct(of_events, tuple(joint), classes)


def of_event(tree: Typed) -> Typed:
    """A condition or value of one event, on the columns of its stream."""
    return with_references(tree, lambda reference: replace(reference, owner=None, default=None))


def _can_stand_in(tree: Typed) -> bool:
    """Whether every value that a condition names has one to take where its component is missing."""
    return all(node.default is not None for node in walk(tree) if isinstance(node, Reference))


def stand_in(tree: Typed) -> Typed:
    """The tree with every reference replaced by what it is where its component is missing."""
    if isinstance(tree, Reference):
        return tree.default or Constant(None, Type.NULL)
    if isinstance(tree, Constant):
        return tree
    return replace(tree, arguments=tuple(map(stand_in, tree.arguments)))


# ---------------------------------------------------------------- equal values


def _equality(literal: Typed) -> frozenset[Place] | None:
    """The two columns that a literal equates."""
    if not isinstance(literal, Operation) or literal.op != "=":
        return None
    left, right = literal.arguments
    if not isinstance(left, Reference) or not isinstance(right, Reference):
        return None
    return frozenset({(left.owner or "", left.name), (right.owner or "", right.name)})


def _closed(pairs: Sequence[frozenset[Place]]) -> tuple[frozenset[Place], ...]:
    """Classes of equal columns: what equals one of them equals all."""
    classes: list[frozenset[Place]] = []
    for pair in pairs:
        touching = [each for each in classes if each & pair]
        classes = [each for each in classes if not each & pair] + [pair.union(*touching)]
    return tuple(classes)


def _add_own_equalities(query: BoundSequence, places: frozenset[Place], own: dict[str, list[Typed]]) -> None:
    """Two columns of one component in one class are equal in its event."""
    for component in query.components:
        columns = sorted(column for name, column in places if name == component.name)
        types = {column.name.lower(): column.type for column in component.stream.columns}
        for first, second in zip(columns, columns[1:], strict=False):
            sides = tuple(Reference(component.name, column, types[column]) for column in (first, second))
            own[component.name].append(Operation("=", sides, Type.BOOLEAN))
