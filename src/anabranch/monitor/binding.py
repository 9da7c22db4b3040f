"""Binds MONITOR queries: up to four operands, constraints on predicted values, and how answers are validated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from anabranch.binding.bound import BoundOperand
from anabranch.binding.per import PerEpisode, PerKeys, PerWindow
from anabranch.binding.query_binder import QueryBinder, known_stream
from anabranch.binding.scopes import OperandScope
from anabranch.binding.stream_columns import check_column_types
from anabranch.binding.typed import conjuncts
from anabranch.catalog import Model, Stream
from anabranch.errors import Span
from anabranch.language.findings import listed, shown
from anabranch.monitor.constraints import Conditions, split_conditions
from anabranch.monitor.nearest import check_clauses_of_nearest, check_conditions_of_nearest
from anabranch.monitor.query import BoundArea, BoundConstraint, BoundMonitor, error_of
from anabranch.monitor.spatial import FUNCTIONS, SpatialBinder, is_spatial
from anabranch.monitor.syntax import Monitor
from anabranch.monitor.windows import at_constraints

SEMANTICS = ("EXPECTED", "MAY", "MUST")

#: The default policy of a full buffer.
DISCARD = "LEAST CONTRIBUTION"

#: The most names of a query: with more, the answers would come too late.
MAX_NAMES = 4

Named = Sequence[tuple[str, Span]]
Streams = Mapping[str, Stream | None]


class Binder(QueryBinder):
    """Binds one MONITOR."""

    kind = "MONITOR"
    models = (Model.PREDICTED,)
    answer_columns = frozenset(
        {"valid_from", "valid_to", "certain_from", "certain_to", "boundary", "sample", "probability", "status"}
    )
    takes_per = (PerWindow, PerEpisode, PerKeys)
    allows_windows = True

    def bind(self, body: Monitor) -> BoundMonitor | None:
        """Return the bound query, or None if there are findings."""
        names = [(variable.name, variable.span) for variable in body.names]
        if len(names) > MAX_NAMES:
            message = f"MONITOR takes one to four names, but this has {len(names)}"
            self.findings.add("too-many", message, names[MAX_NAMES][1], "split it into several queries")
        streams = self.operands(names, body.operands)
        for stream in {stream.name.lower(): stream for stream in streams.values() if stream is not None}.values():
            check_column_types(stream, self.findings, declared=False)
        where = self.condition(body.where, OperandScope(self.kind, streams, self.findings, ("ABS", *FUNCTIONS)))
        conditions, areas = Conditions(), tuple[BoundArea, ...]()
        # If a stream or a condition is invalid, a missing constraint is not reported as well.
        if all(stream is not None and stream.model is Model.PREDICTED for stream in streams.values()):
            parts = conjuncts(where and at_constraints(where, streams, self.findings))
            spatial = [condition for condition in parts if is_spatial(condition)]
            others = [condition for condition in parts if condition not in spatial]
            conditions = split_conditions(others, streams, self.findings)
            areas = SpatialBinder(streams, self.catalog, self.findings).areas(spatial)
            self.check_equalities(conditions.all_constraints, streams)
            if not conditions.refused and len(areas) == len(spatial) and (body.where is None or where is not None):
                self.check_constraints(body, names, (*conditions.all_constraints, *areas), streams)
                check_conditions_of_nearest(body, conditions.all_constraints, areas, self.findings)
        self.check_clauses(body)
        check_clauses_of_nearest(body, self.findings)
        within = self.duration("WITHIN", body.within) or 0.0
        every = self.duration("EVERY", body.every, positive=True)
        max_delay = self.duration("MAX DELAY", body.max_delay)
        if self.findings:
            return None
        operands = tuple(
            BoundOperand(label, label.lower(), known_stream(streams, label), span=span) for label, span in names
        )
        discard = None if body.buffer is None else body.discard or DISCARD
        return BoundMonitor(
            self.query.name, operands, conjuncts(where), within, body.semantics or SEMANTICS[0], every, max_delay,
            body.buffer, discard, self.threshold, self.query.span, conditions.constraints,
            conditions.of_rows, areas, conditions.junctions, body.nearest,
        )  # fmt: skip

    def check_clauses(self, body: Monitor) -> None:
        """Report an unknown option of SEMANTICS, or a BUFFER below 1."""
        if body.semantics is not None and body.semantics not in SEMANTICS:
            span, hint = body.clause_span("SEMANTICS"), f"use {listed(SEMANTICS)}"
            self.findings.unknown("SEMANTICS option", body.semantics, SEMANTICS, span, hint)
        if body.buffer is not None and body.buffer < 1:
            message = f"BUFFER must be 1 or more, not {body.buffer}"
            self.findings.add("out-of-range", message, body.clause_span("BUFFER"), "write BUFFER 325")

    def check_equalities(self, constraints: Iterable[BoundConstraint], streams: Streams) -> None:
        """Report `=` between values with an error: its probability is 0."""
        for constraint in constraints:
            uncertain = [
                value.name
                for value in constraint.values
                if error_of(known_stream(streams, value.owner or ""), value.name) > 0
            ]
            if constraint.op == "=" and uncertain:
                message = f"= has probability 0, because {shown(uncertain[0])} has an error"
                hint = "write ABS(... - ...) <= bound"
                self.findings.add("equality-of-uncertain", message, constraint.span, hint)

    def check_constraints(
        self, body: Monitor, names: Named, constraints: Sequence[BoundConstraint | BoundArea], streams: Streams
    ) -> None:
        """Report a query without a constraint, and names that no constraint connects with the others."""
        labels = list({label.lower(): label for label, _ in names}.values())
        if not constraints:
            example = f"{_example_value(labels[0], streams)} < 5"
            hint = f"add WHERE {example}" if body.where is None else f"add AND {example}"
            self.findings.add("no-condition", "MONITOR needs a constraint on a value", body.span, hint)
        elif 2 < len(labels) <= MAX_NAMES:
            reached = connected(labels[0].lower(), constraints)
            others = [label for label in labels if label.lower() not in reached]
            if others:
                first = [label for label in labels if label.lower() in reached]
                message = f"no constraint connects {listed(others)} with {listed(first)}"
                pair = f"{_example_value(first[-1], streams)} - {_example_value(others[0], streams)}"
                span = next(span for label, span in names if label == others[0])
                self.findings.add("not-connected", message, span, f"add a constraint such as ABS({pair}) <= 5")


def connected(name: str, constraints: Iterable[BoundConstraint | BoundArea]) -> set[str]:
    """The operands connected to `name`, directly or indirectly, by constraints on two values; includes `name`."""
    pairs = [{value.owner or "" for value in constraint.values} for constraint in constraints]
    reached = {name}
    while crossing := [pair for pair in pairs if pair & reached and not pair <= reached]:
        reached = reached.union(*crossing)
    return reached


def _example_value(label: str, streams: Streams) -> str:
    """A value column of an operand, for an example in a hint."""
    stream = streams.get(label.lower())
    return f"{label}.{stream.values[0].name if stream is not None and stream.values else 'v'}"
