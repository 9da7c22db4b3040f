"""Binds SEQUENCE queries: components with their streams, loss probabilities and delay laws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from anabranch.binding.per import PerEpisode, PerKeys, PerWindow
from anabranch.binding.query_binder import QueryBinder, known_stream
from anabranch.binding.scopes import OperandScope
from anabranch.binding.stream_columns import find_column
from anabranch.binding.type_rules import a_type
from anabranch.binding.typed import Reference, Typed, walk
from anabranch.binding.words import count_of
from anabranch.catalog import Model, Relation, Stream
from anabranch.language import nodes
from anabranch.language.findings import listed, shown
from anabranch.language.temporal import amount_of
from anabranch.language.types import comparable
from anabranch.sequence.query import (
    FROM_FILE,
    LAWS,
    BoundComponent,
    BoundDelay,
    BoundRates,
    BoundSequence,
    Check,
    GivenDelay,
    beside_run,
)
from anabranch.sequence.syntax import Delay, Miss, MissBy, Occurs, Sequence

#: The options of ENDING, EMIT and SCORING; ALL and JOINT are the defaults.
ENDINGS = ("OPEN",)
EMITTED = ("ALL", "BEST", "NEXT", "EXPIRED", "EARLY")
SCORINGS = ("JOINT", "POSTERIOR")

_Item = TypeVar("_Item", Miss, Occurs, Delay)


class Binder(QueryBinder):
    """Binds one SEQUENCE."""

    kind = "SEQUENCE"
    models = (Model.CERTAIN, Model.INDEPENDENT)
    answer_columns = frozenset({"t", "t_start", "probability", "status"})
    takes_per = (PerWindow, PerEpisode, PerKeys)

    def bind(self, body: Sequence) -> BoundSequence | None:
        """Return the bound query, or None if there are findings."""
        names = [(component.name, component.span) for component in body.components]
        streams = self.operands(names, body.operands)
        stated = [item for item in body.miss if isinstance(item, Miss)]
        miss: dict[str, float | None] = {
            name: self.miss_probability(node) for name, node in self.by_component("MISS", stated, streams).items()
        }
        rates = self.rates(body)
        if rates is not None:
            miss = self.miss_by_reader(body, rates, streams) | miss
        occurs = {
            name: self.occurs_probability(node)
            for name, node in self.by_component("OCCURS", body.occurs, streams).items()
        }
        plain = [node for node in body.delay if node.given is None]
        laws = {name: self.delay(node) for name, node in self.by_component("DELAY", plain, streams).items()}
        given = self.given_delays(body, streams)
        scope = OperandScope(self.kind, streams, self.findings, allows_defaults=True)
        where = self.condition(body.where, scope)
        within = self.duration("WITHIN", body.within, positive=True)
        self.check_options(body)
        if self.findings:
            return None
        components = tuple(
            BoundComponent(
                node.name, node.name.lower(), known_stream(streams, node.name), node.negative,
                miss.get(node.name.lower(), 0.0), laws.get(node.name.lower()), occurs.get(node.name.lower()),
                tuple(given.get(node.name.lower(), ())), node.run, span=node.span,
            )
            for node in body.components
        )  # fmt: skip
        self.check_components(body, components)
        self.check_defaults(where, components)
        return None if self.findings else BoundSequence(
            self.query.name, components, where, within, self.threshold, self.query.span,
            body.ending == "OPEN", frozenset(word.lower() for word in body.emit if word != "ALL"),
            (body.scoring or "JOINT").lower(), rates,
        )  # fmt: skip

    # ------------------------------------------------------------ MISS

    def miss_probability(self, node: Miss) -> float:
        """The probability of a loss; report 1, because a reading that is always lost carries no information."""
        if not 0 <= node.probability < 1:
            message = f"MISS must be 0 or more and below 1, not {node.probability}"
            self.findings.add("out-of-range", message, node.span, "write a fraction such as 0.1")
        return float(node.probability)

    def rates(self, body: Sequence) -> BoundRates | None:
        """Bind `MISS BY reader FROM rates`; None if it is not written or invalid."""
        items = [item for item in body.miss if isinstance(item, MissBy)]
        if not items:
            return None
        for repeated in items[1:]:
            self.findings.add("clause-twice", "MISS BY is written twice", repeated.span, "remove one of them")
        node = items[0]
        relation = self.catalog.get(node.relation)
        if not isinstance(relation, Relation):
            names = self.catalog.names((Relation,))
            self.findings.unknown("relation", node.relation, names, node.span, "declare it with CREATE RELATION")
            return None
        if len(relation.columns) != 2 or not relation.columns[1].type.is_numeric:
            columns = f"the {node.column} and the probability that it loses a reading"
            message = f"relation {relation.name} must have two columns: {columns}"
            hint = f"declare it as CREATE RELATION {relation.name} ({node.column}, p)"
            self.findings.add("not-rates", message, node.span, hint)
            return None
        return BoundRates(node.column.lower(), relation, node.span)

    def miss_by_reader(
        self, body: Sequence, rates: BoundRates, streams: Mapping[str, Stream | None]
    ) -> dict[str, float | None]:
        """The components whose loss probability depends on the reader: all whose stream has the column."""
        components: dict[str, float | None] = {}
        always_read = {node.name.lower() for node in body.components if node.run}
        if body.ending != "OPEN":
            always_read.add(body.components[-1].name.lower())
        for name, stream in streams.items():
            column = None if stream is None else find_column(stream, rates.column)
            if column is None or name in always_read:
                continue
            if not comparable(column.type, rates.relation.columns[0].type):
                reader = rates.relation.columns[0]
                rate_type = f"{rates.relation.name}.{reader.name} is {a_type(reader.type)}"
                message = f"column {column.name} is {a_type(column.type)}, but {rate_type}"
                self.findings.add("type-mismatch", message, rates.span, "use the same type")
            components[name] = None
        if not components and None not in streams.values():
            message = f"no stream of this SEQUENCE has a column {shown(rates.column)}"
            self.findings.add("unknown-column", message, rates.span, "name the column that has the reader")
        return components

    # ------------------------------------------------------------ OCCURS

    def occurs_probability(self, node: Occurs) -> float:
        """The probability that a component happens at all."""
        if not 0 <= node.probability <= 1:
            message = f"OCCURS must be between 0 and 1, not {node.probability}"
            self.findings.add("out-of-range", message, node.span, "write a fraction such as 0.9")
        return float(node.probability)

    def given_delays(self, body: Sequence, streams: Mapping[str, Stream | None]) -> dict[str, list[GivenDelay]]:
        """The laws of `DELAY z WITH y` and `DELAY z WITHOUT y`, by component."""
        by_name: dict[str, list[GivenDelay]] = {}
        order = [component.name.lower() for component in body.components]
        optional = {item.component.lower() for item in body.occurs}
        for node in body.delay:
            if node.given is None:
                continue
            word = "WITH" if node.given.happened else "WITHOUT"
            unknown = [name for name in (node.component, *node.given.components) if name.lower() not in streams]
            if unknown:
                hint = f"the components are {listed(streams, 'and')}"
                self.findings.unknown("component", unknown[0], streams, node.span, hint)
                continue
            name, others = node.component.lower(), [other.lower() for other in node.given.components]
            later = next((other for other in others if order.index(other) >= order.index(name)), None)
            certain = next((other for other in others if other not in optional), None)
            law = self.delay(node)
            if later is not None:
                message = f"DELAY {node.component} {word} {later}: {later} does not come before {node.component}"
                self.findings.add("given-order", message, node.span, "name components before it")
            elif certain is not None and not node.given.happened:
                message = f"{shown(certain)} always happens, so DELAY {node.component} WITHOUT {certain} is never used"
                self.findings.add("no-occurs", message, node.span, f"add OCCURS, such as OCCURS {certain} 0.9")
            elif law is not None:
                self.add_given(by_name, node, GivenDelay(node.given.happened, frozenset(others), law))
        return by_name

    def add_given(self, by_name: dict[str, list[GivenDelay]], node: Delay, given: GivenDelay) -> None:
        """Add a law; report a second one for the same components."""
        known = by_name.setdefault(node.component.lower(), [])
        if any((other.happened, other.components) == (given.happened, given.components) for other in known):
            message = f"DELAY names {shown(node.component)} with the same components twice"
            self.findings.add("name-twice", message, node.span, "remove one of them")
        known.append(given)

    def check_occurs(self, body: Sequence, components: tuple[BoundComponent, ...]) -> None:
        """Report what OCCURS needs: SCORING POSTERIOR, a last event, all delays, and OCCURS of negative components."""
        span = body.clause_span("OCCURS")
        if body.scoring != "POSTERIOR":
            message = "OCCURS weighs what happened by the length of a gap, which needs SCORING POSTERIOR"
            self.findings.add("occurs-scoring", message, span, "add SCORING POSTERIOR")
        if body.ending == "OPEN":
            message = "OCCURS needs an event at the end of every gap, but ENDING OPEN allows that there is none"
            self.findings.add("occurs-open", message, span, "remove OCCURS or ENDING OPEN")
        elif components[-1].occurs is not None:
            message = f"the last component {shown(components[-1].label)} is always read, so it needs no OCCURS"
            self.findings.add("last-component", message, span, f"remove {components[-1].label} from OCCURS")
        for component in components[1:]:
            if component.delay is None:
                message = f"with OCCURS, {shown(component.label)} needs a DELAY, because the length of a gap counts"
                hint = f"add DELAY {component.label} EXPONENTIAL(mean)"
                self.findings.add("no-delay", message, component.span, hint)
            if component.negative and component.occurs is None:
                message = f"with OCCURS, the negative component {shown(component.label)} needs one too"
                hint = f"add OCCURS {component.label}, such as OCCURS {component.label} 0.9"
                self.findings.add("no-occurs", message, component.span, hint)

    # ------------------------------------------------------------ clauses

    def by_component(
        self, clause: str, items: Iterable[_Item], streams: Mapping[str, Stream | None]
    ) -> dict[str, _Item]:
        """Return the items of a clause by component; report unknown and repeated components."""
        by_name: dict[str, _Item] = {}
        for item in items:
            name = item.component.lower()
            if name not in streams:
                hint = f"the components are {listed(streams, 'and')}"
                self.findings.unknown("component", item.component, streams, item.span, hint)
            elif name in by_name:
                message = f"{clause} names {shown(item.component)} twice"
                self.findings.add("name-twice", message, item.span, "remove one of them")
            else:
                by_name[name] = item
        return by_name

    def delay(self, node: Delay) -> BoundDelay | None:
        """Bind the law of a delay; report an unknown law or wrong parameters, and return None then."""
        if node.law not in LAWS:
            self.findings.unknown("law", node.law, LAWS, node.span, f"the laws are {listed(LAWS, 'and')}")
            return None
        if (node.law in FROM_FILE) != (node.path is not None):
            if node.law in FROM_FILE:
                message, hint = f"{node.law} takes the path of a file, not parameters", f"write {node.law} 'file'"
            else:
                message, hint = f"{node.law} takes parameters, not a file", f"write {_signature(node.law)}"
            self.findings.add("arity", message, node.span, hint)
            return None
        parameters = LAWS[node.law]
        if len(node.arguments) != len(parameters):
            message = f"{node.law} takes {count_of(len(parameters), 'parameter')}, but this has {len(node.arguments)}"
            self.findings.add("arity", message, node.span, f"write {_signature(node.law)}")
            return None
        values = [
            self.parameter(node.law, *parameter, argument)
            for parameter, argument in zip(parameters, node.arguments, strict=True)
        ]
        if node.law == "UNIFORM" and values[0] >= values[1]:
            self.findings.add("out-of-range", "UNIFORM(lo, hi) needs lo below hi", node.span, "write the smaller first")
        return BoundDelay(node.law, tuple(values), node.path, span=node.span)

    def parameter(self, law: str, name: str, is_duration: bool, check: Check, argument: nodes.Duration) -> float:
        """Return one parameter of a law; report a value out of range, or a unit of a parameter that is no duration."""
        value = float(amount_of(argument))
        is_valid, allowed = check
        if not is_valid(value):
            message = f"the {name} of {law} must be {allowed}, not {argument.amount}"
            self.findings.add("out-of-range", message, argument.span)
        if argument.unit is not None and not is_duration:
            message = f"the {name} of {law} is a number without a unit"
            self.findings.add("not-a-duration", message, argument.span, "remove the unit")
        return value

    def check_options(self, body: Sequence) -> None:
        """Report unknown options of ENDING, EMIT and SCORING."""
        for clause, words, options in (
            ("ENDING", filter(None, [body.ending]), ENDINGS),
            ("EMIT", body.emit, EMITTED),
            ("SCORING", filter(None, [body.scoring]), SCORINGS),
        ):
            for word in words:
                if word not in options:
                    span, hint = body.clause_span(clause), f"use {listed(options)}"
                    self.findings.unknown(f"{clause} option", word, options, span, hint)

    def check_components(self, body: Sequence, components: tuple[BoundComponent, ...]) -> None:
        """Report components that need a clause which is missing, or that cannot be first or last."""
        self.check_sources(components)
        self.check_runs(body, components)
        (self.check_open if body.ending == "OPEN" else self.check_ending)(body, components)
        unchecked = components if body.ending == "OPEN" else components[:-1]
        if body.occurs:
            self.check_occurs(body, components)
            unchecked = components[:1]
        elif any(component.given for component in components):
            message = "DELAY ... WITH and WITHOUT say what happened unread, which needs OCCURS"
            self.findings.add("no-occurs", message, body.clause_span("DELAY"), "add OCCURS, such as OCCURS y 0.9")
        for component in unchecked:
            if component.may_miss and component.delay is None:
                message = f"{shown(component.label)} may be missing, so it needs a DELAY"
                hint = f"add DELAY {component.label} EXPONENTIAL(mean)"
                self.findings.add("no-delay", message, component.span, hint)
        uncertain = next((each for each in components if each.stream.model is Model.INDEPENDENT), None)
        if uncertain is not None and "EXPIRED" in body.emit:
            message = f"EMIT EXPIRED takes CERTAIN streams, but {shown(uncertain.stream.name)} has probabilities"
            self.findings.add("uncertain-expired", message, body.clause_span("EMIT"), "remove EXPIRED")
        if {"BEST", "NEXT"} <= set(body.emit):
            message = "EMIT BEST keeps one match of each last event, EMIT NEXT one of each first event: not both"
            self.findings.add("emit-both", message, body.clause_span("EMIT"), "remove BEST or NEXT")
        if body.within is None and "EXPIRED" in body.emit:
            message = "EMIT EXPIRED needs WITHIN: a partial match expires when its window closes"
            self.findings.add("no-window", message, body.clause_span("EMIT"), "add WITHIN, such as WITHIN 12 HOURS")
        if self.per is not None and "EARLY" in body.emit:
            message = "EMIT EARLY gives provisional matches, but rows of PER are made of final ones"
            self.findings.add("early-per", message, body.clause_span("EMIT"), "remove EARLY or PER")

    def check_sources(self, components: tuple[BoundComponent, ...]) -> None:
        """Report a stream whose rows are derived from another stream: the events of a SEQUENCE are read."""
        derived = next((each for each in components if isinstance(each.stream.source, nodes.DerivedSource)), None)
        if derived is not None:
            name = shown(derived.stream.name)
            message = f"SEQUENCE reads the events of a source, but the rows of {name} are derived from another stream"
            model = derived.stream.model.value
            hint = f"write its rows with `anabranch rows`, and declare a stream of them with MODEL {model}"
            self.findings.add("derived-stream", message, derived.span, hint)

    def check_runs(self, body: Sequence, components: tuple[BoundComponent, ...]) -> None:
        """Report runs (`y+`) that could be missing, and those whose first or last event would not be determined."""
        runs = [(number, component) for number, component in enumerate(components) if component.run]
        if runs and "EXPIRED" in body.emit:
            message = f"EMIT EXPIRED reports single events, but {shown(runs[0][1].text)} is a run"
            self.findings.add("run-expired", message, body.clause_span("EMIT"), "remove EXPIRED, or use ENDING OPEN")
        for number, component in runs:
            self.check_run(body, component)
            beside = [components[other] for other in beside_run(components, number)]
            next_run = next((other for other in components[number + 1 :] if other.run and other in beside), None)
            if next_run is not None:
                message = f"nothing that is always read separates the runs {component.text} and {next_run.text}"
                hint = "put a component without MISS between them"
                self.findings.add("run-beside-run", message, next_run.span, hint)
            elif component.stream.model is Model.INDEPENDENT and beside:
                message = (
                    f"{shown(beside[0].text)} depends on which event of {component.text} is the first or the last one, "
                    f"but the events of {shown(component.stream.name)} have probabilities"
                )
                hint = f"put a component without MISS between them, or remove {beside[0].text}"
                self.findings.add("uncertain-run", message, beside[0].span, hint)

    def check_run(self, body: Sequence, component: BoundComponent) -> None:
        """Report a run that is negative, or may be missing."""
        label = component.label
        if component.negative:
            message = f"!{label} excludes every event of {label}, so {component.text} means the same"
            self.findings.add("negative-run", message, component.span, f"write !{label}")
        elif component.may_miss or component.occurs is not None:
            clause = "MISS" if component.may_miss else "OCCURS"
            message = f"{component.text} is one event or more, so it cannot be missing"
            hint = f"remove {label} from {clause}, or write {label} without +"
            self.findings.add("run-missing", message, body.clause_span(clause), hint)

    def check_defaults(self, where: Typed | None, components: tuple[BoundComponent, ...]) -> None:
        """Report a default that is a column of the same component, or of one without an event, or with several."""
        unusable = {component.name: "is negative and has no event" for component in components if component.negative}
        unusable |= {component.name: "is a run of several events" for component in components if component.run}
        runs = {component.name for component in components if component.run}
        for reference in [] if where is None else [node for node in walk(where) if isinstance(node, Reference)]:
            if reference.owner in runs and reference.default is not None:
                column = f"{reference.owner}.{reference.name}"
                message = f"{reference.owner}+ cannot be missing, so {column} needs no default"
                self.findings.add("default-of", message, reference.span, f"write {column}")
            tried = [reference.owner]
            default = reference.default
            while isinstance(default, Reference):
                if default.owner in tried or default.owner in unusable:
                    why = "is missing too" if default.owner in tried else unusable[default.owner or ""]
                    message = (
                        f"the default of {reference.owner}.{reference.name} is a column of {default.owner}, which {why}"
                    )
                    self.findings.add("default-of", message, default.span, "use a column of another positive component")
                    break
                tried.append(default.owner)
                default = default.default

    def check_ending(self, body: Sequence, components: tuple[BoundComponent, ...]) -> None:
        """Report a last component that is negative or may be missing, and a missing WITHIN."""
        first, last = components[0], components[-1]
        if last.negative:
            message = f"the last component {shown(last.label)} cannot be negative"
            hint = f"end with the event that completes the match{_or_open(body, components)}"
            self.findings.add("last-component", message, last.span, hint)
        elif last.run:
            message = f"the last component {shown(last.text)} has no end: a later event could always continue it"
            hint = f"end with the event that completes the match{_or_open(body, components)}"
            self.findings.add("last-component", message, last.span, hint)
        elif last.may_miss:
            message = f"the last component {shown(last.label)} cannot be missing"
            hint = f"remove {last.label} from MISS{_or_open(body, components)}"
            self.findings.add("last-component", message, body.clause_span("MISS"), hint)
        if body.within is None and (first.negative or first.may_miss):
            why = "must not happen" if first.negative else "may be missing"
            message = f"{shown(first.label)} {why} before the first observed event, so WITHIN is required"
            self.findings.add("no-window", message, first.span, "add WITHIN, such as WITHIN 12 HOURS")

    def check_open(self, body: Sequence, components: tuple[BoundComponent, ...]) -> None:
        """Report clauses and components that ENDING OPEN does not allow: its window begins at the first event."""
        if "EXPIRED" in body.emit:
            message = "ENDING OPEN already reports incomplete matches, with their probability"
            self.findings.add("open-expired", message, body.clause_span("EMIT"), "remove EXPIRED or ENDING OPEN")
        if "EARLY" in body.emit:
            message = "ENDING OPEN decides on a match when its window closes, so EMIT EARLY has nothing to give before"
            self.findings.add("open-early", message, body.clause_span("EMIT"), "remove EARLY or ENDING OPEN")
        if body.within is None:
            message = "ENDING OPEN needs WITHIN: a match is complete when its window closes"
            self.findings.add("no-window", message, body.clause_span("ENDING"), "add WITHIN, such as WITHIN 12 HOURS")
        if all(component.negative for component in components):
            message = "a match needs an event, but all components are negative"
            self.findings.add("no-positive", message, components[0].span, "add a positive component")
        if any(component.run for component in components) and not components[0].is_always_read:
            message = (
                "with ENDING OPEN and a run, the window begins with the first component, which must be always read"
            )
            self.findings.add("run-open", message, components[0].span, "begin with a single component without MISS")


def _or_open(body: Sequence, components: tuple[BoundComponent, ...]) -> str:
    """The hint to add ENDING OPEN, where `check_open` would allow it."""
    if body.occurs or "EXPIRED" in body.emit or all(component.negative for component in components):
        return ""
    if any(component.run for component in components) and not components[0].is_always_read:
        return ""
    return ", or add ENDING OPEN" if body.within is not None else ", or add ENDING OPEN and WITHIN"


def _signature(law: str) -> str:
    return f"{law}({', '.join(name for name, _, _ in LAWS[law])})"
