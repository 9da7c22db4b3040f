"""Streams of answers (FROM QUERY): their default columns, and checks of those that they name, without data."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from anabranch.binding.answers import AnswerColumns, gives_bounds, result_columns
from anabranch.binding.bound import CALIBRATED, BoundQuery
from anabranch.binding.per import PerEpisode, PerKeys
from anabranch.binding.reading import bind_reading, has_reading, source_name
from anabranch.catalog import Catalog, Column, Model, Query, Stream, as_time
from anabranch.errors import Span
from anabranch.language import nodes
from anabranch.language.findings import Findings, listed, shown
from anabranch.language.types import Type


def stream_of_answers(entry: Stream, query: Query, bound: BoundQuery, catalog: Catalog, findings: Findings) -> Stream:
    """The stream with the columns of its query: those that it does not name, and the types that are known."""
    answers = result_columns(bound)
    if query.declaration.calibrated is not None:
        answers = replace(answers, others=(*answers.others, Column(CALIBRATED, Type.DOUBLE)))
    node, source_span, before = entry.declaration, _source_span(entry), len(findings.items)
    if not node.keys and not answers.keys:
        message = f"the answers of {query.name} have no key"
        findings.add("no-key", message, source_span, f"write GROUP BY in {query.name}, or KEY here")
    if node.time is None and answers.time is None:
        message = f"the answers of {query.name} have no time, because a key of its operands is named end"
        findings.add("no-time", message, source_span, "rename the key: KEY (end AS other)")
    _check_model(entry, query, bound, findings)
    _check_event(entry, findings)
    if len(findings.items) > before:
        return entry
    stream = entry if node.keys else replace(entry, keys=answers.keys)
    if node.time is None and answers.time is not None:
        stream = replace(stream, time=as_time(answers.time))
    _check_columns(stream, query, answers, catalog, findings)
    types = {
        column.name.lower(): known.type
        for column in stream.columns
        if (known := answers.named(source_name(stream, column.name))) is not None and known.type is not Type.UNKNOWN
    }
    return stream if has_reading(stream) else stream.with_types(types)


def _source_span(entry: Stream) -> Span:
    source = entry.source
    return entry.declaration.span if source is None else source.span


def _check_model(entry: Stream, query: Query, bound: BoundQuery, findings: Findings) -> None:
    """Report a model for which answers have no columns, or no probabilities."""
    span = entry.declaration.clause_span("MODEL") if entry.declaration.model else _source_span(entry)
    if entry.model is Model.MARKOV:
        message = f"MODEL MARKOV needs the probabilities of moves, which the answers of {query.name} do not have"
        findings.add("wrong-model", message, span, "remove MODEL, or write MODEL INDEPENDENT or CERTAIN")
    elif entry.model is Model.INDEPENDENT and gives_bounds(bound):
        message = f"{query.name} gives bounds, so its answers have no known probability as INDEPENDENT events"
        findings.add("wrong-model", message, span, f"write MODEL CERTAIN here, and a THRESHOLD in {query.name}")


def _check_event(entry: Stream, findings: Findings) -> None:
    """Report a computed KEY or TIME of uncertain events: two answers with the same key and time are one event."""
    node = entry.declaration
    for column in (*node.keys, *(() if node.time is None else (node.time,))):
        if entry.model is Model.INDEPENDENT and column.expression is not None:
            computed = f"{shown(column.name)} is computed"
            message = f"KEY and TIME of uncertain answers are columns of the answers, but {computed}"
            findings.add("computed-event", message, column.span, "name a column, or write MODEL CERTAIN")


def _check_columns(stream: Stream, query: Query, answers: AnswerColumns, catalog: Catalog, findings: Findings) -> None:
    """Report columns that the answers do not have."""
    needed: tuple[Column, ...] = stream.columns
    if has_reading(stream):
        reading = bind_reading(stream, catalog, Findings())
        needed = () if reading is None else reading.needed
    spans = dict(_written(stream.declaration))
    names = [column.name for column in answers.all]
    for column in needed:
        if answers.named(column.name) is None:
            span = spans.get(column.name.lower(), _source_span(stream))
            fields = [name for name in names if name.lower().startswith(f"{column.name.lower()}.")]
            if fields:
                message = f"{shown(column.name)} is a struct, not a column of plain values"
                findings.add("column-type", message, span, f"name a field of it: {', '.join(fields)}")
            else:
                hint = f"they have {listed(names, 'and')}"
                findings.unknown("column", column.name, names, span, hint, f"the answers of {query.name}")


def _written(node: nodes.CreateStream) -> Iterator[tuple[str, Span]]:
    """The columns of the source that clauses name, in lower case, and where."""
    times = [time for time in (node.start, node.time) if time is not None]
    for column in (*node.keys, *node.values, *times):
        yield (column.source or column.name).lower(), column.span
    for clause, name in (("PROBABILITY", node.probability), ("ORDER", node.order), ("LENGTH", node.length)):
        if name is not None:
            yield name.lower(), node.clause_span(clause)


def is_event(stream: Stream, bound: BoundQuery) -> bool:
    """Whether every answer of a query is an event of its own in a stream of them: no other has its key and time."""
    answers = result_columns(bound)
    keys = {source_name(stream, key.name).lower() for key in stream.keys}
    time = source_name(stream, stream.time.name).lower()
    identified = keys >= {key.name.lower() for key in answers.keys} and (
        answers.time is not None and time == answers.time.name.lower()
    )
    return bound.kind == "PATTERN" and identified


def answers_read(bound: BoundQuery, catalog: Catalog) -> Iterator[tuple[str, Stream, Query]]:
    """The streams of answers that a run of a query reads, and the queries that give them.

    Each comes with the name of the stream of the query that it is read for: itself, or one that is derived from it. One
    automaton for a query and those whose answers it reads has none.
    """
    for stream in bound.streams:
        read: Stream | None = stream
        while read is not None and isinstance(read.source, nodes.DerivedSource):
            read = catalog.stream(read.source.stream)
        if read is not None and isinstance(read.source, nodes.QuerySource):
            yield stream.name, read, catalog.require_query(read.source.name)


def relay_objection(stream: Stream, query: Query, bound: BoundQuery) -> str | None:
    """Why the final answers of a query cannot be passed on to a stream while it runs; None if they can be."""
    if bound.kind == "RELATE":
        return f"the answers of {query.name} are about whole entities, which are complete late; run it in batch"
    if isinstance(bound.per, PerEpisode | PerKeys):
        return f"the rows of PER {bound.per.form} in {query.name} are known late; remove PER, or use PER with a length"
    answers = result_columns(bound)
    known = {"valid_to"} | ({answers.time.name.lower()} if answers.time is not None else set())
    time = stream.declaration.time
    if (time is not None and time.expression is not None) or source_name(stream, stream.time.name).lower() not in known:
        default = "t" if answers.time is None else answers.time.name
        return f"{shown(stream.time.name)} is not the time by which {query.name} is complete; write TIME {default}"
    return None


def read_by(query: Query, catalog: Catalog) -> Iterator[Query]:
    """The queries whose answers a query reads itself."""
    body = query.declaration.body
    for operand in body.query_names:
        combined = catalog.query(operand)
        yield from () if combined is None else read_by(combined, catalog)
    for name in body.stream_names:
        stream = catalog.stream(name)
        while stream is not None and isinstance(stream.source, nodes.DerivedSource):
            stream = catalog.stream(stream.source.stream)
        source = None if stream is None else stream.source
        read = catalog.query(source.name) if isinstance(source, nodes.QuerySource) else None
        yield from () if read is None else (read,)


def in_order(names: Collection[str], catalog: Catalog) -> Iterator[Stream]:
    """The streams of answers among names, none of which is part of a cycle, each after those that it depends on."""
    done: set[str] = set()

    def visit(name: str) -> Iterator[Stream]:
        stream = catalog.stream(name)
        if stream is None or name in done:
            return
        done.add(name)
        if isinstance(stream.source, nodes.DerivedSource):
            yield from visit(stream.source.stream.lower())
        if isinstance(stream.source, nodes.QuerySource):
            yield from queries(stream.source.name)
            if name in names:
                yield stream

    def queries(name: str) -> Iterator[Stream]:
        query = catalog.query(name)
        body = None if query is None else query.declaration.body
        for read in () if body is None else body.stream_names:
            yield from visit(read.lower())
        for operand in () if body is None else body.query_names:
            yield from queries(operand)

    for name in names:
        yield from visit(name)
