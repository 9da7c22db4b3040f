"""The declarations and inputs of a session: statements are declared, inputs bound, and errors get their location."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from anabranch.binding.derived_streams import derivation_word
from anabranch.binding.undeclared_streams import declaration_of
from anabranch.catalog import Catalog, Query, Relation, Stream
from anabranch.errors import AnabranchError, Finding, WorkbookError
from anabranch.language import nodes
from anabranch.language.parser import parse
from anabranch.planning.files import file_findings
from anabranch.planning.planner import Planner
from anabranch.runtime.execution import open_stream
from anabranch.runtime.sources.bindings import Bindings
from anabranch.runtime.validation import valid_rows, validate_input


class Workspace:
    """Declarations, where each comes from, and the inputs that are bound to them.

    Parameters
    ----------
    spark : gives the Spark session
    run : the answers of a query, for streams that are declared FROM QUERY
    """

    def __init__(self, spark: Callable[[], SparkSession], run: Callable[[str], DataFrame]) -> None:
        self.planner = Planner()
        self.bindings = Bindings(self.catalog, spark, run)
        self._origins: dict[str, tuple[str, str]] = {}

    @property
    def catalog(self) -> Catalog:
        """The declared streams, relations and queries."""
        return self.planner.catalog

    def declare(self, workbook: nodes.Workbook, text: str, file: str) -> None:
        """Declare all statements of a workbook, or none if it has errors."""
        findings = self.planner.declare(workbook)
        if findings:
            raise WorkbookError(findings, text, file)
        folder = os.path.dirname(os.path.abspath(file)) if os.path.exists(file) else os.getcwd()
        for statement in workbook.statements:
            self._origins[statement.name.lower()] = (text, file)
            self.bindings.folders[statement.name.lower()] = folder

    def bind(self, name: str, source: Any, columns: Sequence[str] | None = None) -> None:
        """Set the input of a declared stream or relation."""
        entry = self.catalog.get(name)
        if not isinstance(entry, Stream | Relation):
            known = ", ".join(self.catalog.names((Stream, Relation))) or "none"
            raise AnabranchError(f"there is no stream or relation {name} to bind; declared are: {known}")
        if isinstance(entry, Stream) and isinstance(entry.source, nodes.QuerySource):
            self.planner.take_input(entry)
        self.bindings.bind(entry, source, columns)

    def declare_with_inputs(self, workbook: nodes.Workbook, text: str, inputs: Mapping[str, Any]) -> None:
        """Declare a workbook and bind its inputs; an input that is not declared gets its layout from its columns."""
        stated = {statement.name.lower() for statement in workbook.statements}
        new = [name for name in inputs if name.lower() not in stated and self.catalog.get(name) is None]
        bodies = [node.body for node in workbook.statements if isinstance(node, nodes.CreateQuery)]
        inferred = parse("".join(self._declaration(name, inputs[name], bodies) for name in new))
        self.declare(nodes.Workbook((*inferred.statements, *workbook.statements)), text, "<query>")
        for name in inputs.keys() - new:
            self.bind(name, inputs[name])

    def _declaration(self, name: str, source: Any, bodies: Sequence[nodes.QueryBody]) -> str:
        """Bind an input that is not declared yet, and return its declaration for the query that reads it."""
        unknown = Relation(name, (), nodes.CreateRelation(name, ()))
        self.bindings.folders[name.lower()] = os.getcwd()
        self.bindings.bind(unknown, source)
        users = [body for body in bodies if name.lower() in map(str.lower, body.stream_names)]
        return declaration_of(name, self.bindings.columns_of(unknown), (users or bodies)[0]) + ";"

    def objections(self, queries: Sequence[Query]) -> list[Finding]:
        """Every reason why one of the queries cannot run, such as a missing file; empty if there is none."""
        findings = self.planner.objections(queries)
        if findings:
            return findings
        read = self.planner.with_read(queries)
        missing = self.bindings.missing_files(self.planner.bound(query) for query in read)
        prepared = [self.planner.prepare(query) for query in read]
        folders, bound = self.bindings.folders, self.bindings.bound_names
        return [*missing, *file_findings(prepared, self.catalog, lambda name: folders[name.lower()], bound)]

    def checked_rows(self, name: str) -> tuple[pa.Table, pa.Table]:
        """The valid rows of a stream's input, and the others with the reason."""
        stream = self.catalog.require_stream(name)
        if isinstance(stream.source, nodes.DerivedSource):
            raise AnabranchError(
                f"{stream.name} is {derivation_word(stream.source)}, so it has no input; Session.rows derives its rows"
            )
        with self.errors_of(stream.name):
            source, layout = open_stream(self.bindings, stream)
            return source.checked_rows(layout)

    def valid_rows(self, name: str) -> DataFrame:
        """The rows of a stream's input that its model allows."""
        stream = self.catalog.require_stream(name)
        with self.errors_of(stream.name):
            return valid_rows(*open_stream(self.bindings, stream))

    def invalid_rows(self, name: str) -> DataFrame:
        """The rows of a stream's input that its model does not allow, with the reason."""
        stream = self.catalog.require_stream(name)
        with self.errors_of(stream.name):
            return validate_input(*open_stream(self.bindings, stream))

    def copy_from(self, other: Workspace) -> None:
        """Take over the declarations and inputs of another session."""
        self.catalog.entries.update(other.catalog.entries)
        self.bindings.copy_from(other.bindings)
        self._origins.update(other._origins)

    @contextmanager
    def errors_of(self, name: str) -> Iterator[None]:
        """Add the text and the file of the workbook that declares a name to errors."""
        try:
            yield
        except WorkbookError as error:
            text, file = self._origins.get(name.lower(), ("", "<workbook>"))
            raise type(error)(error.findings, text, file) from None
