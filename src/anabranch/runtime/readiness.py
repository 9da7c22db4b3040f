"""Checks a Spark session before its first run: whether its workers can run queries, and whether a setting is costly.

Nothing is changed. A session that `make_session` has started on this machine needs no check: it was started with the
Python of this process.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any
from weakref import WeakSet

import pyarrow as pa
from pyspark.sql import SparkSession

from anabranch.errors import CostlySetting, WorkerError
from anabranch.runtime.failures import HOW_TO_INSTALL, raise_own_errors, translate
from anabranch.runtime.spark import DAEMON
from anabranch.runtime.spark_mode import parallelism

#: What the kernels and operators import on a worker.
_NEEDED = ("numba", "numpy", "pandas", "pyarrow", "scipy", "shapely")

#: With fewer rows per Arrow batch, most of the time is spent between the batches.
_FEWEST_ROWS_PER_BATCH = 1000

_ready: WeakSet[Any] = WeakSet()


def make_ready(spark: SparkSession) -> None:
    """Check a session once: raise a `WorkerError`, or warn of settings that are costly."""
    if spark in _ready:
        return
    raise_own_errors(spark)
    if not _is_own(spark):
        uncompiled = _check_workers(spark)
        advice = [*_kernel_advice(spark, uncompiled), *_advice(spark)]
        if advice:
            warnings.warn(f"queries are slow on this Spark session: {'; '.join(advice)}", CostlySetting, stacklevel=2)
    _ready.add(spark)


def _is_own(spark: SparkSession) -> bool:
    """Whether `make_session` has started a session, with workers on this machine."""
    daemon = spark.conf.get("spark.python.daemon.module", None)
    return daemon == DAEMON and str(spark.conf.get("spark.master", "")).startswith("local")


def _check_workers(spark: SparkSession) -> str:
    """Run one task that imports the package on a worker; returns the kernels that are not compiled there."""
    schema = "version string, missing string, uncompiled string"
    try:
        (worker,) = spark.range(1).coalesce(1).mapInArrow(_describe_worker, schema).collect()
    except WorkerError:
        raise
    except Exception as error:
        reason = str(translate(error))
        raise WorkerError(f"Spark's Python workers cannot run queries: {reason}; {HOW_TO_INSTALL}") from error
    if worker["missing"]:
        raise WorkerError(f"Spark's Python workers cannot import {worker['missing']}; {HOW_TO_INSTALL}")
    here = _version()
    if here and worker["version"] and worker["version"] != here:
        raise WorkerError(
            f"Spark's Python workers have anabranch {worker['version']}, this process has {here}; install the same"
        )
    uncompiled: str = worker["uncompiled"]
    return uncompiled


def _describe_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On a worker: the version of the package, needed packages that are missing, and kernels that are not compiled."""
    for batch in batches:
        missing = ", ".join(name for name in _NEEDED if find_spec(name) is None)
        values = [_version(), missing, "" if missing else _uncompiled()]
        yield pa.record_batch([[value] * batch.num_rows for value in values], ["version", "missing", "uncompiled"])


def _uncompiled() -> str:
    """The families of kernels that this machine has not compiled."""
    # A worker without Numba says that it is missing.
    from anabranch.compiled.build import all_families, missing_families

    return ", ".join(missing_families(all_families()))


def _version() -> str:
    """The version of the package; empty where it was not installed, as with `--py-files`."""
    try:
        return version("anabranch")
    except PackageNotFoundError:
        return ""


def _kernel_advice(spark: SparkSession, uncompiled: str) -> Iterator[str]:
    """What to do about kernels that workers have to compile: nothing else says what they do in the meantime.

    On this machine, the driver compiles them and says so.
    """
    if uncompiled and not str(spark.conf.get("spark.master", "")).startswith("local"):
        yield (
            f"the workers have no compiled kernels of {uncompiled}, so the first queries compile them, on each "
            "machine, for up to a few minutes: run `python -m anabranch.compiled.build` there, or use `anabranch pack`"
        )


def _advice(spark: SparkSession) -> Iterator[str]:
    """Each setting that is costly, and what to do about it."""
    if spark.conf.get("spark.python.worker.reuse", "true") == "false":
        yield "spark.python.worker.reuse is false, so every task starts a Python process: set it to true"
    rows = int(spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch", "10000") or 0)
    if 0 < rows < _FEWEST_ROWS_PER_BATCH:
        yield f"spark.sql.execution.arrow.maxRecordsPerBatch is {rows}: use Spark's default of 10000"
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 0)
    if spark.conf.get("spark.sql.adaptive.enabled", "true") == "false" and partitions > 8 * parallelism(spark):
        yield (
            f"spark.sql.shuffle.partitions is {partitions} and spark.sql.adaptive.enabled is false, so most tasks are "
            "empty: set it to the number of cores"
        )
