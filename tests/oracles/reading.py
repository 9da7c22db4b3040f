"""How rows of a source become rows of a stream, one row at a time, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from anabranch.binding.reading import Reading
from anabranch.binding.typed import Constant, Reference, Typed, walk
from tests.oracles.conditions import evaluate, holds

Row = Mapping[str, Any]


def instant_of(local: datetime, zone: str) -> datetime | None:
    """The first instant at which the clocks of a zone show a local time; None if they never do.

    Every offset that the zone has within two days of the time is tried.
    """
    around = [local.replace(tzinfo=UTC) + timedelta(hours=hours) for hours in range(-48, 49)]
    offsets = {moment.astimezone(ZoneInfo(zone)).utcoffset() for moment in around}
    instants = [local.replace(tzinfo=UTC) - offset for offset in offsets if offset is not None]
    shown = [moment for moment in instants if moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None) == local]
    return min(shown, default=None)


def rows_of(
    source: Sequence[Row], reading: Reading, relations: Mapping[str, Sequence[tuple]]
) -> tuple[list[dict[str, Any]], list[Row], int]:
    """The rows of the stream, the rows that cannot be made, and the number of rows that are excluded."""
    made, rejected, excluded = [], [], 0
    for row in source:
        bindings: dict[Any, Any] = dict(row)
        has_partners = True
        for join in reading.joins:
            names = [column.name.lower() for column in join.relation.columns]
            keys = {name: evaluate(value, bindings, relations) for name, value in join.keys}
            partners = [
                dict(zip(names, partner, strict=True))
                for partner in relations[join.relation.name]
                if all(value is not None and partner[names.index(name)] == value for name, value in keys.items())
            ]
            has_partners &= bool(partners) or join.left
            bindings[join.relation.name.lower(), 1] = partners[0] if partners else dict.fromkeys(names)
        if not has_partners or not holds(reading.where, bindings, relations):
            excluded += 1
            continue
        values = {name: evaluate(tree, bindings, relations) for name, tree in reading.columns.items()}
        if any(not _exists(values[name], tree, bindings) for name, tree in reading.columns.items()):
            rejected.append(row)
        else:
            made.append(values)
    return made, rejected, excluded


def _exists(value: Any, tree: Typed, bindings: Mapping[Any, Any]) -> bool:
    """A computed value exists, or something that it is computed from does not."""
    if isinstance(tree, Reference | Constant) or _known(value):
        return True
    leaves = [node for node in walk(tree) if isinstance(node, Reference)]
    return not all(
        _known(bindings[leaf.name] if leaf.owner is None else bindings[leaf.owner, 1][leaf.name]) for leaf in leaves
    )


def _known(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))
