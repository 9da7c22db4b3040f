"""Event queries over uncertain streams, on Spark: every answer carries the probability that it is true."""

from importlib import import_module
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


def load_ipython_extension(shell: Any) -> None:
    """Add the magics `%anabranch` and `%%anabranch` to IPython; `%load_ext anabranch` calls it."""
    # By name, because the notebook is above all that imports this package.
    import_module("anabranch.notebook.magics").load(shell)


def __getattr__(name: str) -> Any:
    # Spark is loaded by the first use of a session: checking a workbook, or drawing a chart, does without.
    if name in ("Session", "ask"):
        from anabranch import session

        return getattr(session, name)
    if name in ("plot", "to_geojson"):
        from anabranch import plotting

        return getattr(plotting, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
