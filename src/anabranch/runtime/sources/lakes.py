"""Tables of Delta Lake and Iceberg (`FORMAT delta`, `FORMAT iceberg`).

Spark reads them where it has their connector. Where it has not, the packages `deltalake` and `pyiceberg` read the
columns that are needed, for a batch run, into the memory of this process.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from anabranch.errors import DataError, Finding, WorkbookError
from anabranch.language import nodes
from anabranch.patches.spark_tracebacks import first_line
from anabranch.runtime.sources.files import is_local, missing_file, reason_of, resolve

#: The package of Maven that each format needs in Spark, and that of Python without it.
_PACKAGES = {
    "delta": ("io.delta:delta-spark_2.13", "deltalake"),
    "iceberg": ("org.apache.iceberg:iceberg-spark-runtime-4.0_2.13", "pyiceberg"),
}

#: Spark's error for a format that it does not have.
_NOT_FOUND = "DATA_SOURCE_NOT_FOUND"

_VERSION = re.compile(r"(\d+)[^/]*\.metadata\.json$")


def is_lake(source: nodes.Source | None) -> bool:
    """Whether a source is a table of a lake."""
    return isinstance(source, nodes.FileSource) and source.format in _PACKAGES


def open_lake(
    spark: SparkSession, source: nodes.FileSource, base: str, live: bool, needed: Collection[str]
) -> DataFrame:
    """The rows of a table of a lake; `needed` are the columns to read, in lower case."""
    path, name = resolve(source.path, base), str(source.format)
    missing = missing_file(source, base)
    if missing is not None:
        raise WorkbookError([missing])
    options = {option.name: str(option.value) for option in source.options}
    try:
        return (spark.readStream if live else spark.read).format(name).options(**options).load(path)
    except (PySparkException, Py4JJavaError) as error:
        if _NOT_FOUND not in str(error):
            raise _refused(source, reason_of(error), "check the path and the options") from None
    in_spark, in_python = _PACKAGES[name]
    if live:
        message = f"Spark has no connector for {name}, which a stream needs"
        raise WorkbookError([Finding("source", message, f"add --packages {in_spark}:VERSION", source.span)])
    try:
        table = _READERS[name](path, {key.lower(): value for key, value in options.items()}, needed)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != in_python:
            raise
        hint = f"install the package with: pip install 'anabranch[lake]', or add --packages {in_spark}:VERSION"
        raise _refused(source, f"neither Spark nor Python has a reader of {name}", hint) from None
    except Exception as error:  # each package has errors of its own
        raise _refused(
            source, first_line(str(error)) or type(error).__name__, "check the path and the options"
        ) from None
    return spark.createDataFrame(table)


def _refused(source: nodes.FileSource, reason: str, hint: str) -> WorkbookError:
    return WorkbookError([Finding("source", f"'{source.path}' cannot be read: {reason}", hint, source.span)])


def _read_delta(path: str, options: Mapping[str, str], needed: Collection[str]) -> pa.Table:
    from deltalake import DeltaTable

    version = options.get("versionasof")
    table = DeltaTable(path, version=None if version is None else int(version))
    if "timestampasof" in options:
        table.load_as_version(options["timestampasof"])
    dataset = table.to_pyarrow_dataset()
    return _plain(dataset.to_table(columns=_chosen(dataset.schema.names, needed)))


def _read_iceberg(path: str, options: Mapping[str, str], needed: Collection[str]) -> pa.Table:
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(_newest_metadata(path))
    names = _chosen([field.name for field in table.schema().fields], needed)
    snapshot = options.get("snapshot-id")
    return _plain(
        table.scan(selected_fields=tuple(names), snapshot_id=None if snapshot is None else int(snapshot)).to_arrow()
    )


_READERS: dict[str, Any] = {"delta": _read_delta, "iceberg": _read_iceberg}


def _chosen(names: Collection[str], needed: Collection[str]) -> list[str]:
    """The columns to read; all if one is missing, so that the message about it lists them."""
    chosen = [name for name in names if name.lower() in needed]
    return chosen if len(chosen) == len(needed) else list(names)


def _newest_metadata(path: str) -> str:
    """The newest metadata file of a table in a folder; a path of a metadata file is returned as it is."""
    if path.endswith(".metadata.json"):
        return path
    if not is_local(path):
        raise DataError("write the path of a metadata file, .../metadata/NAME.metadata.json")
    found = glob.glob(os.path.join(glob.escape(path), "metadata", "*.metadata.json"))
    versions = {file: match for file in found if (match := _VERSION.search(os.path.basename(file)))}
    if not versions:
        raise DataError("the folder has no Iceberg metadata")
    return max(versions, key=lambda file: (int(versions[file][1]), file))


def _plain(table: pa.Table) -> pa.Table:
    """The table with the types that Spark takes."""
    plain = {pa.large_string(): pa.string(), pa.string_view(): pa.string(), pa.large_binary(): pa.binary()}
    return table.cast(pa.schema([field.with_type(plain.get(field.type, field.type)) for field in table.schema]))
