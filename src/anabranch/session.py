"""`Session`: the public API. Declares workbooks, binds inputs, explains, runs and starts queries.

Example::

    import anabranch as ab
    s = ab.Session()
    s.execute(open("coffee.abq").read())
    s.run("coffee").show()
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from anabranch.binding.derived_streams import derivation_word
from anabranch.binding.undeclared_streams import declaration_of
from anabranch.catalog import Catalog, Query, Relation, Stream
from anabranch.errors import AnabranchError, Finding, InputWarning, WorkbookError
from anabranch.language import nodes
from anabranch.language.parser import parse
from anabranch.language.reading import read_workbook
from anabranch.language.unparse import unparse
from anabranch.plan import Plan
from anabranch.planning.planner import Planner
from anabranch.planning.prepared import Prepared
from anabranch.runtime import batch, execution, streaming
from anabranch.runtime.checkpoint import Checkpoint
from anabranch.runtime.finishing import finish_frame
from anabranch.runtime.sinks.files import AnswerFiles
from anabranch.runtime.sinks.function import to_function
from anabranch.runtime.sources.bindings import Bindings
from anabranch.runtime.sources.files import local_folder
from anabranch.runtime.spark import make_session
from anabranch.runtime.validation import validate_input
from anabranch.transport.operator import Counts

#: `repr` of a session lists at most this many names of each sort.
_MAX_NAMES = 10


def ask(query: str, /, **inputs: Any) -> DataFrame:
    """The answers of one query over inputs that are passed by name, as `Session.ask` without a session.

    Example::

        ab.ask("PATTERN door(x, 'in') THEN door(x, 'out') GROUP BY x", door="door.csv").show()

    It runs on the Spark session of the first Spark DataFrame among the inputs, else on the active one, or a new one.
    """
    spark = next((source.sparkSession for source in inputs.values() if isinstance(source, DataFrame)), None)
    return Session(spark).ask(query, **inputs)


class Session:
    """Declarations, inputs and runs on one Spark session.

    Parameters
    ----------
    spark : SparkSession, optional
        The Spark session to use. The default is the active one, or a new local one, started on first use.
    start : callable, optional
        Creates the Spark session if none is given.
    partitions : int, optional
        The number of partitions of a run, which limits its parallelism. The default is a few per core in batch, more
        for large inputs, and one per core in streaming.

    Examples
    --------
    >>> s = Session()
    >>> s.execute("CREATE STREAM door KEY (id STRING) VALUE (side STRING) TIME t INTEGER;")
    >>> s.execute("CREATE QUERY out AS PATTERN door(x, 'in') THEN door(x, 'out') GROUP BY x;")
    >>> print(s.explain("out").classification)
    extended regular
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        start: Callable[[], SparkSession] = make_session,
        partitions: int | None = None,
    ) -> None:
        if partitions is not None and partitions < 1:
            raise AnabranchError(f"a query needs at least 1 partition, not {partitions}")
        self._spark = spark
        self._start_spark = start
        self._partitions = partitions
        self._planner = Planner()
        self._bindings = Bindings(self.catalog, lambda: self.spark, lambda name: self.run(name))
        self._origins: dict[str, tuple[str, str]] = {}
        self._runs: dict[str, batch.Run | batch.GroupRun | streaming.StreamRun] = {}
        self._cached: list[DataFrame] = []
        #: The queries whose inputs were examined after their last run.
        self._examined: set[str] = set()

    def __repr__(self) -> str:
        parts = []
        for kind, one, many in (
            (Stream, "stream", "streams"),
            (Relation, "relation", "relations"),
            (Query, "query", "queries"),
        ):
            names = self.catalog.names((kind,))
            if names:
                shown = ", ".join(names[:_MAX_NAMES]) + (", ..." if len(names) > _MAX_NAMES else "")
                parts.append(f"{len(names)} {one if len(names) == 1 else many} ({shown})")
        return f"<Session: {', '.join(parts) or 'nothing declared'}>"

    def _repr_html_(self) -> str:
        rows = (
            f"<tr><th>{escape(entry.name)}</th><td>{entry.declaration.what}</td>"
            f"<td><code>{escape(unparse(entry.declaration))}</code></td></tr>"
            for entry in self.catalog.entries.values()
        )
        return f"<table><caption>Session</caption>{''.join(rows)}</table>"

    @property
    def spark(self) -> SparkSession:
        """The Spark session; started on first use."""
        if self._spark is None:
            self._spark = self._start_spark()
        return self._spark

    @property
    def catalog(self) -> Catalog:
        """The declared streams, relations and queries."""
        return self._planner.catalog

    def has_small_inputs(self) -> bool:
        """Whether all inputs are local files of at most a megabyte together; known before Spark starts."""
        return self._bindings.are_small()

    # ------------------------------------------------------------ declarations

    def execute(self, text: str, file: str = "<workbook>", or_replace: bool = False) -> None:
        """Declare the statements of a workbook. Paths in it are relative to `file`, or to the current folder.

        With `or_replace`, each CREATE is a CREATE OR REPLACE: a file that has changed can be declared again.

        Raises
        ------
        WorkbookError
            With all findings; nothing is declared then.
        """
        workbook = parse(text, file)
        if or_replace:
            statements = tuple(replace(statement, or_replace=True) for statement in workbook.statements)
            workbook = replace(workbook, statements=statements)
        self._declare(workbook, text, file)

    def _declare(self, workbook: nodes.Workbook, text: str, file: str) -> None:
        findings = self._planner.declare(workbook)
        if findings:
            raise WorkbookError(findings, text, file)
        folder = os.path.dirname(os.path.abspath(file)) if os.path.exists(file) else os.getcwd()
        for statement in workbook.statements:
            self._runs.pop(statement.name.lower(), None)  # of a query that is now replaced
            self._origins[statement.name.lower()] = (text, file)
            self._bindings.folders[statement.name.lower()] = folder

    def execute_file(self, path: str) -> None:
        """Declare the statements of a workbook file."""
        self.execute(read_workbook(path), path)

    def bind(self, name: str, source: Any, columns: Sequence[str] | None = None) -> None:
        """Set the input of a stream or relation.

        Parameters
        ----------
        name : str
            A declared stream or relation. Its columns are found by name, in any order; others are ignored.
        source : DataFrame, Arrow table, list of rows, or path
            A Spark DataFrame (batch or streaming); a pandas or Polars DataFrame, or any object with the Arrow
            PyCapsule interface; a list of dicts, named tuples, dataclasses or tuples; or the path of a file or folder.
            Times without a zone are in UTC.
        columns : sequence of str, optional
            The column names of rows that are tuples.

        Examples
        --------
        >>> s = Session()
        >>> s.execute("CREATE STREAM door KEY (id) VALUE (side) TIME t;")
        >>> s.bind("door", [{"id": 1, "side": "in", "t": 5}, {"id": 1, "side": "out", "t": 9}])
        """
        entry = self.catalog.get(name)
        if not isinstance(entry, Stream | Relation):
            known = ", ".join(self.catalog.names((Stream, Relation))) or "none"
            raise AnabranchError(f"there is no stream or relation {name} to bind; declared are: {known}")
        self._bindings.bind(entry, source, columns)

    # ------------------------------------------------------------ one query in one line

    def ask(self, query: str, /, **inputs: Any) -> DataFrame:
        """The answers of a query that is not declared; the session does not change.

        Parameters
        ----------
        query : str
            The query, without `CREATE QUERY name AS`. Declarations may precede it.
        inputs : as for `bind`
            Inputs of streams and relations by name, for this query only. A name that is not declared gets its layout
            from the columns: `t`, or the only TIMESTAMP or DATE, is the time; `p` the probability; the first other
            column is the key, the second the value. A name that the query does not use as a stream is a relation.
        """
        workbook = parse(query, "<query>", bare=True)
        asked = [statement for statement in workbook.statements if isinstance(statement, nodes.CreateQuery)]
        if len(asked) != 1:
            raise AnabranchError(f"ask takes one query, and this text has {len(asked)}; use execute and run_all")
        copy = self._copy()
        stated = {statement.name.lower() for statement in workbook.statements}
        new = [name for name in inputs if name.lower() not in stated and self.catalog.get(name) is None]
        inferred = parse("".join(copy._declaration(name, inputs[name], asked[0].body) for name in new))
        copy._declare(nodes.Workbook((*inferred.statements, *workbook.statements)), query, "<query>")
        for name in inputs.keys() - new:
            copy.bind(name, inputs[name])
        return copy.run(asked[0].name)

    def _copy(self) -> Session:
        """A session with the same declarations and inputs, and its own from then on."""
        copy = Session(self._spark, lambda: self.spark, self._partitions)
        copy.catalog.entries.update(self.catalog.entries)
        copy._bindings.copy_from(self._bindings)
        copy._origins.update(self._origins)
        return copy

    def _declaration(self, name: str, source: Any, query: nodes.QueryBody) -> str:
        """Bind an input that is not declared yet, and return its declaration."""
        unknown = Relation(name, (), nodes.CreateRelation(name, ()))
        self._bindings.folders[name.lower()] = os.getcwd()
        self._bindings.bind(unknown, source)
        return declaration_of(name, self._bindings.columns_of(unknown), query) + ";"

    # ------------------------------------------------------------ planning

    def explain(self, name: str) -> Plan:
        """How a query will be answered: class, routing, cost, and why. Needs neither data nor Spark."""
        return self.prepare(name).plan

    def prepare(self, name: str) -> Prepared:
        """The bound query, its analysis and its plan, for the declared types; without a job."""
        query = self.catalog.require_query(name)
        with self._errors_of(query.name):
            return self._planner.prepare(query)

    def objections(self, queries: Sequence[Query]) -> list[Finding]:
        """Every reason why one of the queries cannot run, such as a missing file; empty if there is none."""
        findings = self._planner.objections(queries)
        return findings or self._bindings.missing_files(self._planner.bound(query) for query in queries)

    def groups(self, queries: Sequence[Query]) -> list[list[Query]]:
        """Queries that share one pass over their streams, together; every other query alone."""
        with self._errors_of(queries[0].name if queries else ""):
            return self._planner.groups(queries)

    # ------------------------------------------------------------ batch

    def run(self, name: str, strict: bool = False, counter: Any = None) -> DataFrame:
        """The answers of a query over the archive, as a lazy DataFrame; every row has its probability.

        Parameters
        ----------
        strict : bool
            Fail on the first invalid row instead of quarantining it.
        counter : RowCounter, optional
            Counts rows as they are read, for a progress bar.
        """
        query = self.catalog.require_query(name)
        with self._errors_of(query.name):
            resolved = execution.resolve(self._planner, self._bindings, [query])
            run = execution.run_batch(self.spark, resolved, self._partitions, strict, counter)
        self._runs[query.name.lower()] = run
        self._examined.discard(query.name.lower())
        return run.answers

    def run_all(
        self, names: Sequence[str] | None = None, strict: bool = False, counter: Any = None
    ) -> dict[str, DataFrame]:
        """The answers of several queries; the default is all.

        Queries that share one pass over their streams (SEQUENCE, CONSTRAIN) are run at once, and Spark caches their
        answers until `release` is called. The answers of all others are lazy, as those of `run`.
        """
        queries = self.catalog.queries() if names is None else [self.catalog.require_query(name) for name in names]
        answers: dict[str, DataFrame] = {}
        for group in self.groups(queries):
            if len(group) == 1:
                answers[group[0].name] = self.run(group[0].name, strict, counter)
            else:
                answers |= self._run_group(group, strict, counter)
        return {query.name: answers[query.name] for query in queries}

    def _run_group(self, queries: Sequence[Query], strict: bool, counter: Any) -> dict[str, DataFrame]:
        with self._errors_of(queries[0].name):
            resolved = execution.resolve(self._planner, self._bindings, queries)
            run = execution.run_batch(self.spark, resolved, self._partitions, strict, counter)
        cached = run.answers.persist()
        self._cached.append(cached)
        # Counting reads every answer, so that all are cached and the counts are complete.
        n_answers = {row["query"]: row["count"] for row in cached.groupBy("query").count().collect()}
        counts = run.counts()
        for number, query in enumerate(queries):
            self._runs[query.name.lower()] = batch.GroupRun(run, replace(counts, answers=n_answers.get(number, 0)))
            self._examined.discard(query.name.lower())
        return {
            query.name: finish_frame(resolved.job.finishing(number), cached) for number, query in enumerate(queries)
        }

    def release(self) -> None:
        """Remove the answers that `run_all` has cached."""
        for frame in self._cached:
            frame.unpersist()
        self._cached.clear()

    # ------------------------------------------------------------ what happened to the rows

    def has_run(self, name: str) -> bool:
        """Whether a query has been run or started."""
        return name.lower() in self._runs

    def counts(self, name: str) -> Counts:
        """What happened to the rows of a query's last run: read, used, duplicate, late, quarantined.

        After `run`, it blocks until an action has read all answers. Gives an `InputWarning`, once for each run, for
        each input of which most rows were quarantined, or that has no rows.
        """
        run = self._run_of(name)
        if not isinstance(run, streaming.StreamRun) and name.lower() not in self._examined:
            for _, doubt in self.doubts(name):
                warnings.warn(doubt, InputWarning, stacklevel=2)
        return run.counts() if isinstance(run, batch.Run) else run.counts

    def doubts(self, name: str) -> list[tuple[Stream, str]]:
        """The inputs of a query's last batch run that are probably wrong, with the reason and the likely fix.

        These are inputs of which most rows were quarantined, or that have no rows.
        """
        run = self._run_of(name)
        if isinstance(run, streaming.StreamRun):
            raise AnabranchError(f"{name} runs as a stream; only the inputs of a batch run are examined")
        whole = _whole(run)
        for other, its_run in self._runs.items():
            if not isinstance(its_run, streaming.StreamRun) and _whole(its_run) is whole:
                self._examined.add(other)
        return execution.doubts(whole, self._bindings, self.catalog)

    def absent_values(self, name: str) -> list[str]:
        """The constants of a query that no row of its inputs has, and the values that rows have. Reads the inputs."""
        query = self.catalog.require_query(name)
        with self._errors_of(query.name):
            return execution.absent_values(self._bindings, self._planner.bound(query))

    def quarantine(self, name: str) -> DataFrame:
        """The rows that the last batch run of a query quarantined, with the reason."""
        run = self._run_of(name)
        if isinstance(run, streaming.StreamRun):
            raise AnabranchError(f"{name} runs as a stream; its quarantine is written next to its answers")
        return _whole(run).quarantine()

    def rows(self, name: str) -> tuple[pa.Table, pa.Table]:
        """The rows of a stream's input, all in memory and in no order; no query is run.

        Returns
        -------
        The valid rows, and the others with the reason (stream, reason, row).
        """
        stream = self.catalog.require_stream(name)
        if isinstance(stream.source, nodes.DerivedSource):
            raise AnabranchError(
                f"{stream.name} is {derivation_word(stream.source)}; it has rows only while a query runs"
            )
        with self._errors_of(stream.name):
            source, layout = execution.open_stream(self._bindings, stream)
            return source.checked_rows(layout)

    def validate(self, name: str) -> DataFrame:
        """The rows of a stream's input that its model does not allow, with the reason; no query is run.

        The input of a derived stream is that of the stream that it is derived from.
        """
        stream = self.catalog.require_stream(name)
        with self._errors_of(stream.name):
            return validate_input(*execution.open_stream(self._bindings, stream))

    # ------------------------------------------------------------ streaming

    def start(
        self,
        name: str,
        checkpoint: str,
        output: str | None = None,
        file_format: str = "parquet",
        foreach_batch: Callable[[DataFrame, int], None] | None = None,
        trigger: dict[str, Any] | None = None,
        max_files: int | None = None,
        strict: bool = False,
    ) -> StreamingQuery:
        """Start a query on live inputs.

        Parameters
        ----------
        checkpoint : str
            Checkpoint folder; a restarted stream resumes from it.
        output : str, optional
            Folder for the answers, one file per micro-batch. Quarantined rows go to `_quarantine` next to it.
        file_format : 'parquet', 'csv' or 'json'
        foreach_batch : callable, optional
            Called with the answers of each micro-batch and its number, instead of `output`. After a failure it is
            called again with the same number.
        trigger : dict, optional
            As for Spark's `trigger`; the default starts a micro-batch as soon as the previous one is done.
        max_files : int, optional
            The maximum number of new files per micro-batch.
        strict : bool
            Fail on the first invalid or late row instead of quarantining it.
        """
        if (output is None) == (foreach_batch is None):
            raise AnabranchError("start takes either an output folder or a foreach_batch function")
        sink = to_function(foreach_batch) if foreach_batch else AnswerFiles([str(output)], file_format)
        return self._start([self.catalog.require_query(name)], checkpoint, sink, trigger, max_files, strict)

    def start_together(
        self,
        names: Sequence[str],
        checkpoint: str,
        outputs: Sequence[str],
        file_format: str = "parquet",
        trigger: dict[str, Any] | None = None,
        max_files: int | None = None,
        strict: bool = False,
    ) -> StreamingQuery:
        """Start a group of queries that share one pass over their streams (see `groups`), each with its output folder.

        They share a checkpoint, so adding or removing a query needs a new one. Quarantined rows are written once, next
        to the answers of the first query.
        """
        queries = [self.catalog.require_query(name) for name in names]
        if len(self.groups(queries)) != 1:
            raise AnabranchError(f"{', '.join(names)} cannot share a pass; start each of Session.groups by itself")
        if len(outputs) != len(queries):
            raise AnabranchError(f"{len(queries)} queries have {len(outputs)} output folders; pass one for each query")
        return self._start(queries, checkpoint, AnswerFiles(outputs, file_format), trigger, max_files, strict)

    def _start(
        self, queries: Sequence[Query], folder: str, output: streaming.Output, trigger: dict[str, Any] | None,
        max_files: int | None, strict: bool,
    ) -> StreamingQuery:  # fmt: skip
        earlier = self._runs.get(queries[0].name.lower())
        counts = earlier.counts if isinstance(earlier, streaming.StreamRun) else Counts()
        with self._errors_of(queries[0].name):
            checkpoint = Checkpoint(local_folder(folder))
            resolved = execution.resolve(self._planner, self._bindings, queries, checkpoint)
            run = execution.start_stream(
                self.spark, resolved, checkpoint, output, self._partitions, trigger, max_files, strict, counts
            )
        for query in queries:
            self._runs[query.name.lower()] = run
        return run.query

    def end_input(self, checkpoint: str) -> None:
        """Mark the end of the input: a stream on this checkpoint then answers about all rows that it has read."""
        Checkpoint(local_folder(checkpoint)).end_input()

    # ------------------------------------------------------------ look-ups

    def _run_of(self, name: str) -> batch.Run | batch.GroupRun | streaming.StreamRun:
        run = self._runs.get(self.catalog.require_query(name).name.lower())
        if run is None:
            raise AnabranchError(f"{name} has not been run yet")
        return run

    @contextmanager
    def _errors_of(self, name: str) -> Iterator[None]:
        """Add the text and the file of the workbook to errors."""
        try:
            yield
        except WorkbookError as error:
            text, file = self._origins.get(name.lower(), ("", "<workbook>"))
            raise type(error)(error.findings, text, file) from None


def _whole(run: batch.Run | batch.GroupRun) -> batch.Run:
    """The run of a query, or of the group that it is in."""
    return run.run if isinstance(run, batch.GroupRun) else run
