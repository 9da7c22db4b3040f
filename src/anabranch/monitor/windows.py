"""Windows of single constraints: `ABS(a.x - b.x) <= 5 WITHIN 3`.

Behind brackets, WITHIN is the window of all constraints between two names in them that have none of their own, as the
clause WITHIN is that of all constraints of the query. The window says which instants are compared. So NOT does not
negate it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from anabranch.binding.typed import Constant, Operation, Reference, Typed, walk
from anabranch.catalog import Stream
from anabranch.language.findings import Findings
from anabranch.monitor.constraints import is_value
from anabranch.monitor.spatial import is_spatial


def at_constraints(
    condition: Typed, streams: Mapping[str, Stream | None], findings: Findings, window: Constant | None = None
) -> Typed:
    """A condition whose windows are moved to the constraints that they are about; reports those that are about none."""
    if isinstance(condition, Operation) and condition.op == "windowed":
        operand, own = condition.arguments
        if not any(_is_between_names(part, streams) for part in walk(operand)):
            message = "WITHIN behind a condition needs a constraint that compares predicted values of two names"
            findings.add("no-window", message, condition.span, "write, for example, ABS(a.x - b.x) <= 5 WITHIN 3")
            return operand
        return at_constraints(operand, streams, findings, own if isinstance(own, Constant) else window)
    if isinstance(condition, Operation) and condition.op in ("and", "or", "not"):
        parts = tuple(at_constraints(part, streams, findings, window) for part in condition.arguments)
        return replace(condition, arguments=_spliced(condition.op, parts))
    if window is None or not _is_between_names(condition, streams):
        return condition
    return Operation("windowed", (condition, window), condition.type, condition.span)


def _spliced(op: str, parts: tuple[Typed, ...]) -> tuple[Typed, ...]:
    """The parts, with those of the same operator spliced in: a window behind brackets had kept them apart."""
    if op == "not":
        return parts
    groups = (part.arguments if isinstance(part, Operation) and part.op == op else (part,) for part in parts)
    return tuple(part for group in groups for part in group)


def _is_between_names(condition: Typed, streams: Mapping[str, Stream | None]) -> bool:
    """Whether a condition that is not joined compares predicted values, or locations, of two names."""
    if not isinstance(condition, Operation) or condition.op in ("and", "or", "not", "windowed"):
        return False
    nodes = [node for node in walk(condition) if isinstance(node, Reference)]
    values = {node.owner for node in nodes if is_value(node, streams) or (is_spatial(condition) and node.name == "*")}
    return len(values) == 2
