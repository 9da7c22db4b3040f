"""The oracle of EMIT EARLY in a SEQUENCE: asks the oracle of SEQUENCE about the rows that have arrived.

The provisional matches of a micro-batch are the matches among all rows up to it, as if the input had ended, which

- have an event that no earlier micro-batch had, and
- end at the watermark or after it, so that they are not final yet.

The watermark of a stream is its newest time minus its WATERMARK; that of the query is the smallest of its streams', and
a stream without rows has none.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from anabranch.sequence.query import BoundSequence
from tests.cases import Rows, seconds
from tests.oracles.conditions import Relations
from tests.oracles.events import NO_RELATIONS, as_written
from tests.oracles.sequence import EXPIRED, Match, matches

PROVISIONAL = "provisional"


def provisional_matches(
    query: BoundSequence, batches: Sequence[Rows], delay: int | float, relations: Relations = NO_RELATIONS
) -> list[Match]:
    """The provisional matches of the last of some micro-batches."""
    before, arrived = (_together(query, part) for part in (batches[:-1], batches))
    watermark = _watermark(arrived, delay)
    known = {(name, _identity(row)) for name, rows in before.items() for row in rows}
    return [
        {**answer, "status": PROVISIONAL}
        for answer in matches(query, arrived, relations)
        if answer["status"] != EXPIRED
        and _time(answer) >= watermark
        and any((name, _identity(row)) not in known for name, row in _events(query, answer))
    ]


def _together(query: BoundSequence, batches: Sequence[Rows]) -> Rows:
    names = [stream.name for stream in query.streams]
    return {name: [row for batch in batches for row in batch.get(name, ())] for name in names}


def _watermark(rows: Rows, delay: int | float) -> Decimal | float:
    newest = [max(map(_time, stream_rows), default=-math.inf) for stream_rows in rows.values()]
    return min(newest) if -math.inf in newest else min(newest) - Decimal(delay)


def _time(row: Mapping[str, Any]) -> Any:
    return Decimal(as_written(seconds(dict(row))))


def _events(query: BoundSequence, answer: Match) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The events of an answer, with the names of their streams; of a run, the first and the last one."""
    for component in query.components:
        event = answer.get(component.label)
        if not component.negative and event is not None:
            for row in (event["first"], event["last"]) if component.run else (event,):
                yield component.stream.name, row


def _identity(row: Mapping[str, Any]) -> Hashable:
    return tuple(sorted(row.items(), key=lambda item: item[0]))
