"""Which files the workers read themselves, decided before a run by path, options and types; Spark reads all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import types as spark_types

from anabranch.files.blocks import is_readable
from anabranch.files.csv_lines import QUOTE, Dialect
from anabranch.files.formats import Columns, CsvFormat, JsonFormat, LineFormat
from anabranch.files.parquet import FOLDER_VALUES, ParquetReader
from anabranch.files.reader import FileReader
from anabranch.files.text import TextReader
from anabranch.language.types import Type
from anabranch.runtime.sources.files import FileInput, is_local
from anabranch.runtime.sources.schema import CORRUPT, types_of

#: The types of text columns that workers read as Spark does.
_TEXT_TYPES: dict[type, Type] = {
    spark_types.StringType: Type.STRING,
    spark_types.LongType: Type.INTEGER,
    spark_types.DoubleType: Type.DOUBLE,
    spark_types.BooleanType: Type.BOOLEAN,
    spark_types.TimestampType: Type.TIMESTAMP,
    spark_types.DateType: Type.DATE,
}

#: Options, in lower case, with the values for which workers read as Spark does; None stands for all.
_KNOWN_OPTIONS: dict[str, dict[str, tuple[str, ...] | None]] = {
    "csv": {
        "charset": ("utf-8",), "columnnameofcorruptrecord": None, "delimiter": None, "encoding": ("utf-8",),
        "enforceschema": None, "escape": None, "header": ("true",), "multiline": ("false",), "samplingratio": None,
        "sep": None, "timezone": ("utc",),
    },
    "json": {
        "columnnameofcorruptrecord": None, "encoding": ("utf-8",), "multiline": ("false",), "samplingratio": None,
        "timezone": ("utc",),
    },
    "parquet": {
        "datetimerebasemode": ("corrected",), "int96rebasemode": ("corrected",), "mergeschema": ("false",),
    },
}  # fmt: skip


def reader_of(files: FileInput, schema: spark_types.StructType, needed: Sequence[str]) -> FileReader | None:
    """How workers read the needed columns of local files; None if Spark must read them."""
    options = {name.lower(): value for name, value in files.options.items()}
    known = _KNOWN_OPTIONS[files.format]
    if not is_local(files.path) or any(not _is_known(value, known.get(name, ())) for name, value in options.items()):
        return None
    if files.format == "parquet":
        return _parquet_reader(files, schema, needed)
    lines = _line_format(files.format, options, schema, needed)
    return TextReader(lines) if lines is not None and all(map(is_readable, files.paths())) else None


def _is_known(value: str, values: tuple[str, ...] | None) -> bool:
    return values is None or value.lower() in values


def _parquet_reader(files: FileInput, schema: spark_types.StructType, needed: Sequence[str]) -> ParquetReader | None:
    """A reader of files that contain every column, except those in the names of folders."""
    first = files.first_schema()
    if first is None:
        return None
    types = types_of(schema)
    in_folders = frozenset(name.lower() for name in needed) - {name.lower() for name in first.names}
    return ParquetReader(types, in_folders) if all(types.get(name) in FOLDER_VALUES for name in in_folders) else None


def _line_format(
    file_format: str, options: Mapping[str, str], schema: spark_types.StructType, needed: Sequence[str]
) -> LineFormat | None:
    fields = {field.name.lower(): field for field in schema.fields}
    chosen = [fields[name.lower()] for name in needed]
    if any(type(field.dataType) not in _TEXT_TYPES for field in chosen):
        return None
    columns = Columns([field.name for field in chosen], [_TEXT_TYPES[type(field.dataType)] for field in chosen])
    if file_format == "json":
        return JsonFormat(columns)
    dialect = _dialect(options)
    header = [name for name in schema.names if name != CORRUPT]
    return None if dialect is None else CsvFormat(columns, header, dialect)


def _dialect(options: Mapping[str, str]) -> Dialect | None:
    """The separator and the escape character; None if they are unusual."""
    stated = [options[name] for name in ("sep", "delimiter") if name in options]
    separator = "\t" if stated == ["\\t"] else stated[0] if stated else ","
    usual = len(separator) == 1 and (separator == "\t" or " " < separator <= "~") and separator not in ('"', "\\")
    escape = options.get("escape", QUOTE)
    return Dialect(separator, escape) if usual and len(stated) < 2 and escape in ("\\", QUOTE) else None
