"""Binds workbooks: checks declarations, adds them to the catalog, and binds queries to the catalog."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from anabranch.binding.answer_streams import in_order, stream_of_answers
from anabranch.binding.bound import BoundQuery
from anabranch.binding.clocks import check_clocks
from anabranch.binding.declarations import DeclarationBinder
from anabranch.binding.derived_streams import check_derived, report_missing
from anabranch.binding.lineage import Lineages, Origin, dependence, is_of_answers
from anabranch.binding.message_columns import METADATA, check_messages
from anabranch.binding.query_binder import QueryBinder
from anabranch.binding.reading import bind_reading, has_reading
from anabranch.binding.targets import check_target
from anabranch.catalog import Catalog, Query, Relation, Stream
from anabranch.errors import Finding, WorkbookError
from anabranch.kinds import load_kind_module
from anabranch.language import nodes
from anabranch.language.findings import Findings, shown
from anabranch.language.unparse import unparse

Entry = Stream | Relation | Query

#: Returns the errors of a bound query that its analysis finds.
Examine = Callable[[Query, BoundQuery, Catalog], list[Finding]]

#: Names that are no folder name: they would lead to another folder, or fail on some file systems.
#: `_quarantine` holds the rows that could not be used, next to the folders of the answers.
_INVALID_FOLDER = re.compile(r"""^[.]|[/\\:*?"<>|]|^_quarantine$""")


@dataclass(frozen=True, slots=True)
class BoundWorkbook:
    """The bound queries of a workbook, by lower-case name, and all findings, sorted by position."""

    queries: dict[str, BoundQuery]
    findings: list[Finding]


def declare(workbook: nodes.Workbook, catalog: Catalog) -> list[Finding]:
    """Add the entries of a workbook to the catalog if there are no findings; returns the findings."""
    return bind_workbook(workbook, catalog).findings


def bind_workbook(workbook: nodes.Workbook, catalog: Catalog, examine: Examine | None = None) -> BoundWorkbook:
    """Check every statement of a workbook, and add its entries to the catalog if there are no findings.

    Statements may refer to each other in any order, and to entries of the catalog. CREATE OR REPLACE replaces an entry
    of the same name. If there are findings, the catalog does not change. `examine` finds further errors in queries that
    the binder accepts, given all entries.
    """
    findings = Findings()
    draft = Catalog(dict(catalog.entries))
    declarations = DeclarationBinder(findings)
    names: list[str] = []
    for statement in workbook.statements:
        name = statement.name.lower()
        if not _may_declare(statement, draft.get(name), name in names, findings):
            continue
        names.append(name)
        if _INVALID_FOLDER.search(name):
            message = f"answers are written to a folder, but {shown(statement.name)} is not a valid folder name"
            findings.add("not-a-folder", message, statement.span, "use letters, digits and underscores")
        if isinstance(statement, nodes.CreateQuery) and statement.target is not None:
            declarations.check_options_once(statement.target.options)
            check_target(statement.target, findings)
        draft.add(_entry(statement, declarations))
    declared = dict.fromkeys(names)
    unknown = _report_cycles([draft.entries[name] for name in declared], draft, findings)
    sound = dict.fromkeys(name for name in declared if not _depends_on(name, unknown, draft))
    unknown |= _complete_streams(sound, draft, findings)
    entries = [draft.entries[name] for name in declared]
    _check_references(entries, draft, findings)
    queries = {}
    for entry in entries:
        # What is wrong with a stream whose columns are not known has been reported.
        if isinstance(entry, Query) and not findings.full and not _depends_on(entry.name, unknown, draft):
            bound, query_findings = _bind(entry, draft)
            findings.extend(query_findings)
            if bound is not None:
                queries[entry.name.lower()] = bound
                findings.items += [] if examine is None else examine(entry, bound, draft)
    if not findings:
        for entry in entries:
            catalog.add(entry)
    return BoundWorkbook(queries, findings.in_order())


def bind(query: Query, catalog: Catalog) -> BoundQuery:
    """Bind a query to the current entries of the catalog.

    Raises
    ------
    WorkbookError
        With all findings about the query.
    """
    bound, findings = _bind(query, catalog)
    if bound is None:
        raise WorkbookError(findings.in_order())
    return bound


def lineage_of(query: Query, catalog: Catalog) -> tuple[Origin, ...]:
    """The rows of streams that are read which an answer of a query depends on, in terms of its columns."""
    return _lineages(catalog).of_answers(bind(query, catalog))


def _lineages(catalog: Catalog) -> Lineages:
    return Lineages(catalog, lambda query: _bind(query, catalog)[0])


def _bind(query: Query, catalog: Catalog) -> tuple[BoundQuery | None, Findings]:
    """Bind a query, with the lineage of its streams."""
    findings = Findings()
    body = query.declaration.body
    binder: QueryBinder = load_kind_module(body.kind, "binding").Binder(query.declaration, catalog, findings)
    bound = binder.bind_query()
    if bound is not None:
        check_clocks(bound.streams, catalog, query.declaration.span, findings)
        dependent = dependence(bound, _lineages(catalog), findings)
        if dependent is not None:
            as_one = binder.as_one(bound, lambda stream: _inner(stream, catalog))
            bound = as_one or replace(bound, bounded=dependent)
    return (None if findings else bound), findings


def _inner(stream: Stream, catalog: Catalog) -> tuple[BoundQuery, str] | None:
    """The query whose answers are the events of a stream, and its text."""
    query = catalog.query(stream.source.name) if isinstance(stream.source, nodes.QuerySource) else None
    bound = _bind(query, catalog)[0] if query is not None and is_of_answers(stream) else None
    return None if query is None or bound is None else (bound, unparse(query.declaration.body))


def _may_declare(statement: nodes.Statement, earlier: Entry | None, same_workbook: bool, findings: Findings) -> bool:
    """Report a name that is taken: only CREATE OR REPLACE may replace an entry, and only one of the same class."""
    if earlier is None:
        return True
    what, earlier_what = statement.what, earlier.declaration.what
    if statement.or_replace and what == earlier_what:
        return True
    first = earlier.declaration.span
    message = f"there is already a {earlier_what} {shown(statement.name)}"
    if same_workbook:
        message = f"{shown(statement.name)} is declared twice, first at {first.line}:{first.column}"
    hint = f"use another name, or write CREATE OR REPLACE {what.upper()}"
    if what != earlier_what:
        hint = f"use another name; a {what} cannot replace a {earlier_what}"
    findings.add("declared-twice", message, statement.span, hint)
    return False


def _entry(statement: nodes.Statement, declarations: DeclarationBinder) -> Entry:
    if isinstance(statement, nodes.CreateStream):
        return declarations.stream(statement)
    if isinstance(statement, nodes.CreateRelation):
        return declarations.relation(statement)
    return Query(statement.name, statement)


# ---------------------------------------------------------------- references between entries


def _check_references(entries: list[Entry], catalog: Catalog, findings: Findings) -> None:
    """Report sources that name no entry, or one that cannot be used."""
    for entry in entries:
        if isinstance(entry, Query):
            continue
        source = entry.source
        if isinstance(source, nodes.QuerySource) and catalog.query(source.name) is None:
            report_missing("query", source.name, catalog, source.span, findings)
        elif isinstance(source, nodes.DerivedSource) and isinstance(entry, Stream):
            check_derived(entry, source, catalog, findings)
        needed = entry.columns
        if isinstance(entry, Stream) and not isinstance(source, nodes.DerivedSource) and has_reading(entry):
            reading = bind_reading(entry, catalog, findings)
            needed = () if reading is None else reading.needed
        if isinstance(source, nodes.ConnectorSource) and source.connector in METADATA:
            check_messages(entry, source, needed, findings)


def _complete_streams(names: Mapping[str, object], catalog: Catalog, findings: Findings) -> set[str]:
    """Give the declared streams of answers the columns of their queries; returns those whose columns are not known."""
    unknown: set[str] = set()
    for stream in in_order(names, catalog):
        query = catalog.query(stream.source.name) if isinstance(stream.source, nodes.QuerySource) else None
        before = len(findings.items)
        bound: BoundQuery | None = None
        if query is not None and not _depends_on(query.name, unknown, catalog):
            bound, query_findings = _bind(query, catalog)
            if query.name.lower() not in names:  # Those of a query that is declared now are reported with it.
                findings.extend(query_findings)
        if query is not None and bound is not None:
            catalog.add(stream_of_answers(stream, query, bound, catalog, findings))
        if bound is None or len(findings.items) > before:
            unknown.add(stream.name.lower())
    return unknown


def _depends_on(name: str, names: set[str], catalog: Catalog) -> bool:
    """Whether an entry is one of these names, or reads one, also through others."""
    seen: set[str] = set()
    stack = [name.lower()] if names else []
    while stack:
        read = stack.pop()
        if read in names:
            return True
        if read not in seen:
            seen.add(read)
            stack.extend(entry.name.lower() for entry in _inputs(catalog.entries[read], catalog))
    return False


def _report_cycles(entries: list[Entry], catalog: Catalog, findings: Findings) -> set[str]:
    """Report entries that depend on themselves; returns their names."""
    cycles = list(_cycles(entries, catalog))
    for cycle in cycles:
        names = [entry.name for entry in cycle]
        message = f"{shown(names[0])} depends on itself: {' reads '.join([*names, names[0]])}"
        combines_itself = all(isinstance(entry, Query) for entry in cycle)
        hint = "combine other queries" if combines_itself else "read one of them from a file or table"
        findings.add("cycle", message, cycle[0].declaration.span, hint)
    return {entry.name.lower() for cycle in cycles for entry in cycle}


def _cycles(entries: list[Entry], catalog: Catalog) -> Iterator[list[Entry]]:
    """The cycles of entries that read each other; one for each back edge of a depth-first search."""
    done: set[str] = set()
    for start in entries:
        path: dict[str, Entry] = {}
        stack = [(start, False)]
        while stack:
            entry, leaving = stack.pop()
            name = entry.name.lower()
            if leaving:
                done.add(path.popitem()[0])
            elif name in path:
                yield list(path.values())[list(path).index(name) :]
            elif name not in done:
                path[name] = entry
                stack.append((entry, True))
                stack.extend((read, False) for read in _inputs(entry, catalog))


def _inputs(entry: Entry, catalog: Catalog) -> list[Entry]:
    """The entries that this one reads."""
    if isinstance(entry, Query):
        body = entry.declaration.body
        inputs: list[Entry | None] = [catalog.stream(name) for name in body.stream_names]
        inputs += [catalog.query(name) for name in body.query_names]
    elif isinstance(entry.source, nodes.QuerySource):
        inputs = [catalog.query(entry.source.name)]
    elif isinstance(entry.source, nodes.DerivedSource):
        inputs = [catalog.stream(entry.source.stream)]
    else:
        inputs = []
    if isinstance(entry, Stream):
        reading = bind_reading(entry, catalog, Findings())
        inputs += [] if reading is None else reading.relations
    return [read for read in inputs if read is not None]
