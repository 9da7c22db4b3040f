"""Derived streams (INFERRED FROM, PREDICTED FROM): their types and layouts follow from the stream that is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from anabranch.binding.derived_streams import projected_space, run_condition
from anabranch.catalog import Catalog, Column, Model, Relation, Stream
from anabranch.columns.conditions import ARROW_TYPES
from anabranch.columns.globe import Projection
from anabranch.errors import WorkbookError
from anabranch.inference.reporting import Reporting
from anabranch.inference.rows import RowColumns, RowsJob, RowsSpec
from anabranch.language import nodes
from anabranch.language.findings import Findings
from anabranch.language.temporal import amount_of
from anabranch.language.types import Type
from anabranch.planning.inferred import inference_of
from anabranch.planning.layouts import interval_of, layouts_for, prediction_of
from anabranch.transport.job import JobContext
from anabranch.transport.layout import Layout, RunColumns, SpaceColumns


def with_types_of(entry: Stream | Relation, read: Stream | Relation) -> Stream | Relation:
    """The entry with the types of its source; a derived stream has those of the stream that it is made from."""
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
    """The column of the same name; the binder has checked that there is one."""
    return next(each for each in there if each.name.lower() == column.name.lower())


def _as_read(own: Column, given: Column) -> Column:
    return replace(own, type=given.type, declared=given.declared)


def layouts_of(streams: Iterable[Stream], read: Iterable[Stream], folders: Iterable[str]) -> tuple[Layout, ...]:
    """The layouts of what the workers read for the streams of a query, with one time type for all.

    Parameters
    ----------
    streams : the streams of the query
    read : for each of them, the stream whose rows are read: itself, or the stream that it is made from; with types
    folders : for each of them, the folder that paths in its declaration are relative to
    """
    given, paths = list(read), list(folders)
    return tuple(
        layout if stream.name == source.name else _derived(stream, source, layout, folder)
        for stream, source, layout, folder in zip(streams, given, layouts_for(given, paths), paths, strict=True)
    )


def rows_job(stream: Stream, context: JobContext) -> RowsJob:
    """The job that makes the rows of a stream; the layout in the context is that of the rows that are read."""
    predicted = stream.model is Model.PREDICTED
    columns = RowColumns(
        keys=tuple(column.name for column in stream.keys),
        values=tuple(column.name for column in stream.values),
        time=stream.time.name,
        previous=tuple(column.name for column in stream.previous),
        probability=stream.probability if stream.model in (Model.INDEPENDENT, Model.MARKOV) else None,
        rates=tuple(f"{column.name}_rate" for column in stream.values) if predicted else (),
    )
    return RowsJob(RowsSpec(context, columns))


def _derived(stream: Stream, read: Stream, layout: Layout, folder: str) -> Layout:
    """The layout of the stream that is read, and how rows are derived from it."""
    if isinstance(stream.source, nodes.InferredSource):
        return replace(layout, derivation=inference_of(stream, stream.source, layout, folder))
    if isinstance(stream.source, nodes.SegmentedSource):
        return _runs(stream, stream.source, read, layout, folder)
    return reported(stream, read, layout)


def _runs(stream: Stream, source: nodes.SegmentedSource, read: Stream, layout: Layout, folder: str) -> Layout:
    """The layout of rows from which segments are made."""
    findings = Findings()
    condition = run_condition(read, source, Catalog(), findings)
    if condition is None:
        raise WorkbookError(findings.in_order())
    at_least, silence = (None if d is None else float(amount_of(d)) for d in (source.at_least, source.silence))
    interval = interval_of(stream, layout.time_kind, folder)
    return replace(
        layout,
        name=stream.name,
        lateness=max(layout.lateness, stream.lateness),
        runs=RunColumns(condition, at_least, silence, interval),
    )


def reported(stream: Stream, read: Stream, layout: Layout) -> Layout:
    """The layout of positions, for a stream that is predicted from them."""
    keys = [_named(column, read.keys) for column in stream.keys]
    values = [_named(column, read.quantities) for column in stream.values]
    prediction = replace(prediction_of(stream), rates=(), reporting=reporting_of(stream, read))
    return replace(
        layout,
        keys=tuple(column.name for column in keys),
        values=tuple(column.name for column in values),
        key_types=tuple(ARROW_TYPES[column.type] for column in keys),
        value_types=tuple(ARROW_TYPES[column.type] for column in values),
        lateness=max(layout.lateness, stream.lateness),
        space=_projected(stream, read, values),
        prediction=prediction,
    )


def _projected(stream: Stream, read: Stream, values: list[Column]) -> SpaceColumns | None:
    """The columns of positions that are projected, as their source names them; None if none are."""
    space = projected_space(stream, read)
    if space is None:
        return None
    names = tuple(column.name for name in space[0] for column in values if column.name.lower() == name.lower())
    return SpaceColumns(names, geodesic=True, origin=space[1])


def reporting_of(stream: Stream, read: Stream) -> Reporting | None:
    """How the positions `read` become the predictions of a stream; None if it is not predicted from positions."""
    if not isinstance(stream.source, nodes.PredictedSource):
        return None
    prediction = prediction_of(stream)
    # The binder admits no error column for positions.
    errors = tuple(error for error in prediction.errors if isinstance(error, float))
    projection, space = None, projected_space(stream, read)
    if space is not None and space[1] is not None:
        names = [column.name.lower() for column in stream.values]
        longitude, latitude = (names.index(name.lower()) for name in space[0])
        projection = Projection((longitude, latitude), *space[1])
    # A method takes all its arguments or none.
    acceleration, noise = map(float, stream.source.arguments) if stream.source.arguments else (None, None)
    return Reporting(errors, prediction.period, stream.source.method, acceleration, noise, projection)
