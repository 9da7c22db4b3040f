"""A failed run as one error with a one-line message: that of the worker or of the JVM, without their tracebacks."""

from __future__ import annotations

from anabranch import errors
from anabranch.patches import spark_tracebacks


def translate(error: Exception) -> errors.AnabranchError:
    """Return an error as an `AnabranchError`: unchanged if it is one, else with the last message of its text."""
    if isinstance(error, errors.AnabranchError):
        return error
    text = str(error)
    raised = spark_tracebacks.anabranch_error(text)
    if raised:
        kind = getattr(errors, raised.class_name, errors.AnabranchError)
        # A WorkbookError is made from findings, which the text does not have.
        if (
            isinstance(kind, type)
            and issubclass(kind, errors.AnabranchError)
            and not issubclass(kind, errors.WorkbookError)
        ):
            return kind(raised.message)
    raised = spark_tracebacks.python_error(text)
    if raised:
        return errors.AnabranchError(f"{raised.class_name}: {raised.message}")
    return errors.AnabranchError(spark_tracebacks.first_line(text) or type(error).__name__)
