"""The oracle of EMIT EARLY in a PATTERN: enumerates the worlds of the rows that have arrived.

The provisional answers of a micro-batch are the answers over all rows up to it, as if the input had ended, about
instants at the watermark or after it. The watermark of a stream is its newest time minus its WATERMARK; that of the
query is the smallest of its streams', and a stream without rows has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from tests.cases import Rows

#: The answers over some rows, by t, or by (t, value of each grouping variable).
Answers = Callable[[Rows], Mapping[Hashable, float]]


def provisional_answers(
    answers: Answers, streams: Sequence[str], batches: Sequence[Rows], delay: int | float
) -> dict[tuple[Any, ...], float]:
    """The provisional answers of the last of some micro-batches, given how answers are found."""
    arrived = {name: [row for batch in batches for row in batch.get(name, ())] for name in streams}
    newest = [max((row["t"] for row in rows), default=-math.inf) for rows in arrived.values()]
    watermark = min(newest) - delay
    found = {key if isinstance(key, tuple) else (key,): p for key, p in answers(arrived).items()}
    return {key: p for key, p in found.items() if key[0] >= watermark}
