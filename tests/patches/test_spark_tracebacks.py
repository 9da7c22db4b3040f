"""The exception of a worker, found in the text of an exception of Spark, and what is left of other texts."""

from __future__ import annotations

import pytest

from anabranch.errors import AnabranchError, DataError
from anabranch.patches.spark_tracebacks import WorkerError, anabranch_error, first_line, python_error
from anabranch.runtime.failures import raise_own_errors, translate

#: As Spark 4.3 prints it.
TEXT = """An error occurred while calling o64.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2935)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in rows
{exception}

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:581)
"""


def test_an_exception_of_a_worker_is_raised_as_it_was_there(spark) -> None:
    def fails(batches):
        raise DataError("row 3 has no time")

    raise_own_errors(spark)
    with pytest.raises(DataError) as failed:
        spark.range(1).mapInArrow(fails, "id long").collect()
    assert str(failed.value) == "row 3 has no time"


def test_an_exception_of_anabranch_is_found_in_a_text() -> None:
    text = TEXT.format(exception="anabranch.errors.DataError: row 3 has no time")
    assert anabranch_error(text) == WorkerError("DataError", "row 3 has no time")
    error = translate(RuntimeError(text))
    assert isinstance(error, DataError)
    assert str(error) == "row 3 has no time"


def test_an_exception_of_python_is_found_with_its_class() -> None:
    error = translate(RuntimeError(TEXT.format(exception="pyarrow.lib.ArrowInvalid: not an integer")))
    assert type(error) is AnabranchError
    assert str(error) == "ArrowInvalid: not an integer"


@pytest.mark.parametrize(
    "exception", ["anabranch.errors.Finding: x", "anabranch.errors.line_starts: x", "anabranch.errors.WorkbookError: x"]
)
def test_what_cannot_be_raised_again_becomes_a_plain_error(exception: str) -> None:
    assert type(translate(RuntimeError(TEXT.format(exception=exception)))) is AnabranchError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "\n  [WORKER_FAILED] the worker has failed  \n\tat a.b.C(D.scala:1)\n",
            "[WORKER_FAILED] the worker has failed",
        ),
        ("one line", "one line"),
        ("", "RuntimeError"),
        (" \n ", "RuntimeError"),
    ],
)
def test_a_text_of_another_shape_gives_its_first_line(text: str, message: str) -> None:
    assert anabranch_error(text) is None
    assert python_error(text) is None
    assert str(translate(RuntimeError(text))) == message == (first_line(text) or "RuntimeError")


def test_an_error_of_anabranch_stays_the_same() -> None:
    error = DataError("no column t")
    assert translate(error) is error
