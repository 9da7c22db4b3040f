"""The files that streams and queries name besides their data: models, distributions and calibration maps.

They belong to the workbook, so `check` reads them, and reports those that a run would refuse.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from anabranch.binding.message_columns import schema_path
from anabranch.catalog import Catalog, Stream
from anabranch.columns.calibration import read_map
from anabranch.columns.conditions import ARROW_TYPES
from anabranch.errors import DataError, Finding, WorkbookError
from anabranch.files.avro import avro_types, read_schema
from anabranch.kinds import load_kind_module
from anabranch.language import nodes
from anabranch.language.types import Type
from anabranch.planning.derived import layouts_of, with_types_of
from anabranch.planning.prepared import Prepared
from anabranch.transport.job import JobContext
from anabranch.transport.layout import Layout

#: The folder of the workbook that declares an entry, by the entry's name.
FolderOf = Callable[[str], str]


def file_findings(
    queries: Sequence[Prepared], catalog: Catalog, folder_of: FolderOf, bound: Collection[str] = ()
) -> list[Finding]:
    """Report every file that the queries or their streams name, and that a run could not use.

    `bound` are the lower-case names of the streams that have an input of their own: nothing is derived for them.
    """
    derived = {
        stream.name.lower(): catalog.stream(stream.source.stream)
        for prepared in queries
        for stream in prepared.bound.streams
        if isinstance(stream.source, nodes.DerivedSource) and stream.name.lower() not in bound
    }
    sources = {name: source for name, source in derived.items() if source is not None}
    findings = [finding for prepared in queries for finding in _findings(prepared, sources, folder_of)]
    # Several queries may have the same stream.
    return list(dict.fromkeys(findings))


def _findings(prepared: Prepared, sources: Mapping[str, Stream], folder_of: FolderOf) -> Iterator[Finding]:
    query = prepared.query
    layouts: list[Layout] = []
    for stream in prepared.bound.streams:
        yield from _schema_findings(stream, folder_of(stream.name))
        try:
            layouts += _layout(stream, sources.get(stream.name.lower(), stream), folder_of(stream.name))
        except WorkbookError as error:
            yield from error.findings
    folder = folder_of(query.name)
    path = query.declaration.calibrated
    if path is not None:
        try:
            read_map(Path(folder, path))
        except DataError as error:
            yield Finding("calibration", str(error), "", query.declaration.clause_span("CALIBRATED BY"))
    if prepared.bound.has_tables and len(layouts) == len(prepared.bound.streams):
        context = JobContext(tuple(layouts), _no_rows(prepared), "", folders=(folder,))
        try:
            load_kind_module(prepared.bound.kind, "job").check_tables(prepared.analysis, context)
        except DataError as error:
            yield Finding("delay", str(error), "", query.declaration.body.clause_span("DELAY"))


def _schema_findings(stream: Stream, folder: str) -> Iterator[Finding]:
    """Report an Avro schema that cannot be used."""
    path = schema_path(stream.source)
    if path is not None and stream.source is not None:
        try:
            avro_types(read_schema(os.path.join(folder, path)))
        except DataError as error:
            yield Finding("schema", str(error), "", stream.source.span)


def _no_rows(prepared: Prepared) -> dict[str, pa.Table]:
    """The relations of a query, without rows."""
    return {
        relation.name.lower(): pa.schema(
            (column.name, ARROW_TYPES.get(column.type, pa.string())) for column in relation.columns
        ).empty_table()
        for relation in prepared.bound.declared_relations
    }


def _layout(stream: Stream, read: Stream, folder: str) -> Sequence[Layout]:
    """The layout of a stream whose rows are those of `read`, or derived from them; unknown types are assumed."""
    unknown = {column.name.lower(): Type.STRING for column in read.columns if column.type is Type.UNKNOWN}
    # A DOUBLE accepts every number.
    unknown[read.time.name.lower()] = Type.DOUBLE
    given = read.with_types(unknown)
    typed = given if read is stream else with_types_of(stream, given)
    return layouts_of([_without_condition(typed)], [given], [folder]) if isinstance(typed, Stream) else ()


def _without_condition(stream: Stream) -> Stream:
    """The stream without its WHILE, which names no file, and which assumed types may contradict."""
    source = stream.source
    if not isinstance(source, nodes.SegmentedSource):
        return stream
    always = replace(source, condition=nodes.Literal(True, span=source.condition.span))
    return replace(stream, declaration=replace(stream.declaration, source=always))
