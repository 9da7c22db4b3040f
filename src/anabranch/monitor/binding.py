"""MONITOR: up to four operands of PREDICTED streams, constraints, and how answers are validated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from anabranch.binding.bound import BoundOperand
from anabranch.binding.queries import OperandScope, QueryBinder, check_column_types, known
from anabranch.binding.typed import conjuncts
from anabranch.catalog import Model, Stream
from anabranch.errors import Span
from anabranch.language.findings import listed, shown
from anabranch.monitor.constraints import Conditions, sort_conditions
from anabranch.monitor.query import BoundConstraint, BoundMonitor, error_of
from anabranch.monitor.syntax import Monitor

SEMANTICS = ("EXPECTED", "MAY", "MUST")

#: The policy of a full buffer where none is written.
DISCARD = "LEAST CONTRIBUTION"

#: More names than this are beyond what a person asks of predictions, and what can be answered in time.
MAX_NAMES = 4

Named = Sequence[tuple[str, Span]]
Streams = Mapping[str, Stream | None]


class Binder(QueryBinder):
    """Binds one MONITOR."""

    kind = "MONITOR"
    models = (Model.PREDICTED,)
    answer_columns = frozenset({"valid_from", "valid_to", "boundary", "sample", "probability", "status"})

    def bind(self, query: Monitor) -> BoundMonitor | None:
        """The bound query, None where the findings say why there is none."""
        names = [(variable.name, variable.span) for variable in query.names]
        if len(names) > MAX_NAMES:
            message = f"a MONITOR asks about one to four names, and this has {len(names)}"
            self.findings.add("too-many", message, names[MAX_NAMES][1], "ask about fewer in several queries")
        streams = self.operands(names, query.operands)
        for stream in {each.name.lower(): each for each in streams.values() if each is not None}.values():
            check_column_types(stream, self.findings, declared=False)
        where = self.condition(query.where, OperandScope(self.kind, streams, self.findings))
        conditions = Conditions()
        # What is wrong with a stream or a condition is said already, and not also that there is no constraint.
        if all(each is not None and each.model is Model.PREDICTED for each in streams.values()):
            conditions = sort_conditions(conjuncts(where), streams, self.findings)
            self.check_equalities(conditions.constraints, streams)
            if not conditions.refused and (query.where is None or where is not None):
                self.check_constraints(query, names, conditions.constraints, streams)
        self.check_clauses(query)
        within = self.duration("WITHIN", query.within) or 0.0
        every = self.duration("EVERY", query.every, positive=True)
        max_delay = self.duration("MAX DELAY", query.max_delay)
        if self.findings:
            return None
        operands = tuple(BoundOperand(label, label.lower(), known(streams, label), span=span) for label, span in names)
        discard = None if query.buffer is None else query.discard or DISCARD
        return BoundMonitor(
            self.query.name, operands, conjuncts(where), within, query.semantics or SEMANTICS[0], every, max_delay,
            query.buffer, discard, self.threshold, self.query.span, conditions.constraints,
            conditions.of_rows,
        )  # fmt: skip

    def check_clauses(self, query: Monitor) -> None:
        """The clauses that take one of a few words, or a count."""
        if query.semantics is not None and query.semantics not in SEMANTICS:
            hint = f"they are {listed(SEMANTICS)}"
            self.findings.unknown("semantics", query.semantics, SEMANTICS, query.place("SEMANTICS"), hint)
        if query.buffer is not None and query.buffer < 1:
            message = f"BUFFER takes a number of predictions from 1, and has {query.buffer}"
            self.findings.add("out-of-range", message, query.place("BUFFER"), "write BUFFER 325")

    def check_equalities(self, constraints: Iterable[BoundConstraint], streams: Streams) -> None:
        """Refuse `=` between values that are known up to an error: its probability is 0."""
        for constraint in constraints:
            uncertain = [
                value.name for value in constraint.values if error_of(known(streams, value.owner or ""), value.name) > 0
            ]
            if constraint.op == "=" and uncertain:
                message = f"= between values with an error has probability 0, and {shown(uncertain[0])} has one"
                hint = "write ABS(... - ...) <= a bound"
                self.findings.add("equality-of-uncertain", message, constraint.span, hint)

    def check_constraints(
        self, query: Monitor, names: Named, constraints: Sequence[BoundConstraint], streams: Streams
    ) -> None:
        """There is a constraint, and where there are three names or more, constraints lead from each to all others."""
        labels = list({label.lower(): label for label, _ in names}.values())
        if not constraints:
            example = f"{_value(labels[0], streams)} < 5"
            hint = f"add WHERE {example}" if query.where is None else f"add AND {example}"
            self.findings.add("no-condition", "a MONITOR needs a constraint on a value", query.span, hint)
        elif 2 < len(labels) <= MAX_NAMES:
            together = connected(labels[0].lower(), constraints)
            apart = [label for label in labels if label.lower() not in together]
            if apart:
                others = [label for label in labels if label.lower() in together]
                message = f"no constraint compares a value of {listed(apart)} with one of {listed(others)}"
                pair = f"{_value(others[-1], streams)} - {_value(apart[0], streams)}"
                place = next(span for label, span in names if label == apart[0])
                self.findings.add("not-connected", message, place, f"add a constraint such as ABS({pair}) <= 5")


def connected(name: str, constraints: Iterable[BoundConstraint]) -> set[str]:
    """The operand, and those that constraints on two values lead to from it."""
    pairs = [{value.owner or "" for value in constraint.values} for constraint in constraints]
    found = {name}
    while more := [pair for pair in pairs if pair & found and not pair <= found]:
        found = found.union(*more)
    return found


def _value(label: str, streams: Streams) -> str:
    """A value of an operand, as an example."""
    stream = streams.get(label.lower())
    return f"{label}.{stream.values[0].name if stream is not None and stream.values else 'v'}"
