"""Which rows of a stream an answer can depend on: as data, which the runtime lowers to a filter of its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows of one stream.

    Attributes
    ----------
    equal : alternatives, each with the value of some columns; None selects the rows of all keys
    earliest, latest : of the event times, in the type of the time column; None without a bound
    """

    equal: tuple[Mapping[str, object], ...] | None = None
    earliest: object = None
    latest: object = None
