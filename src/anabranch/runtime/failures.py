"""A failed run as one error with a one-line message: that of the worker or of the JVM, without their tracebacks."""

from __future__ import annotations

from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from anabranch import errors
from anabranch.patches import spark_exceptions, spark_tracebacks
from anabranch.runtime.spark_mode import exception_module

#: What to do where the Python of the workers lacks a package.
HOW_TO_INSTALL = (
    "set PYSPARK_PYTHON to a Python that has anabranch before Spark starts, "
    "or send an environment with spark.archives (docs/spark.md)"
)


#: What to do after an error of the system, by its text, which is the same in Java and in Python.
_REMEDIES = {
    "No space left on device": "free some space, then start again",
    "Disk quota exceeded": "free some space, then start again",
    "Read-only file system": "make the folder writable, or use another one",
    "Permission denied": "check the permissions of the file or folder",
}

#: Spark's error for files of its state store that cannot be read.
_STATE_STORE = "CANNOT_LOAD_STATE_STORE"


def translate(error: Exception) -> errors.AnabranchError:
    """Return an error as an `AnabranchError`: unchanged if it is one, else with the last message of its text."""
    if isinstance(error, errors.AnabranchError):
        return error
    text = str(error)
    if isinstance(error, (ConnectionRefusedError, ConnectionResetError, Py4JNetworkError)):
        return errors.SparkEnded(
            "the Java process of Spark has ended; if the machine ran out of memory, the system has killed it"
        )
    known = _of_worker(text)
    if known is not None:
        return known
    if _STATE_STORE in text:
        return errors.StateError("the saved state of Spark is damaged; start with a new checkpoint folder")
    raised = spark_tracebacks.python_error(text)
    message = f"{raised.class_name}: {raised.message}" if raised else spark_tracebacks.first_line(text)
    remedies = [f"; {remedy}" for reason, remedy in _REMEDIES.items() if reason in text]
    return errors.AnabranchError((message or type(error).__name__) + "".join(remedies[:1]))


def raise_own_errors(spark: SparkSession) -> None:
    """Let the actions of a session raise errors of Anabranch on a worker as they were raised there."""
    spark_exceptions.install(exception_module(spark), lambda error: _of_worker(str(error)))


def _of_worker(text: str) -> errors.AnabranchError | None:
    """The error of Anabranch that a text of Spark is about; None where it is about another."""
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
    missing = spark_tracebacks.missing_module(text)
    if missing is not None and missing.partition(".")[0] == "anabranch":
        return errors.WorkerError(f"Spark's Python workers cannot import {missing}; {HOW_TO_INSTALL}")
    return None
