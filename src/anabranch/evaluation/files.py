"""Reads tables from files without Spark: Parquet, CSV with a header, and JSON lines; a file, or a folder of parts.

CSV and JSON lines may be compressed (`.csv.gz`).
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from anabranch.errors import DataError

#: The format of each extension.
FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}


def read_table(path: str | Path) -> pa.Table:
    """Read a file, or all parts of a folder such as `run --output` writes; structs of CSV files stay `a.key` columns.

    Raises
    ------
    DataError
        One line with the file and the reason.
    """
    parts = _parts(Path(path))
    try:
        tables = [_read_part(part, format_of(part)) for part in parts]
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None


def format_of(path: Path) -> str:
    """The format of a file, by its extension; that of `x.csv.gz` is CSV."""
    suffix = Path(path.stem).suffix if is_compressed(path) else path.suffix
    found = FORMATS.get(suffix.lower())
    if found is None or (found == "parquet" and is_compressed(path)):
        raise DataError(f"{path}: the format is unknown; use one of {', '.join(FORMATS)}")
    return found


def is_compressed(path: Path) -> bool:
    """Whether a file is compressed by gzip."""
    return path.suffix.lower() == ".gz"


def _parts(path: Path) -> list[Path]:
    """The files of a path; those whose names begin with _ or . have no answers, or provisional ones."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError(f"{path}: there is no such file")
    found = []
    for folder, inner, names in os.walk(path):
        inner[:] = sorted(name for name in inner if name[0] not in "_.")
        found += [Path(folder, name) for name in sorted(names) if name[0] not in "_."]
    # A CSV part of Spark without rows has no header either.
    filled = [part for part in found if part.stat().st_size]
    if not filled:
        raise DataError(f"{path}: the folder has no files with rows")
    return filled


def _read_part(path: Path, file_format: str) -> pa.Table:
    if file_format == "parquet":
        return pq.ParquetFile(path).read()
    if file_format == "csv":
        return pa_csv.read_csv(path, convert_options=pa_csv.ConvertOptions(strings_can_be_null=True))
    return pa_json.read_json(path)
