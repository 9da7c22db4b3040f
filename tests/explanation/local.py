"""Cases of explanations without a JVM: a workbook that states all types, and rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from tests.local import FINGERPRINT, Rows, declared, prepared_query, relation_tables
from tests.transport.layouts import table_of

from anabranch.explanation.case import Case
from anabranch.planning.layouts import layouts_for
from anabranch.planning.prepared import streams_of
from anabranch.transport.job import JobContext


def case_of(
    workbook: str, query: str, rows: Rows, relations: Mapping[str, Iterable[tuple[Any, ...]]] = MappingProxyType({})
) -> Case:
    """The case of a query with all rows."""
    prepared = prepared_query(workbook, query)
    layouts = layouts_for(streams_of([prepared]))
    by_name = {name.lower(): part for name, part in rows.items()}
    tables = tuple(table_of(layout, by_name.get(layout.name.lower(), ())) for layout in layouts)
    context = JobContext(layouts, relation_tables(workbook, relations), FINGERPRINT, False, (".",))
    return Case.of(prepared, declared(workbook), context, tables)
