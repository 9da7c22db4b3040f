"""SEQUENCE: components with their streams, chances of loss and laws of delay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from anabranch.binding.conditions import a_type
from anabranch.binding.queries import OperandScope, QueryBinder, find_column, known
from anabranch.binding.words import count_of
from anabranch.catalog import Model, Relation, Stream
from anabranch.language import nodes
from anabranch.language.findings import listed, shown
from anabranch.language.temporal import amount_of
from anabranch.language.types import comparable
from anabranch.sequence.query import FROM_FILE, LAWS, BoundComponent, BoundDelay, BoundRates, BoundSequence, Check
from anabranch.sequence.syntax import Delay, Miss, MissBy, Sequence

#: What can stand after ENDING, EMIT and SCORING; ALL and JOINT are what holds without.
ENDINGS = ("OPEN",)
EMITTED = ("ALL", "BEST", "EXPIRED")
SCORINGS = ("JOINT", "POSTERIOR")

_Item = TypeVar("_Item", Miss, Delay)


class Binder(QueryBinder):
    """Binds one SEQUENCE."""

    kind = "SEQUENCE"
    models = (Model.CERTAIN,)
    answer_columns = frozenset({"t", "t_start", "probability", "status"})

    def bind(self, query: Sequence) -> BoundSequence | None:
        """The bound query, None where the findings say why there is none."""
        names = [(component.name, component.span) for component in query.components]
        streams = self.operands(names, query.operands)
        own = [item for item in query.miss if isinstance(item, Miss)]
        chances: dict[str, float | None] = {
            name: self.chance(node) for name, node in self.of_components("MISS", own, streams).items()
        }
        rates = self.rates(query)
        if rates is not None:
            chances = self.by_reader(query, rates, streams) | chances
        delay = self.of_components("DELAY", query.delay, streams)
        laws = {name: self.delay(node) for name, node in delay.items()}
        scope = OperandScope(self.kind, streams, self.findings, defaults=True)
        where = self.condition(query.where, scope)
        within = self.duration("WITHIN", query.within, positive=True)
        self.check_words(query)
        if self.findings:
            return None
        components = tuple(
            BoundComponent(
                node.name, node.name.lower(), known(streams, node.name), node.negative,
                chances.get(node.name.lower(), 0.0), laws.get(node.name.lower()), span=node.span,
            )
            for node in query.components
        )  # fmt: skip
        self.check_components(query, components)
        return None if self.findings else BoundSequence(
            self.query.name, components, where, within, self.threshold, self.query.span,
            query.ending == "OPEN", frozenset(word.lower() for word in query.emit if word != "ALL"),
            (query.scoring or "JOINT").lower(), rates,
        )  # fmt: skip

    # ------------------------------------------------------------ MISS

    def chance(self, node: Miss) -> float:
        """The chance of a loss: a reading that is always lost tells nothing."""
        if not 0 <= node.probability < 1:
            message = f"MISS must be 0 or more and below 1, and is {node.probability}"
            self.findings.add("out-of-range", message, node.span, "write a fraction such as 0.1")
        return float(node.probability)

    def rates(self, query: Sequence) -> BoundRates | None:
        """`MISS BY reader FROM rates`, where it is written."""
        given = [item for item in query.miss if isinstance(item, MissBy)]
        if not given:
            return None
        for again in given[1:]:
            self.findings.add("clause-twice", "MISS BY is written twice", again.span, "keep one of them")
        node = given[0]
        relation = self.catalog.get(node.relation)
        if not isinstance(relation, Relation):
            names = self.catalog.names((Relation,))
            self.findings.unknown("relation", node.relation, names, node.span, "declare it with CREATE RELATION")
            return None
        if len(relation.columns) != 2 or not relation.columns[1].type.is_numeric:
            message = f"{relation.name} must have two columns, the {node.column} and the chance that it loses a reading"
            hint = f"declare it as CREATE RELATION {relation.name} ({node.column}, p)"
            self.findings.add("not-rates", message, node.span, hint)
            return None
        return BoundRates(node.column.lower(), relation, node.span)

    def by_reader(
        self, query: Sequence, rates: BoundRates, streams: Mapping[str, Stream | None]
    ) -> dict[str, float | None]:
        """The components whose chance is that of their reader: all whose stream has the column."""
        found: dict[str, float | None] = {}
        last = query.components[-1].name.lower()
        for name, stream in streams.items():
            column = None if stream is None else find_column(stream, rates.column)
            if column is None or (name == last and query.ending != "OPEN"):
                continue
            if not comparable(column.type, rates.relation.columns[0].type):
                named = f"{rates.relation.name}.{rates.relation.columns[0].name}"
                message = (
                    f"{column.name} is {a_type(column.type)}, and {named} {a_type(rates.relation.columns[0].type)}"
                )
                self.findings.add("type-mismatch", message, rates.span, "give both one type")
            found[name] = None
        if not found and None not in streams.values():
            message = f"no stream of this SEQUENCE has a column {shown(rates.column)}"
            self.findings.add("unknown-column", message, rates.span, "name the column of the reader")
        return found

    # ------------------------------------------------------------ clauses

    def of_components(
        self, clause: str, items: Iterable[_Item], streams: Mapping[str, Stream | None]
    ) -> dict[str, _Item]:
        """The items of a clause by component; an unknown or repeated component is a finding."""
        found: dict[str, _Item] = {}
        for item in items:
            name = item.component.lower()
            if name not in streams:
                hint = f"the components are {listed(streams, 'and')}"
                self.findings.unknown("component", item.component, streams, item.span, hint)
            elif name in found:
                message = f"{clause} names {shown(item.component)} twice"
                self.findings.add("name-twice", message, item.span, "keep one of them")
            else:
                found[name] = item
        return found

    def delay(self, node: Delay) -> BoundDelay | None:
        """The law of a delay with its parameters checked."""
        if node.law not in LAWS:
            self.findings.unknown("law", node.law, LAWS, node.span, f"the laws are {listed(LAWS, 'and')}")
            return None
        if (node.law in FROM_FILE) != (node.path is not None):
            hint = f"write {node.law} 'file'" if node.law in FROM_FILE else f"write {_signature(node.law)}"
            self.findings.add("arity", f"{node.law} cannot be given this way", node.span, hint)
            return None
        parameters = LAWS[node.law]
        if len(node.arguments) != len(parameters):
            message = f"{node.law} takes {count_of(len(parameters), 'parameter')}, and this has {len(node.arguments)}"
            self.findings.add("arity", message, node.span, f"write {_signature(node.law)}")
            return None
        values = [
            self.parameter(node.law, *parameter, given)
            for parameter, given in zip(parameters, node.arguments, strict=True)
        ]
        if node.law == "UNIFORM" and values[0] >= values[1]:
            self.findings.add("out-of-range", "UNIFORM(lo, hi) needs lo below hi", node.span, "put the smaller first")
        return BoundDelay(node.law, tuple(values), node.path, span=node.span)

    def parameter(self, law: str, name: str, timed: bool, check: Check, given: nodes.Duration) -> float:
        """One parameter of a law; only durations have a unit."""
        value = float(amount_of(given))
        holds, wanted = check
        if not holds(value):
            self.findings.add(
                "out-of-range", f"the {name} of {law} must be {wanted}, and is {given.amount}", given.span
            )
        if given.unit is not None and not timed:
            self.findings.add(
                "not-a-duration", f"the {name} of {law} is a plain number", given.span, "leave out the unit"
            )
        return value

    def check_words(self, query: Sequence) -> None:
        """The words after ENDING, EMIT and SCORING."""
        for clause, given, words in (
            ("ENDING", filter(None, [query.ending]), ENDINGS),
            ("EMIT", query.emit, EMITTED),
            ("SCORING", filter(None, [query.scoring]), SCORINGS),
        ):
            for word in given:
                if word not in words:
                    hint = f"after {clause} stands {listed(words)}"
                    self.findings.unknown(clause.lower(), word, words, query.place(clause), hint)

    def check_components(self, query: Sequence, components: tuple[BoundComponent, ...]) -> None:
        """What the components ask of each other and of the clauses."""
        (self.check_open if query.ending == "OPEN" else self.check_ending)(query, components)
        for component in components if query.ending == "OPEN" else components[:-1]:
            if component.may_miss and component.delay is None:
                message = f"{shown(component.label)} may be missing, so its delay must be known"
                hint = f"add DELAY {component.label} EXPONENTIAL(mean)"
                self.findings.add("no-delay", message, component.span, hint)
        if query.within is None and "EXPIRED" in query.emit:
            message = "a partial match runs out of time when its window closes, and this has no window"
            self.findings.add("no-window", message, query.place("EMIT"), "add WITHIN, such as WITHIN 12 HOURS")

    def check_ending(self, query: Sequence, components: tuple[BoundComponent, ...]) -> None:
        """The last component is positive and observed; what may be missing before the first needs a window."""
        first, last = components[0], components[-1]
        if last.negative:
            message = f"the last component, {shown(last.label)}, cannot be negative"
            hint = "end with the event that completes the match, or add ENDING OPEN"
            self.findings.add("last-component", message, last.span, hint)
        elif last.may_miss:
            message = f"the last component, {shown(last.label)}, is always observed"
            hint = f"leave {last.label} out of MISS, or add ENDING OPEN"
            self.findings.add("last-component", message, query.place("MISS"), hint)
        if query.within is None and (first.negative or first.may_miss):
            why = "must not happen" if first.negative else "may be missing"
            message = f"{shown(first.label)} {why} before the first observed event, so the window must be bounded"
            self.findings.add("no-window", message, first.span, "add WITHIN, such as WITHIN 12 HOURS")

    def check_open(self, query: Sequence, components: tuple[BoundComponent, ...]) -> None:
        """With ENDING OPEN the window begins at the first component, and has an end."""
        first = components[0]
        if "EXPIRED" in query.emit:
            message = "with ENDING OPEN what did not come is a match already, with its probability"
            self.findings.add("open-expired", message, query.place("EMIT"), "leave out EXPIRED, or ENDING OPEN")
        if query.within is None:
            message = "an open ending is decided when the window closes, and this has no window"
            self.findings.add("no-window", message, query.place("ENDING"), "add WITHIN, such as WITHIN 12 HOURS")
        if first.negative or first.may_miss:
            why = "is negative" if first.negative else "may be missing"
            message = f"with ENDING OPEN the window begins at the first component, and {shown(first.label)} {why}"
            hint = "begin with a positive component"
            self.findings.add("first-component", message, first.span, hint if first.negative else f"{hint} of MISS 0")


def _signature(law: str) -> str:
    return f"{law}({', '.join(name for name, _, _ in LAWS[law])})"
