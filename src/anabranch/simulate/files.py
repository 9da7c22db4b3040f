"""Functions with which scenarios write their files.

A folder has a workbook with the name of the scenario. Streams and the ground truth, whose file names begin with
`true_`, are Parquet files; relations are CSV files.
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

from anabranch.arrays import Bools

TIMESTAMP = pa.timestamp("us", tz="UTC")

_ROW_GROUP = 250_000
"""Rows of a row group, so that a reader need not load a whole file."""


def timestamps(
    start: datetime, counts: NDArray[np.integer], unit: np.timedelta64, known: Bools | None = None
) -> pa.Array:
    """Return the times `counts` units after the start, as timestamps in UTC; NULL where `known` is false.

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
    """Write tables as Parquet, relations as CSV, and a workbook; return the path of the workbook."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet", row_group_size=_ROW_GROUP)
    for name, table in (relations or {}).items():
        pyarrow.csv.write_csv(table, folder / f"{name}.csv")
    path = folder / f"{scenario}.abq"
    path.write_text(workbook, encoding="utf-8")
    return path


def number_text(number: float) -> str:
    """Return a number as a workbook has it: up to 12 digits, no trailing zeros.

    >>> number_text(20.0)
    '20'
    """
    return f"{number:.12g}"
