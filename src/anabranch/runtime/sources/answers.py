"""The answers of a query as the rows of a stream: one event for each key and time, the most probable answer."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from anabranch.binding.answer_streams import is_event
from anabranch.binding.bound import BoundQuery
from anabranch.binding.per import PerWindow
from anabranch.binding.reading import source_name
from anabranch.binding.typed import Member, Typed, walk
from anabranch.catalog import Model, Stream
from anabranch.errors import DataError
from anabranch.runtime.filters import lower
from anabranch.runtime.inputs import Input
from anabranch.runtime.per import quoted
from anabranch.runtime.sources.schema import types_of
from anabranch.transport.frontier import Frontier
from anabranch.transport.relay import RelayRule

#: In seconds: clocks are never set back by more.
_DAY = 86_400.0


def most_probable(source: Input) -> DataFrame:
    """The most probable answer of each key and time; of equally probable ones, the first in the order of columns.

    The condition of the stream (WHERE) selects among the answers before, if it looks up no relation.
    """
    stream, frame = source.entry, source.frame
    if not isinstance(stream, Stream) or frame is None:
        raise DataError(f"{source.entry.name} has no answers")
    reading = source.reading(types_of(source.schema))
    where = None if reading is None else reading.where
    if where is not None and _uses_no_relation(where):
        frame = frame.where(lower(where, {name.lower(): frame[quoted(name)] for name in frame.columns}, {}))
    event = [quoted(source_name(stream, column.name)) for column in (*stream.keys, stream.time)]
    probability = F.col(quoted(source_name(stream, stream.probability)))
    order = [probability.desc(), *(F.col(quoted(name)) for name in frame.columns)]
    rank = F.row_number().over(Window.partitionBy(*event).orderBy(*order))
    return frame.withColumn("(rank)", rank).where(F.col("(rank)") == 1).drop("(rank)")


def relay_rule(source: Input, bound: BoundQuery, frontier: Frontier) -> RelayRule:
    """How the answers of a live query become the rows of a stream: the same ones as those of an archive."""
    stream = source.entry
    if not isinstance(stream, Stream):
        raise DataError(f"{stream.name} is no stream")
    spelled = {name.lower(): name for name in source.schema.names}
    time = spelled[source_name(stream, stream.time.name).lower()]
    if isinstance(bound.per, PerWindow) and bound.per.zone is not None:
        # The end of a window may be a local time that occurs twice.
        frontier = replace(frontier, delay=frontier.delay + _DAY)
    if stream.model is not Model.INDEPENDENT or is_event(stream, bound):
        return RelayRule(frontier, time)
    keys, probability = [column.name for column in stream.keys], stream.probability
    *event, chance = (spelled[source_name(stream, name).lower()] for name in (*keys, probability))
    selection = source.preparation()
    if selection is None or selection.where is None or not _uses_no_relation(selection.where):
        return RelayRule(frontier, time, (*event, time), chance)
    return RelayRule(frontier, time, (*event, time), chance, selection)


def _uses_no_relation(where: Typed) -> bool:
    return not any(isinstance(part, Member) for part in walk(where))
