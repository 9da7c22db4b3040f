"""File sources: format by file extension, paths relative to the workbook, types inferred or declared.

CSV and JSON cells that do not fit their declared type do not become NULL silently: such a row has its text in
`CORRUPT`, and is quarantined.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from urllib.parse import urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, PySparkTypeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types
from pyspark.sql.pandas.types import from_arrow_type

from anabranch.binding.file_options import FORMATS, check_options, extension_format
from anabranch.binding.reading import source_name
from anabranch.catalog import Column, Relation, Stream
from anabranch.errors import Finding, WorkbookError
from anabranch.language import nodes
from anabranch.language.findings import Findings, listed
from anabranch.language.types import Type
from anabranch.runtime.sources.plain_csv import plain_csv_schema
from anabranch.runtime.sources.plain_json import plain_json_schema
from anabranch.runtime.sources.schema import CORRUPT, SPARK_TYPES, types_of

#: Spark's error for a Parquet column of a type that it does not have.
_UNSUPPORTED_TYPE = "PARQUET_TYPE_ILLEGAL"

#: Spark's error for columns that it infers from a line of JSON that has a key twice.
_REPEATED_KEY = "COLUMN_ALREADY_EXISTS"

#: The options of every reader of a format.
DEFAULT_OPTIONS: dict[str, dict[str, str]] = {
    # Without enforceSchema=false, a file with another column order would be read by position. Spark's default for a
    # quote within quotes is `\"`; pandas, databases and spreadsheets double it.
    "csv": {
        "header": "true", "enforceSchema": "false", "escape": '"', "timeZone": "UTC",
        "columnNameOfCorruptRecord": CORRUPT,
    },
    "json": {"timeZone": "UTC", "columnNameOfCorruptRecord": CORRUPT},
    "parquet": {},
}  # fmt: skip

#: By default, Spark ignores new files that are a week older than the newest one that it has read.
_EVERY_FILE = {"maxFileAge": "36500d"}


def _default_options(kind: str, stated: Mapping[str, str]) -> dict[str, str]:
    """The options of a reader that are not stated."""
    options = {name.lower(): value for name, value in stated.items()}
    encoding = options.get("encoding", options.get("charset", "")).lower()
    if kind == "csv" and encoding.startswith(("utf-16", "utf-32")) and "multiline" not in options:
        # Spark finds the lines of such a file only if one task reads all of it.
        return DEFAULT_OPTIONS[kind] | {"multiLine": "true"}
    return DEFAULT_OPTIONS[kind]


def resolve(path: str, base: str) -> str:
    """The absolute path of a path in a workbook; URLs such as `s3a://` do not change."""
    if urlparse(path).scheme and not path.startswith("file:"):
        return path
    plain = path.removeprefix("file://")
    return os.path.normpath(os.path.join(base, plain))


def format_of(path: str) -> str | None:
    """The format, by the extension of a path or of the files in a folder; extensions such as `.gz` are skipped."""
    stated = extension_format(path)
    if stated is not None:
        return stated
    if os.path.isdir(path):
        found = [os.path.join(path, name) for name in os.listdir(path)]
    else:
        found = [match for match in glob.glob(path) if match != path]
    formats = {format_of(file) for file in found if not _hidden(os.path.basename(file))} - {None}
    return formats.pop() if len(formats) == 1 else None


def is_local(path: str) -> bool:
    """Whether the path is on a file system of this process and the workers."""
    return not urlparse(path).scheme


def missing_file(source: nodes.FileSource, base: str) -> Finding | None:
    """A finding if a local file does not exist; the path is relative to `base`."""
    path = resolve(source.path, base)
    if not is_local(path) or glob.glob(path):
        return None
    return Finding("source", f"there is no file '{source.path}'", f"looked for {path}", source.span)


class FileInput:
    """The files of one declaration."""

    def __init__(self, spark: SparkSession, entry: Stream | Relation, source: nodes.FileSource, base: str) -> None:
        self._spark = spark
        self._entry = entry
        self._source = source
        self.path = resolve(source.path, base)
        missing = missing_file(source, base)
        if missing is not None:
            raise WorkbookError([missing])
        kind = source.format or format_of(self.path)
        if kind is None:
            hint = f"use .parquet, .csv, .json or .jsonl, or write FORMAT {listed(FORMATS)} behind the path"
            raise self._wrong(f"the format of '{source.path}' is unknown", hint)
        self.format = kind
        # The format of a folder is that of its files, which a check without data does not see.
        findings = Findings()
        check_options(source.options, kind, findings)
        if findings:
            raise WorkbookError(findings.items)
        self.options = _default_options(kind, self._stated_options()) | self._stated_options()

    @property
    def is_one_file(self) -> bool:
        """Whether the path is that of a file, and not of a folder or a pattern, to which files may be added."""
        return is_local(self.path) and os.path.isfile(self.path)

    def schema(self, columns: Sequence[Column], optional: Sequence[Column] = ()) -> spark_types.StructType:
        """The columns of the files: from the Parquet schema, else inferred, with declared types taking precedence.

        `columns` are those that the entry needs, and `optional` those that it also uses if there are any. A declared
        type, or one that the model requires, such as that of a probability, takes precedence over the inferred type.
        """
        plain = self._plain_schema()
        if plain is not None:
            return plain
        found = self._inferred_schema(columns)
        if self.format == "parquet":
            return found
        known = types_of(found)
        stated = {column.name.lower(): self._as_written(column) for column in (*columns, *optional)}
        fields = []
        for field in found.fields:
            column = stated.get(field.name.lower())
            kind = None if column is None else column.source_type or column.type
            if column is not None and known.get(field.name.lower()) != kind and self._has_fixed_type(column):
                field = spark_types.StructField(field.name, SPARK_TYPES[column.source_type or column.type])
            elif isinstance(field.dataType, spark_types.IntegerType):
                # Later rows of a stream may have larger numbers.
                field = spark_types.StructField(field.name, spark_types.LongType())
            fields.append(field)
        if not any(field.name == CORRUPT for field in fields):
            fields.append(spark_types.StructField(CORRUPT, spark_types.StringType()))
        return spark_types.StructType(fields)

    def _inferred_schema(self, columns: Sequence[Column]) -> spark_types.StructType:
        """The columns that Spark finds, or would find."""
        fixed = all(map(self._has_fixed_type, columns))
        found = self._schema_of_small_files(not fixed) if is_local(self.path) else None
        if found is not None:
            return found
        reader = self._spark.read.format(self.format).options(**self.options)
        if self.format != "parquet":
            # A damaged file is quarantined, or named, when its rows are read.
            reader = reader.option("ignoreCorruptFiles", "true")
        if self.format == "csv" and not fixed:
            # Inference reads the file once; if every type is known, the header is enough.
            reader = reader.option("inferSchema", "true")
        try:
            return reader.load(self.path).schema
        except (PySparkException, Py4JJavaError) as error:
            if self.format == "parquet" and _UNSUPPORTED_TYPE in str(error) and is_local(self.path):
                return _spark_schema(pq.read_schema(self.paths()[0]), strict=False)
            if self.format == "json" and _REPEATED_KEY in str(error) and fixed:
                fields = ((column.name, SPARK_TYPES[column.source_type or column.type]) for column in columns)
                return spark_types.StructType([spark_types.StructField(*field) for field in fields])
            reason, fix = f"cannot be read: {reason_of(error)}", "check the file"
            if self.format == "json" and _REPEATED_KEY in str(error):
                reason = "has a key twice, perhaps in upper and lower case, so types cannot be inferred"
                fix = "state the types of all columns, or correct the file"
            raise self._wrong(f"'{self._source.path}' {reason}", fix) from error

    def _schema_of_small_files(self, infer: bool) -> spark_types.StructType | None:
        """The columns of a few lines of text, for which Spark would start a job; None if Spark must read them."""
        options = self._stated_options()
        if self.format == "csv":
            return plain_csv_schema(self.paths(), options, infer, self._inferred_times())
        return plain_json_schema(self.paths()) if self.format == "json" and not options else None

    def _stated_options(self) -> dict[str, str]:
        """The options of the declaration."""
        return {option.name: str(option.value) for option in self._source.options}

    def _inferred_times(self) -> spark_types.DataType | None:
        """The type that Spark infers for a time without a zone; None if its rules are those of old versions."""
        if self._spark.conf.get("spark.sql.legacy.timeParserPolicy") == "LEGACY":
            return None
        zoned = self._spark.conf.get("spark.sql.timestampType") == "TIMESTAMP_LTZ"
        return spark_types.TimestampType() if zoned else spark_types.TimestampNTZType()

    def _plain_schema(self) -> spark_types.StructType | None:
        """The schema of the first local Parquet file that can be read; None if Spark must read it.

        Spark would start a job. It is needed if folders are partition columns (k=v), or a type is not supported.
        """
        found = self.first_schema() if self.format == "parquet" and is_local(self.path) else None
        if found is None or any("=" in path for path in self.paths()):
            return None
        try:
            return _spark_schema(found, strict=True)
        except PySparkTypeError:
            return None

    def first_schema(self) -> pa.Schema | None:
        """The schema of the first local Parquet file that can be read; None if there is none."""
        for path in self.paths():
            with suppress(OSError, UnicodeDecodeError, pa.ArrowException):
                return pq.read_schema(path)
        return None

    def batch(self, schema: spark_types.StructType) -> DataFrame:
        """The existing rows."""
        return self._spark.read.format(self.format).options(**self.options).schema(schema).load(self.path)

    def stream(self, schema: spark_types.StructType, max_files: int | None) -> DataFrame:
        """The existing rows and those that will arrive, as a streaming DataFrame."""
        reader = self._spark.readStream.format(self.format).options(**_EVERY_FILE, **self.options).schema(schema)
        if max_files is not None:
            reader = reader.option("maxFilesPerTrigger", max_files)
        return reader.load(_watchable(self.path))

    def stream_paths(self, max_files: int | None) -> DataFrame:
        """The paths of the existing files and of those that will arrive; the workers read the files."""
        reader = (
            self._spark.readStream.format("binaryFile")
            .options(**_EVERY_FILE)
            .schema("path string, modificationTime timestamp_ltz, length long, content binary")
        )
        if max_files is not None:
            reader = reader.option("maxFilesPerTrigger", max_files)
        return reader.load(_watchable(self.path)).select("path")

    def paths(self) -> list[str]:
        """The existing files in order of name; only for local paths."""
        found: list[str] = []
        for path in sorted(glob.glob(self.path)):
            if os.path.isdir(path):
                for folder, inner, names in os.walk(path):
                    inner[:] = sorted(name for name in inner if not _hidden(name))
                    found += [os.path.join(folder, name) for name in sorted(names) if not _hidden(name)]
            else:
                found.append(path)
        return found

    def _as_written(self, column: Column) -> Column:
        """The column; a time as text if the stream has a ZONE: Spark would take a time without an offset as UTC."""
        entry = self._entry
        if not isinstance(entry, Stream) or entry.declaration.zone is None:
            return column
        times = {source_name(entry, name).lower() for name in entry.time_names}
        return Column(column.name, Type.STRING, declared=True) if column.name.lower() in times else column

    def _has_fixed_type(self, column: Column) -> bool:
        """Whether the declaration or the model determines the type of a column."""
        fixed = isinstance(self._entry, Stream) and column.name == self._entry.probability
        return column.type in SPARK_TYPES and (column.declared or fixed)

    def _wrong(self, message: str, hint: str) -> WorkbookError:
        return WorkbookError([Finding("source", message, hint, self._source.span)])


def _hidden(name: str) -> bool:
    """Whether Spark ignores a file or folder."""
    return name.startswith(("_", ".")) and "=" not in name


def _spark_schema(schema: pa.Schema, strict: bool) -> spark_types.StructType:
    """The columns of a Parquet file. Columns of unsupported types are left out, or are an error if `strict`."""
    fields = []
    for field in schema:
        try:
            fields.append(spark_types.StructField(field.name, from_arrow_type(field.type, prefer_timestamp_ntz=True)))
        except PySparkTypeError:
            if strict:
                raise
    return spark_types.StructType(fields)


def _watchable(path: str) -> str:
    """A path for Spark's file source, which takes no single file: it becomes a glob that matches only this file."""
    if is_local(path) and os.path.isfile(path):
        folder, name = os.path.split(path)
        return os.path.join(folder, f"[{name[0]}]{name[1:]}")
    return path


def reason_of(error: Exception) -> str:
    """The first line of an error of Spark."""
    text = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else str(error)
    return (text or type(error).__name__).splitlines()[0]
