"""The planner of a session: declares workbooks, and prepares each query once for all that use it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from anabranch.binding.answer_streams import answers_read, read_by
from anabranch.binding.binder import bind, bind_workbook
from anabranch.binding.bound import BoundQuery
from anabranch.binding.message_columns import schema_path
from anabranch.catalog import Catalog, Query, Relation, Stream
from anabranch.errors import Finding, WorkbookError
from anabranch.language import nodes
from anabranch.language.findings import Findings
from anabranch.planning.prepared import Prepared, prepare

#: How many queries share one pass at most where each has operators of its own, which are in memory together.
MOST_TOGETHER = 8


class Planner:
    """The declarations of a session, and its prepared queries; these are kept until a declaration changes."""

    def __init__(self, catalog: Catalog | None = None) -> None:
        self.catalog = Catalog() if catalog is None else catalog
        self._bound: dict[str, BoundQuery] = {}
        self._prepared: dict[str, Prepared] = {}

    def declare(self, workbook: nodes.Workbook) -> list[Finding]:
        """Declare the statements of a workbook; with findings, nothing is declared."""
        prepared: dict[str, Prepared] = {}

        def examine(query: Query, bound: BoundQuery, catalog: Catalog) -> list[Finding]:
            try:
                prepared[query.name.lower()] = prepare(query, bound, catalog)
            except WorkbookError as error:
                return error.findings
            return []

        result = bind_workbook(workbook, self.catalog, examine)
        if result.findings:
            findings = Findings()
            refused = (query.plan.refused for query in prepared.values())
            findings.items = [*result.findings, *filter(None, refused)]
            return findings.in_order()
        # A query of another workbook may use a stream that was declared again.
        self._bound, self._prepared = result.queries, prepared
        return []

    def take_input(self, stream: Stream) -> None:
        """Declare that the rows of a stream of answers are those of an input, so they have no lineage any more."""
        self.catalog.add(replace(stream, declaration=replace(stream.declaration, source=None)))
        self._bound, self._prepared = {}, {}

    def bound(self, query: Query) -> BoundQuery:
        """The query with its names resolved to the current declarations."""
        name = query.name.lower()
        if name not in self._bound:
            self._bound[name] = bind(query, self.catalog)
        return self._bound[name]

    def prepare(self, query: Query) -> Prepared:
        """The query with its analysis and plan, for the types that are declared.

        Raises
        ------
        WorkbookError
            If the query is invalid.
        """
        name = query.name.lower()
        if name not in self._prepared:
            self._prepared[name] = prepare(query, self.bound(query), self.catalog)
        return self._prepared[name]

    def with_types(self, group: Sequence[Prepared], entries: Mapping[str, Stream | Relation]) -> list[Prepared]:
        """Prepare queries again for the types that their sources have, where these differ from the declared ones.

        `entries` are the typed streams and relations, by lower-case name.
        """
        changed = {name: entry for name, entry in entries.items() if entry != self.catalog.get(name)}
        if not changed:
            return list(group)
        typed = Catalog({**self.catalog.entries, **changed})
        return [prepare(prepared.query, bind(prepared.query, typed), typed) for prepared in group]

    def groups(self, queries: Sequence[Query], live: bool = False) -> list[list[Query]]:
        """Queries that share one pass over their streams, together; every other query alone.

        Over archives, these are all queries of one kind over the same streams. On live inputs only those of kinds that
        answer several queries at once: the others would gain the reading only, and could not be restarted one by one.
        """
        groups: dict[object, list[Query]] = {}
        for query in queries:
            bound = self.bound(query)
            streams = tuple(sorted(stream.name.lower() for stream in bound.streams))
            together = bound.shares_pass or not live
            groups.setdefault((bound.kind, streams) if together else query.name, []).append(query)
        return [part for group in groups.values() for part in self._parts(group)]

    def _parts(self, group: list[Query]) -> list[list[Query]]:
        """A group in parts of at most MOST_TOGETHER queries, if its kind answers each query by itself."""
        size = len(group) if self.bound(group[0]).shares_pass else MOST_TOGETHER
        return [group[start : start + size] for start in range(0, len(group), size)]

    def names_files(self, query: Query) -> bool:
        """Whether a run of the query reads files besides its data, or makes tables from them, which can fail."""
        bound = self.bound(query)
        named = (
            isinstance(stream.source, nodes.InferredSource)
            or schema_path(stream.source) is not None
            or any(law.path for _, law in stream.segment_laws)
            for stream in bound.streams
        )
        return bound.has_tables or query.declaration.calibrated is not None or any(named)

    def with_read(self, queries: Iterable[Query]) -> list[Query]:
        """The queries, and those whose answers they read, also through others."""
        found: dict[str, Query] = {}
        waiting = list(queries)
        while waiting:
            query = waiting.pop(0)
            if query.name.lower() not in found:
                found[query.name.lower()] = query
                waiting += read_by(query, self.catalog)
        return list(found.values())

    def answers_read(self, query: Query) -> list[tuple[str, Stream, Query]]:
        """The streams of answers that a run of a query reads, for which streams, and the queries that give them."""
        return list(answers_read(self.prepare(query).bound, self.catalog))

    def chain(self, queries: Iterable[Query]) -> list[Query]:
        """The queries that run if these are run, besides them: each after those whose answers it reads."""
        found: dict[str, Query] = {}

        def visit(query: Query) -> None:
            for _, _, read in self.answers_read(query):
                if read.name.lower() not in found:
                    visit(read)
                    found[read.name.lower()] = read

        for query in queries:
            visit(query)
        return list(found.values())

    def objections(self, queries: Iterable[Query]) -> list[Finding]:
        """Every reason why one of the queries cannot run, as far as it is known without any file."""
        findings: list[Finding] = []
        for query in self.with_read(queries):
            try:
                refused = self.prepare(query).plan.refused
            except WorkbookError as error:
                findings += error.findings
            else:
                findings += [refused] if refused else []
        return findings
