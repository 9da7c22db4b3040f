"""The last step of the language: names, types and models checked, queries bound to the catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from anabranch.binding.bound import BoundQuery
from anabranch.binding.conditions import a_type
from anabranch.binding.declarations import DeclarationBinder, made
from anabranch.binding.queries import QueryBinder
from anabranch.catalog import Catalog, Column, Model, Query, Relation, Stream
from anabranch.errors import Finding, Span, WorkbookError
from anabranch.kinds import load_kind_module
from anabranch.language import nodes
from anabranch.language.findings import Findings, listed, shown

Entry = Stream | Relation | Query

#: What would let the name of an answer's folder lead elsewhere, or fail on some file system.
_NOT_IN_NAMES = re.compile(r"""^[.]|[/\\:*?"<>|]""")


def declare(workbook: nodes.Workbook, catalog: Catalog) -> list[Finding]:
    """Check every statement of a workbook, and add its entries to the catalogue where nothing is wrong.

    Statements may refer to each other in any order, and to what the catalogue holds already; a name that it
    holds is declared anew. With findings, the catalogue is left as it was.

    Returns
    -------
    list of Finding
        Everything that is wrong, in order of place.
    """
    findings = Findings()
    draft = Catalog(dict(catalog.entries))
    declarations = DeclarationBinder(findings)
    places: dict[str, Span] = {}
    for statement in workbook.statements:
        name = statement.name.lower()
        if name in places:
            first = places[name]
            message = f"{shown(statement.name)} is declared twice, first at {first.line}:{first.column}"
            findings.add("declared-twice", message, statement.span, "give each its own name")
            continue
        places[name] = statement.span
        if _NOT_IN_NAMES.search(name):
            message = f"{shown(statement.name)} cannot be a folder, and answers are written to one of that name"
            findings.add("not-a-folder", message, statement.span, "use letters, digits and underscores")
        draft.add(_entry(statement, declarations))
    entries = [draft.entries[name] for name in places]
    _check_references(entries, draft, findings)
    for entry in entries:
        if isinstance(entry, Query) and not findings.full:
            findings.extend(_bind(entry, draft)[1])
    if not findings:
        for entry in entries:
            catalog.add(entry)
    return findings.in_order()


def bind(query: Query, catalog: Catalog) -> BoundQuery:
    """The query of a query, its names resolved to what the catalogue holds now.

    Raises
    ------
    WorkbookError
        With everything that is wrong with the query.
    """
    bound, findings = _bind(query, catalog)
    if bound is None:
        raise WorkbookError(findings.in_order())
    return bound


def _bind(query: Query, catalog: Catalog) -> tuple[BoundQuery | None, Findings]:
    findings = Findings()
    body = query.declaration.body
    binder: QueryBinder = load_kind_module(body.kind, "binding").Binder(query.declaration, catalog, findings)
    return binder.bind(body), findings


def _entry(statement: nodes.Statement, declarations: DeclarationBinder) -> Entry:
    if isinstance(statement, nodes.CreateStream):
        return declarations.stream(statement)
    if isinstance(statement, nodes.CreateRelation):
        return declarations.relation(statement)
    return Query(statement.name, statement)


# ---------------------------------------------------------------- what entries say of each other


def _check_references(entries: list[Entry], catalog: Catalog, findings: Findings) -> None:
    """The entries that sources name must be there, and none may be made of itself."""
    for entry in entries:
        if isinstance(entry, Query):
            continue
        source = entry.source
        if isinstance(source, nodes.QuerySource) and catalog.query(source.name) is None:
            _missing("query", source.name, catalog, source.span, findings)
        elif isinstance(source, nodes.DerivedSource) and isinstance(entry, Stream):
            check_derived(entry, source, catalog, findings)
    for cycle in _cycles(entries, catalog):
        names = [entry.name for entry in cycle]
        message = f"{shown(names[0])} is made of itself: {' from '.join([*names, names[0]])}"
        findings.add("cycle", message, cycle[0].declaration.span, "let one of them come from a file or table")


def check_derived(entry: Stream, source: nodes.DerivedSource, catalog: Catalog, findings: Findings) -> None:
    """A stream can be made from the certain events of another, which are read, and of an instant."""
    read = catalog.stream(source.stream)
    if read is None:
        _missing("stream", source.stream, catalog, source.span, findings)
        return
    if read is entry:
        return
    how, what = made(source), "readings" if isinstance(source, nodes.InferredSource) else "positions"
    if isinstance(read.source, nodes.DerivedSource):
        message = f"{entry.name} cannot be {how} from {read.name}, which is itself {made(read.source)}"
        findings.add("derived-twice", message, source.span, f"name a stream of {what} that are read")
    elif read.model is not Model.CERTAIN:
        message = f"{read.name} is {read.model.value}, and streams are {how} from CERTAIN {what}"
        findings.add("wrong-model", message, source.span, "leave out its MODEL")
    elif read.start is not None:
        message = f"the {what} of {read.name} last, and streams are {how} from {what} at an instant"
        findings.add("lasting-events", message, source.span, f"declare it with TIME {read.time.name}")
    elif isinstance(source, nodes.InferredSource):
        _check_inferred(entry, read, findings)
    else:
        _check_predicted(entry, read, findings)


def _check_inferred(entry: Stream, readings: Stream, findings: Findings) -> None:
    """Readings have the keys of what is inferred from them, and one value: the reader."""
    for stream, what in ((readings, "the reader"), (entry, "the hidden state")):
        if len(stream.values) != 1:
            message = f"{stream.name} has {len(stream.values)} VALUE columns, and inference takes one"
            findings.add("value-columns", message, stream.declaration.span, f"let VALUE name {what}")
    if len(entry.keys) != len(readings.keys):
        message = f"{entry.name} has {len(entry.keys)} KEY columns, and {readings.name} has {len(readings.keys)}"
        findings.add("key-columns", message, entry.declaration.span, "give both the same keys, in the same order")


def _check_predicted(entry: Stream, positions: Stream, findings: Findings) -> None:
    """Positions have the keys, the values and the time of what is predicted from them, under the same names."""
    parts = (
        ("KEY", _names(entry.keys), _names(positions.keys), f"KEY of {positions.name}"),
        ("VALUE", _names(entry.values), _names(positions.quantities), f"VALUE of {positions.name}"),
        ("TIME", [entry.time.name], [positions.time.name], f"TIME of {positions.name}"),
        # What is made of positions has its values, and no other columns to be coordinates.
        ("SPACE", entry.declaration.space or (), _names(entry.values), f"VALUE of {entry.name}"),
    )
    for clause, own, there, where in parts:
        for name in own:
            if name.lower() not in (each.lower() for each in there):
                hint = f"it has {listed(there, 'and')}" if there else "it has none"
                findings.unknown("column", name, there, entry.declaration.place(clause), hint, where)
    keys = {column.name.lower() for column in entry.keys}
    missing = [column.name for column in positions.keys if column.name.lower() not in keys]
    if len(entry.keys) < len(positions.keys):
        message = f"{positions.name} also has the KEY {listed(missing, 'and')}, which {entry.name} leaves out"
        findings.add("key-columns", message, entry.declaration.place("KEY"), "give both the same keys")
    values = {column.name.lower() for column in entry.values}
    for column in positions.quantities:
        if column.name.lower() in values and column.declared and not column.type.is_numeric:
            message = f"a predicted value is a number, and {shown(column.name)} of {positions.name} is"
            place = entry.declaration.place("VALUE")
            findings.add("value-type", f"{message} {a_type(column.type)}", place, "name a column of numbers")


def _names(columns: Iterable[Column]) -> list[str]:
    return [column.name for column in columns]


def _missing(kind: str, name: str, catalog: Catalog, span: Span, findings: Findings) -> None:
    entry = catalog.get(name)
    kinds = {"query": Query, "stream": Stream}
    if entry is None:
        findings.unknown(kind, name, catalog.names((kinds[kind],)), span, f"declare it with CREATE {kind.upper()}")
    else:
        other = type(entry).__name__.lower()
        findings.add(f"not-a-{kind}", f"{name} is a {other}, and a {kind} is needed here", span)


def _cycles(entries: list[Entry], catalog: Catalog) -> Iterator[list[Entry]]:
    """The circles of entries made of each other; one for each way back that a depth-first walk finds."""
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
                stack.extend((below, False) for below in _made_of(entry, catalog))


def _made_of(entry: Entry, catalog: Catalog) -> list[Entry]:
    """The entries that this one reads."""
    if isinstance(entry, Query):
        found: list[Entry | None] = [catalog.stream(name) for name in entry.declaration.body.stream_names]
    elif isinstance(entry.source, nodes.QuerySource):
        found = [catalog.query(entry.source.name)]
    elif isinstance(entry.source, nodes.DerivedSource):
        found = [catalog.stream(entry.source.stream)]
    else:
        found = []
    return [below for below in found if below is not None]
