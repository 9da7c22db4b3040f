"""Answers as lines of text, for standard output: CSV or JSON, as in the files of these formats."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anabranch.runtime.sinks.files import TEXT_OPTIONS, without_structs

#: The formats that have one answer per line.
LINE_FORMATS = ("csv", "jsonl")


def text_lines(frame: DataFrame, line_format: str, query: str | None = None) -> Iterator[str]:
    """The rows of a frame in order, one line each; CSV begins with a header.

    All lines are collected first. A JSON line begins with the name of the `query` if one is given.
    """
    if line_format == "csv":
        frame = without_structs(frame)
        header = io.StringIO()
        csv.writer(header, lineterminator="").writerow(frame.columns)
        yield header.getvalue()
    elif query is not None:
        frame = frame.select(F.lit(query).alias("query"), *(F.col(f"`{name}`") for name in frame.columns))
    row = F.struct(*(F.col(f"`{name}`") for name in frame.columns))
    line = F.to_csv(row, TEXT_OPTIONS["csv"]) if line_format == "csv" else F.to_json(row, TEXT_OPTIONS["json"])
    yield from frame.select(line.alias("line")).toArrow()["line"].to_pylist()
