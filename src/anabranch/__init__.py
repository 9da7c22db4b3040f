"""Event queries over uncertain streams, on Spark: every answer carries the probability that it is true."""

from anabranch.errors import AnabranchError, DataError, NotYetBuilt, StateError, TooLarge, WorkbookError
from anabranch.session import Session

__all__ = ["AnabranchError", "DataError", "NotYetBuilt", "Session", "StateError", "TooLarge", "WorkbookError"]
