"""MONITOR: one or two operands of PREDICTED streams, constraints, and how answers are validated."""

from __future__ import annotations

from anabranch.catalog import Stream
from anabranch.language import nodes
from anabranch.language.bound import BoundMonitor, BoundOperand
from anabranch.language.findings import listed, shown
from anabranch.language.questions import OperandScope, QuestionBinder, known
from anabranch.language.typed import Operation, Typed, conjuncts, references, walk

SEMANTICS = ("EXPECTED", "MAY", "MUST")


class MonitorBinder(QuestionBinder):
    """Binds one MONITOR."""

    kind = "MONITOR"

    def bind(self, question: nodes.Monitor) -> BoundMonitor | None:
        """The bound question, None where the findings say why there is none."""
        names = [(variable.name, variable.span) for variable in question.names]
        if len(names) > 2:
            message = f"a MONITOR asks about one or two names, and this has {len(names)}"
            self.findings.add("too-many-names", message, names[2][1], "ask about the pairs in several queries")
        streams = self.operands(names, question.operands)
        where = self.condition(question.where, OperandScope(self.kind, streams, self.findings))
        if question.where is None:
            self.findings.add("no-condition", "a MONITOR needs a constraint", question.span, "add WHERE")
        self.check_equalities(where, streams)
        self.check_clauses(question)
        within = self.duration("WITHIN", question.within) or 0.0
        every = self.duration("EVERY", question.every, positive=True)
        max_delay = self.duration("MAX DELAY", question.max_delay)
        if self.findings:
            return None
        operands = tuple(BoundOperand(label, label.lower(), known(streams, label), span=span) for label, span in names)
        return BoundMonitor(
            self.query.name, operands, conjuncts(where), within, question.semantics or SEMANTICS[0], every, max_delay,
            question.buffer, question.discard, self.threshold, self.query.span,
        )  # fmt: skip

    def check_clauses(self, question: nodes.Monitor) -> None:
        """The clauses that take one of a few words, or a count."""
        if question.semantics is not None and question.semantics not in SEMANTICS:
            hint = f"they are {listed(SEMANTICS)}"
            self.findings.unknown("semantics", question.semantics, SEMANTICS, question.place("SEMANTICS"), hint)
        if question.buffer is not None and question.buffer < 1:
            message = f"BUFFER takes a number of predictions from 1, and has {question.buffer}"
            self.findings.add("out-of-range", message, question.place("BUFFER"), "write BUFFER 325")

    def check_equalities(self, where: Typed | None, streams: dict[str, Stream | None]) -> None:
        """Refuse `=` between values that are known up to an error: its probability is 0."""
        for node in walk(where) if where is not None else ():
            if isinstance(node, Operation) and node.op == "=":
                for owner, column in references(node):
                    stream = streams.get(owner or "")
                    if stream is not None and error_of(stream, column) > 0:
                        message = f"= between values with an error has probability 0, and {shown(column)} has one"
                        self.findings.add(
                            "equality-of-uncertain", message, node.span, "write ABS(... - ...) <= a bound"
                        )


def error_of(stream: Stream, column: str) -> float:
    """The ERROR of a value column of a PREDICTED stream; 0 for any other column."""
    if column.lower() not in {value.name.lower() for value in stream.values}:
        return 0.0
    amounts = {(bound.column or column).lower(): float(bound.amount) for bound in stream.declaration.error}
    return amounts.get(column.lower(), 0.0)
