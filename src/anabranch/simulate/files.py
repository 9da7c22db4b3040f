"""What the scenarios share when they write: times, tables as files, and the workbook beside them.

A folder has a workbook of the scenario's name. Streams, and the truth, whose files begin with `true_`, are Parquet;
relations are CSV.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

TIMESTAMP = pa.timestamp("us", tz="UTC")

_ROW_GROUP = 250_000
"""Rows of a row group: a reader need not hold the whole of a long file."""


def timestamps(
    start: datetime, counts: NDArray[np.integer], unit: np.timedelta64, known: NDArray[np.bool_] | None = None
) -> pa.Array:
    """So many units after the start, as microseconds in UTC; NULL where the time is not known.

    Examples
    --------
    >>> from datetime import UTC
    >>> timestamps(datetime(2026, 3, 2, 9, tzinfo=UTC), np.array([90]), np.timedelta64(1, "s"))[0]
    <pyarrow.TimestampScalar: '2026-03-02T09:01:30.000000+0000'>
    """
    times = np.datetime64(start.replace(tzinfo=None), "us") + counts * unit
    return pa.array(times, TIMESTAMP, mask=None if known is None else ~known)


def write_files(
    folder: Path,
    scenario: str,
    workbook: str,
    tables: Mapping[str, pa.Table],
    relations: Mapping[str, pa.Table] | None = None,
) -> Path:
    """Write Parquet tables, relations and a workbook, each by its name; return the workbook's path."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet", row_group_size=_ROW_GROUP)
    for name, table in (relations or {}).items():
        pyarrow.csv.write_csv(table, folder / f"{name}.csv")
    path = folder / f"{scenario}.abq"
    path.write_text(workbook, encoding="utf-8")
    return path
