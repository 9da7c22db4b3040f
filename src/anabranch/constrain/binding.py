"""Binds CONSTRAIN queries: variables, some of which stand for several interchangeable events, and conditions."""

from __future__ import annotations

from dataclasses import replace

from anabranch.binding.conditions import ARITIES, ConditionBinder
from anabranch.binding.per import PerEpisode, PerKeys, PerWindow
from anabranch.binding.query_binder import QueryBinder, known_stream
from anabranch.binding.scopes import OperandScope
from anabranch.binding.stream_columns import check_column_types
from anabranch.binding.typed import Reference, Typed, conjuncts, walk, with_references
from anabranch.catalog import Model, Stream
from anabranch.constrain.arguments import check_functions
from anabranch.constrain.factors import factors_of
from anabranch.constrain.location_errors import (
    EXPECTED,
    OF_READINGS,
    OPPOSITE,
    SEMANTICS,
    TrueArea,
    names_uncertain_location,
    true_condition,
)
from anabranch.constrain.query import EMITTED, STRATEGIES, BoundConstrain, BoundCounted, mentions
from anabranch.constrain.syntax import Constrain
from anabranch.language import limits, nodes
from anabranch.language.findings import listed, shown


class Binder(QueryBinder):
    """Binds one CONSTRAIN."""

    kind = "CONSTRAIN"
    models = (Model.CERTAIN, Model.INDEPENDENT)
    answer_columns = frozenset({"t", "probability"})
    takes_per = (PerWindow, PerEpisode, PerKeys)
    takes_durations = True

    def bind(self, body: Constrain) -> BoundConstrain | None:
        """Return the bound query, or None if there are findings."""
        if body.semantics == EXPECTED:
            self.answer_columns = self.answer_columns | {"lower", "upper", "method"}
        streams = self.operands([(counted.name, counted.span) for counted in body.names], body.operands)
        for stream in streams.values():
            if stream is not None:
                check_column_types(stream, self.findings, declared=False)
        for operand in body.operands:
            self.check_rows(operand)
        self.check_clauses(body)
        stated = self.conditions(body, streams)
        located = tuple(condition for condition in stated if names_uncertain_location(condition, streams))
        self.check_locations(body, located, streams)
        conditions = self.conditions_on_readings(body, stated, streams)
        self.check_negated(body, conditions)
        self.check_growing(body)
        if self.findings:
            return None
        variables = tuple(
            BoundCounted(
                node.name,
                node.name.lower(),
                known_stream(streams, node.name),
                0 if node.negated else node.count,
                node.grows,
                span=node.span,
            )
            for node in body.names
        )
        bound = BoundConstrain(
            self.query.name, variables, conditions, self.threshold, self.query.span, body.strategy,
            "EARLY" in body.emit, body.semantics, located,
        )  # fmt: skip
        self.check_rows_of_several(bound)
        return bound

    def check_rows(self, operand: nodes.Operand) -> None:
        """Report an inferred stream: its rows are made where they are used, for PATTERN."""
        stream = self.catalog.get(operand.stream)
        if isinstance(stream, Stream) and isinstance(stream.source, nodes.InferredSource):
            message = f"CONSTRAIN takes streams with rows of their own, but {shown(stream.name)} is INFERRED"
            hint = "write its rows to a file with anabranch rows, and declare a stream FROM this file"
            self.findings.add("inferred-stream", message, operand.span, hint)

    def check_clauses(self, body: Constrain) -> None:
        """Report a wrong number of events, or an unknown option of STRATEGY, SEMANTICS or EMIT."""
        for counted in body.names:
            if not 1 <= counted.count <= limits.MAX_COUNT:
                message = (
                    f"{shown(counted.name)} stands for {counted.count} events (1 to {limits.MAX_COUNT} are allowed)"
                )
                hint = f"write AT LEAST 5 {counted.name}" if counted.grows else f"write {counted.name}*5"
                self.findings.add("out-of-range", message, counted.span, hint)
        for clause, word, options in (
            ("STRATEGY", body.strategy, STRATEGIES),
            ("SEMANTICS", body.semantics, SEMANTICS),
            *(("EMIT", word, EMITTED) for word in body.emit),
        ):
            if word is not None and word not in options:
                span, hint = body.clause_span(clause), f"use {listed(options)}"
                self.findings.unknown(f"{clause} option", word, options, span, hint)

    def check_negated(self, body: Constrain, conditions: tuple[Typed, ...]) -> None:
        """Report NOT where it has no meaning: without other variables, with EMIT EARLY, or with another NOT."""
        negated = {node.name.lower(): node for node in body.names if node.negated}
        if not negated:
            return
        first = next(iter(negated.values()))
        if len(negated) == len(body.names):
            message = f"NOT {first.name} needs another variable: its absence is about other events"
            self.findings.add("only-negated", message, first.span, f"write CONSTRAIN v, NOT {first.name}")
        if "EARLY" in body.emit:
            message = f"EMIT EARLY cannot be used with NOT {first.name}: a later event can make an early answer false"
            self.findings.add("early-negation", message, body.clause_span("EMIT"), "remove EMIT EARLY")
        for condition in conditions:
            together = sorted({owner for owner, _ in mentions(condition)} & set(negated))
            if len(together) > 1:
                names = " and ".join(map(shown, together[:2]))
                message = f"a condition cannot compare {names}, which are both NOT"
                self.findings.add("two-negated", message, condition.span, "compare each with another variable")

    def check_growing(self, body: Constrain) -> None:
        """Report AT LEAST where it has no meaning: twice, or with EMIT EARLY."""
        growing = [node for node in body.names if node.grows]
        if not growing:
            return
        first, *others = growing
        clause = f"AT LEAST {first.count} {first.name}"
        if others:
            message = f"{shown(first.name)} and {shown(others[0].name)} both have AT LEAST"
            hint = "a set is maximal for fixed events of the other variables; use AT LEAST once"
            self.findings.add("two-growing", message, others[0].span, hint)
        if "EARLY" in body.emit:
            message = f"EMIT EARLY cannot be used with {clause}: a later event can extend a set"
            self.findings.add("early-growth", message, body.clause_span("EMIT"), "remove EMIT EARLY")

    def conditions(self, body: Constrain, streams: dict[str, Stream | None]) -> tuple[Typed, ...]:
        """Bind the conjuncts of WHERE.

        Each is bound separately, because the mentions of a counted variable are counted in the text of the user:
        `v.kind IN ('A', 'B')` names v once, although it becomes two comparisons.
        """
        counted = {node.name.lower() for node in body.names if node.count > 1 or node.grows}
        where = body.where
        parts = where.items if isinstance(where, nodes.And) else () if where is None else (where,)
        bound: list[Typed] = []
        for part in parts:
            scope = OperandScope(self.kind, streams, self.findings, functions=tuple(ARITIES), counted=counted)
            bound.extend(conjuncts(ConditionBinder(self.catalog, self.findings, scope).condition(part)))
        for condition in bound:
            check_functions(condition, streams, self.findings)
        return tuple(map(_with_first_mentions, bound))

    # ------------------------------------------------------------ locations with an error

    def check_locations(self, body: Constrain, located: tuple[Typed, ...], streams: dict[str, Stream | None]) -> None:
        """Report conditions on locations with an ERROR that cannot be decided, and a wrong or missing SEMANTICS."""
        uncertain = [stream.name for stream in streams.values() if stream is not None and stream.location_error]
        if body.semantics is not None and not uncertain:
            message = "SEMANTICS is about locations with an error, but no stream of this query has an ERROR"
            hint = "remove SEMANTICS, or add ERROR 10 to CREATE STREAM"
            self.findings.add("no-error", message, body.clause_span("SEMANTICS"), hint)
        for condition in located:
            true = true_condition(condition)
            if true is None:
                message = (
                    "a location with an ERROR can only be used in a bound on a distance, such as DISTANCE(u, v) < 5, "
                    "or with an area, such as WITHIN(u, 'POLYGON(...)')"
                )
                hint = "use <, <=, > or >= and a number, and join such conditions by AND"
                self.findings.add("uncertain-location", message, condition.span, hint)
            elif body.semantics is None:
                message = f"the locations of {shown(uncertain[0])} have an ERROR, but the query has no SEMANTICS"
                hint = "write SEMANTICS MAY (it can be true), MUST (it is true for all locations) or EXPECTED"
                self.findings.add("no-semantics", message, condition.span, hint)
            elif isinstance(true, TrueArea):
                self.check_area(body, true, streams[true.event.owner or ""])
            if true is not None and body.semantics == EXPECTED:
                self.check_expected(body, condition)

    def check_area(self, body: Constrain, true: TrueArea, stream: Stream | None) -> None:
        """Report an area on the globe, and the probability of an area for locations with a height."""
        if stream is None:
            return
        if stream.declaration.geodesic:
            message = "on the globe, an area is drawn on a map, but the ERROR of a location is in metres"
            hint = "use DISTANCE(u, 'POINT(lon lat)') <= 500, or declare SPACE (x, y) in metres"
            self.findings.add("uncertain-area", message, true.condition.span, hint)
        elif stream.has_height and body.semantics == EXPECTED:
            message = "EXPECTED has no probability of an area for locations with three coordinates"
            self.findings.add("uncertain-area", message, true.condition.span, "use SPACE (x, y), or SEMANTICS MAY")

    def check_expected(self, body: Constrain, condition: Typed) -> None:
        """Report a probability that depends on the true locations of events outside of the answer."""
        owners = {owner for owner, _ in mentions(condition)}
        for node in body.names:
            if (node.negated or node.grows) and node.name.lower() in owners:
                clause = f"NOT {node.name}" if node.negated else f"AT LEAST {node.count} {node.name}"
                message = f"EXPECTED has no probability for {clause}, which depends on other true locations"
                hint = f"use SEMANTICS MAY or MUST{'' if node.negated else f', or {node.name}*{node.count}'}"
                self.findings.add("uncertain-location", message, condition.span, hint)

    def conditions_on_readings(
        self, body: Constrain, conditions: tuple[Typed, ...], streams: dict[str, Stream | None]
    ) -> tuple[Typed, ...]:
        """Replace conditions on true locations by conditions on readings, for streams with an ERROR."""
        if self.findings or body.semantics is None:
            return conditions
        known = {name: stream for name, stream in streams.items() if stream is not None}
        negated = {node.name.lower() for node in body.names if node.negated}
        changed = []
        for condition in conditions:
            true = true_condition(condition) if names_uncertain_location(condition, streams) else None
            semantics = OF_READINGS[body.semantics]
            if {owner for owner, _ in mentions(condition)} & negated:
                semantics = OPPOSITE[semantics]
            changed.append(condition if true is None else true.of_readings(semantics, known))
        return tuple(changed)

    def check_rows_of_several(self, query: BoundConstrain) -> None:
        """Report PER over sampled probabilities: their bounds would not hold for sure."""
        shared = factors_of(query).shared
        if query.semantics == EXPECTED and self.per is not None and shared is not None:
            message = f"PER needs exact probabilities, but {shown(shared)} is in several conditions on true locations"
            hint = "remove PER, or use SEMANTICS MAY or MUST"
            self.findings.add("no-per", message, self.query.clause_span("PER"), hint)


def _with_first_mentions(condition: Typed) -> Typed:
    """Renumber a second mention of a variable as the first if the condition has no first mention of it.

    A condition that names v twice may be split into conjuncts that name it once and hold for each event, such as
    `3 BETWEEN v.low AND v.high`.
    """
    first = {node.owner for node in walk(condition) if isinstance(node, Reference) and node.mention == 1}
    return with_references(
        condition, lambda reference: reference if reference.owner in first else replace(reference, mention=1)
    )
