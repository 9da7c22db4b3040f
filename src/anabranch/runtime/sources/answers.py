"""The answers of a query as the rows of a stream: one event for each key and time, the most probable answer."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from anabranch.binding.reading import source_name
from anabranch.binding.typed import Member, walk
from anabranch.catalog import Stream
from anabranch.errors import DataError
from anabranch.runtime.filters import lower
from anabranch.runtime.inputs import Input
from anabranch.runtime.per import quoted
from anabranch.runtime.sources.schema import types_of


def most_probable(source: Input) -> DataFrame:
    """The most probable answer of each key and time; of equally probable ones, the first in the order of columns.

    The condition of the stream (WHERE) selects among the answers before, if it looks up no relation.
    """
    stream, frame = source.entry, source.frame
    if not isinstance(stream, Stream) or frame is None:
        raise DataError(f"{source.entry.name} has no answers")
    reading = source.reading(types_of(source.schema))
    where = None if reading is None else reading.where
    if where is not None and not any(isinstance(part, Member) for part in walk(where)):
        frame = frame.where(lower(where, {name.lower(): frame[quoted(name)] for name in frame.columns}, {}))
    event = [quoted(source_name(stream, column.name)) for column in (*stream.keys, stream.time)]
    probability = F.col(quoted(source_name(stream, stream.probability)))
    order = [probability.desc(), *(F.col(quoted(name)) for name in frame.columns)]
    rank = F.row_number().over(Window.partitionBy(*event).orderBy(*order))
    return frame.withColumn("(rank)", rank).where(F.col("(rank)") == 1).drop("(rank)")
