"""Event queries over uncertain streams, on Spark: every answer carries the probability that it is true."""

from typing import TYPE_CHECKING, Any

from anabranch.errors import (
    AnabranchError,
    DataError,
    InputWarning,
    NotYetBuilt,
    StateError,
    TooLarge,
    TooManyAnswers,
    WorkbookError,
)

if TYPE_CHECKING:
    from anabranch.plotting import plot, to_geojson
    from anabranch.session import Session, ask

__all__ = [
    "AnabranchError",
    "DataError",
    "InputWarning",
    "NotYetBuilt",
    "Session",
    "StateError",
    "TooLarge",
    "TooManyAnswers",
    "WorkbookError",
    "ask",
    "plot",
    "to_geojson",
]


def __getattr__(name: str) -> Any:
    # Spark is loaded by the first use of a session: checking a workbook, or drawing a chart, does without.
    if name in ("Session", "ask"):
        from anabranch import session

        return getattr(session, name)
    if name in ("plot", "to_geojson"):
        from anabranch import plotting

        return getattr(plotting, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
