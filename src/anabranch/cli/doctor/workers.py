"""The check that starts Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib import metadata
from typing import TYPE_CHECKING

from anabranch.cli.doctor.result import Result, fails, ok
from anabranch.cli.messages import say

if TYPE_CHECKING:
    import pyarrow as pa


def workers(master: str | None, archive: str | None = None) -> Result:
    """Start Spark, and let a worker import the package."""
    from anabranch.cli.common import spark_settings
    from anabranch.runtime.failures import translate
    from anabranch.runtime.spark import make_session

    began = time.monotonic()
    try:
        spark = make_session(master, settings=spark_settings(None, None, archive), report=say)
        imported = spark.range(1).mapInArrow(import_package, "version string, folder string, python string").toArrow()
    except Exception as error:
        advice = "see docs/cluster.md: the package must be on every executor"
        return fails(str(translate(error)), advice)
    (row,) = imported.to_pylist()
    text = f"Spark {spark.version}; a worker has anabranch {row['version']} ({row['folder']}) on {row['python']}"
    if row["version"] != _version():
        return fails(text, f"install anabranch {_version()} on the workers, as on the driver")
    return ok(f"{text}; {time.monotonic() - began:.1f} s")


def import_package(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On a worker: what it imports."""
    import sys

    import pyarrow as pa

    import anabranch

    for batch in batches:
        if batch.num_rows:
            found = [_version(), anabranch.__path__[0], sys.executable]
            yield pa.record_batch([[text] for text in found], names=["version", "folder", "python"])


def _version() -> str:
    try:
        return metadata.version("anabranch")
    except metadata.PackageNotFoundError:
        return "of unknown version"
