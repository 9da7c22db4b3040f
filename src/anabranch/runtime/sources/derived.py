"""Streams that are made from the rows of another: its input takes the place of a source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from anabranch.catalog import Column, Relation, Stream
from anabranch.columns.conditions import ARROW_TYPES
from anabranch.inference.reporting import Reporting
from anabranch.language import nodes
from anabranch.language.types import Type
from anabranch.runtime.sources.inferred import inference_of
from anabranch.runtime.sources.schema import layouts_for, prediction_of
from anabranch.transport.packing import Layout


def with_types_of(entry: Stream | Relation, read: Stream | Relation) -> Stream | Relation:
    """The entry with the types that its source has; a stream that is made from another has those of the other."""
    if entry.name == read.name or not isinstance(entry, Stream) or not isinstance(read, Stream):
        return read
    if isinstance(entry.source, nodes.PredictedSource):
        return replace(
            entry,
            keys=tuple(_as_read(own, _named(own, read.keys)) for own in entry.keys),
            values=tuple(_as_read(own, _named(own, read.quantities)) for own in entry.values),
            time=replace(entry.time, type=read.time.type),
        )
    return replace(
        entry,
        keys=tuple(replace(own, type=given.type) for own, given in zip(entry.keys, read.keys, strict=True)),
        values=tuple(value if value.declared else replace(value, type=Type.STRING) for value in entry.values),
        time=replace(entry.time, type=read.time.type),
    )


def _named(column: Column, there: Iterable[Column]) -> Column:
    """The one of those columns that has the same name; the binder has seen to it that there is one."""
    return next(each for each in there if each.name.lower() == column.name.lower())


def _as_read(own: Column, given: Column) -> Column:
    return replace(own, type=given.type, declared=given.declared)


def layouts_of(streams: Iterable[Stream], read: Iterable[Stream], folders: Iterable[str]) -> tuple[Layout, ...]:
    """What the workers read of the streams of a query, with one kind of time for all.

    Parameters
    ----------
    streams : the streams of the query
    read : for each of them the stream whose rows are read, which is itself or what it is made from; its types are known
    folders : for each of them the folder that paths in its declaration are relative to
    """
    given = list(read)
    return tuple(
        layout if stream.name == source.name else _derived(stream, source, layout, folder)
        for stream, source, layout, folder in zip(streams, given, layouts_for(given), folders, strict=True)
    )


def _derived(stream: Stream, read: Stream, layout: Layout, folder: str) -> Layout:
    """The layout of what is read, and how the rows of the stream are made from it."""
    if isinstance(stream.source, nodes.InferredSource):
        return replace(layout, derive=inference_of(stream, stream.source, layout, folder))
    return reported(stream, read, layout)


def reported(stream: Stream, read: Stream, layout: Layout) -> Layout:
    """The layout of positions, as a stream that is predicted from them reads it."""
    keys = [_named(column, read.keys) for column in stream.keys]
    values = [_named(column, read.quantities) for column in stream.values]
    prediction = prediction_of(stream) | {"rates": ()}
    return replace(
        layout,
        keys=tuple(column.name for column in keys),
        values=tuple(column.name for column in values),
        key_types=tuple(ARROW_TYPES[column.type] for column in keys),
        value_types=tuple(ARROW_TYPES[column.type] for column in values),
        lateness=max(layout.lateness, stream.lateness),
        space=None,
        reporting=_reporting(stream, prediction["errors"], prediction["period"]),
        **prediction,
    )


def _reporting(stream: Stream, errors: tuple[float, ...], period: float) -> Reporting | None:
    if not isinstance(stream.source, nodes.PredictedSource):
        return None
    return Reporting(errors, period, stream.source.method, *map(float, stream.source.arguments))
