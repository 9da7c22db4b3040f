"""Cases of explanations without a JVM: a workbook that states all types, and rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from anabranch.explanation.case import Case
from anabranch.explanation.explain import explainer_of
from anabranch.language import nodes
from anabranch.planning.derived import layouts_of
from anabranch.planning.prepared import streams_of
from anabranch.transport.job import JobContext
from tests.local import FINGERPRINT, Rows, declared, prepared_query, relation_tables
from tests.transport.layouts import table_of


def case_of(
    workbook: str, query: str, rows: Rows, relations: Mapping[str, Iterable[tuple[Any, ...]]] = MappingProxyType({})
) -> Case:
    """The case of a query with all rows."""
    prepared, catalog = prepared_query(workbook, query), declared(workbook)
    streams = streams_of([prepared])
    inputs = [
        catalog.require_stream(stream.source.stream) if isinstance(stream.source, nodes.PredictedSource) else stream
        for stream in streams
    ]
    layouts = layouts_of(streams, inputs, ["."] * len(inputs))
    by_name = {name.lower(): part for name, part in rows.items()}
    parts = [table_of(layout, by_name.get(layout.name.lower(), ())) for layout in layouts]
    tables = tuple(part.select(layout.columns) for part, layout in zip(parts, layouts, strict=True))
    context = JobContext(layouts, relation_tables(workbook, relations), FINGERPRINT, False, (".",))
    return Case.of(prepared, catalog, context, tables)


def with_selected_rows(case: Case, answer: Mapping[str, Any]) -> Case:
    """The case with the rows that an answer can depend on, as a session reads them."""
    layouts = case.context.layouts
    selections = explainer_of(case.bound.kind).selections(case.prepared.analysis, layouts, answer)
    tables = []
    for layout, table, selection in zip(layouts, case.tables, selections, strict=True):
        kept = [
            number
            for number, row in enumerate(table.to_pylist())
            if selection.equal is None or any(_has(row, values) for values in selection.equal)
            if selection.earliest is None or row[layout.time] >= selection.earliest
            if selection.latest is None or row[layout.time] <= selection.latest
        ]
        tables.append(table.take(pa.array(kept, pa.int64())))
    return case.with_tables(tuple(tables))


def _has(row: Mapping[str, Any], values: Mapping[str, object]) -> bool:
    return all(row[name] == value for name, value in values.items())
