"""Writes bound conditions and counts as text, for plans and messages."""

from __future__ import annotations

from anabranch.binding.typed import Constant, Member, Reference, Typed
from anabranch.language.types import Type


def condition_text(tree: Typed | None) -> str:
    """A bound condition as a user would write it."""
    if tree is None:
        return ""
    if isinstance(tree, Constant):
        quoted = tree.type in (Type.STRING, Type.BINARY)
        return f"'{tree.value}'" if quoted else "NULL" if tree.value is None else f"{tree.value}"
    if isinstance(tree, Reference):
        name = "" if tree.name == "*" else tree.name
        default = "" if tree.default is None else f"[{condition_text(tree.default)}]"
        return (".".join(filter(None, (tree.owner, name))) or "it") + default
    parts = [condition_text(part) for part in tree.arguments]
    if isinstance(tree, Member):
        return f"{tree.relation.name}({', '.join(parts)})"
    if tree.op in ("and", "or"):
        joined = f" {tree.op.upper()} ".join(parts)
        return joined if tree.op == "and" else f"({joined})"
    if tree.op == "not":
        return f"NOT ({parts[0]})"
    if tree.op == "is_null":
        return f"{parts[0]} IS NULL"
    if tree.op == "negate":
        return f"-{parts[0]}"
    if tree.op in ("abs", "distance", "span", "within", "intersects", "touches"):
        return f"{tree.op.upper()}({', '.join(parts)})"
    if tree.op in ("gap", "depth", "edge"):
        what = {"gap": "", "depth": "the outside of ", "edge": "the edge of "}[tree.op]
        return f"DISTANCE({parts[0]}, {what}{parts[1]})"
    return f" {tree.op} ".join(parts)


def count_of(number: float, what: str) -> str:
    """`1 column`, `2 columns`, `1.5 hours`."""
    return f"{number:.12g} {what}{'' if number == 1 else 's'}"


def duration_text(number: float, time: Type) -> str:
    """A duration between times of a type: in a suitable unit for TIMESTAMP, else the number."""
    if time is not Type.TIMESTAMP:
        return f"{number:.12g}"
    for seconds, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if abs(number) >= seconds and number % (seconds / 4) == 0:
            return count_of(number / seconds, unit)
    return count_of(number, "second")
