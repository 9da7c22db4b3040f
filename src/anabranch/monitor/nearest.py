"""What `NEAREST k` requires of the rest of a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from anabranch.errors import Span
from anabranch.language.findings import Findings
from anabranch.language.temporal import amount_of
from anabranch.monitor.query import BoundArea, BoundConstraint
from anabranch.monitor.syntax import Monitor

#: A code, a message, a location and a hint.
_Objection = tuple[str, str, Span, str]


def check_clauses_of_nearest(body: Monitor, findings: Findings) -> None:
    """Report what the clauses of a query must change for NEAREST."""
    for objection in _objections_to_clauses(body):
        findings.add(*objection)


def check_conditions_of_nearest(
    body: Monitor, constraints: Sequence[BoundConstraint], areas: Sequence[BoundArea], findings: Findings
) -> None:
    """Report what the conditions of a query must change for NEAREST."""
    for objection in _objections_to_conditions(body, constraints, areas):
        findings.add(*objection)


def _objections_to_clauses(body: Monitor) -> Iterator[_Objection]:
    if body.nearest is None:
        return
    here = body.clause_span("NEAREST")
    if body.nearest < 1:
        yield "out-of-range", f"NEAREST must be 1 or more, not {body.nearest}", here, "write NEAREST 3"
    if len(body.names) != 2:
        message = f"NEAREST needs two names, but this has {len(body.names)}"
        yield "not-supported", message, here, "write MONITOR a, b: for each a, the nearest b"
    if body.semantics not in (None, "EXPECTED"):
        message = f"NEAREST takes the predictions as true, so it cannot be combined with SEMANTICS {body.semantics}"
        yield "not-supported", message, body.clause_span("SEMANTICS"), "remove SEMANTICS, or use EXPECTED"
    if body.within is not None and amount_of(body.within) > 0:
        message = "NEAREST compares distances at one instant, so it cannot be combined with WITHIN"
        yield "not-supported", message, body.clause_span("WITHIN"), "remove WITHIN"
    if body.buffer is not None:
        message = "BUFFER discards predictions, which would change what is NEAREST"
        yield "not-supported", message, body.clause_span("BUFFER"), "remove BUFFER or NEAREST"


def _objections_to_conditions(
    body: Monitor, constraints: Sequence[BoundConstraint], areas: Sequence[BoundArea]
) -> Iterator[_Objection]:
    if body.nearest is None or len(body.names) != 2:
        return
    if not any(area.other is not None and area.op in ("<", "<=") for area in areas):
        one, other = (variable.name for variable in body.names)
        bound = f"DISTANCE({one}, {other}) <= 5000"
        message = f"NEAREST needs a bound on the distance, such as {bound}"
        hint = f"add WHERE {bound}" if body.where is None else f"add AND {bound}"
        yield "no-distance", message, body.clause_span("NEAREST"), hint
    for part in chain[BoundConstraint | BoundArea](constraints, areas):
        if part.window:
            message = "NEAREST compares distances at one instant, so no condition can have a window"
            yield "not-supported", message, part.span, "remove WITHIN"
        if part.op == "=":
            message = "NEAREST needs conditions that hold for longer than an instant, and = rarely does"
            yield "not-supported", message, part.span, "write ABS(... - ...) <= bound"
