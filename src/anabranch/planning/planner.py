"""The planner of a session: declares workbooks, and prepares each query once for all that use it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from anabranch.binding.binder import bind, bind_workbook
from anabranch.binding.bound import BoundQuery
from anabranch.catalog import Catalog, Query, Relation, Stream
from anabranch.errors import Finding, WorkbookError
from anabranch.language import nodes
from anabranch.planning.prepared import Prepared, prepare


class Planner:
    """The declarations of a session, and its prepared queries; these are kept until a declaration changes."""

    def __init__(self, catalog: Catalog | None = None) -> None:
        self.catalog = Catalog() if catalog is None else catalog
        self._bound: dict[str, BoundQuery] = {}
        self._prepared: dict[str, Prepared] = {}

    def declare(self, workbook: nodes.Workbook) -> list[Finding]:
        """Declare the statements of a workbook; with findings, nothing is declared."""
        result = bind_workbook(workbook, self.catalog)
        if not result.findings:
            # A query of another workbook may use a stream that was declared again.
            self._bound = result.queries
            self._prepared.clear()
        return result.findings

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
            self._prepared[name] = prepare(query, self.bound(query))
        return self._prepared[name]

    def with_types(self, group: Sequence[Prepared], entries: Mapping[str, Stream | Relation]) -> list[Prepared]:
        """Prepare queries again for the types that their sources have, where these differ from the declared ones.

        `entries` are the typed streams and relations, by lower-case name.
        """
        changed = {name: entry for name, entry in entries.items() if entry != self.catalog.get(name)}
        if not changed:
            return list(group)
        typed = Catalog({**self.catalog.entries, **changed})
        return [prepare(prepared.query, bind(prepared.query, typed)) for prepared in group]

    def groups(self, queries: Sequence[Query]) -> list[list[Query]]:
        """Queries that share one pass over their streams, together; every other query alone."""
        groups: dict[object, list[Query]] = {}
        for query in queries:
            bound = self.bound(query)
            streams = tuple(sorted(stream.name.lower() for stream in bound.streams))
            groups.setdefault((bound.kind, streams) if bound.shares_pass else query.name, []).append(query)
        return list(groups.values())

    def objections(self, queries: Iterable[Query]) -> list[Finding]:
        """Every reason why one of the queries cannot run; empty if there is none."""
        findings: list[Finding] = []
        for query in queries:
            try:
                refused = self.prepare(query).plan.refused
            except WorkbookError as error:
                findings += error.findings
            else:
                findings += [refused] if refused else []
        return findings
