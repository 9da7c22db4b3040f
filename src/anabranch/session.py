"""The one public door: declare, bind, run, start, explain.

Example::

    import anabranch as ab
    s = ab.Session()
    s.execute(open("coffee.abq").read())
    s.run("coffee").show()
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from anabranch.binding.binder import bind, check_derived, declare
from anabranch.binding.bound import BoundQuery
from anabranch.binding.declarations import made
from anabranch.catalog import Catalog, Query, Relation, Stream
from anabranch.errors import AnabranchError, Finding, NotYetBuilt, WorkbookError
from anabranch.families import groups_of, job_for, plan_for, plan_of
from anabranch.language import nodes
from anabranch.language.findings import Findings
from anabranch.language.parser import parse
from anabranch.language.reading import read_workbook
from anabranch.language.unparse import unparse
from anabranch.plan import Plan
from anabranch.runtime import batch, streaming
from anabranch.runtime.checkpoint import Checkpoint
from anabranch.runtime.inputs import Input, partition_count
from anabranch.runtime.packets import Packing
from anabranch.runtime.sinks.files import AnswerFiles
from anabranch.runtime.sinks.function import to_function
from anabranch.runtime.sources.derived import layouts_of, reported, with_types_of
from anabranch.runtime.sources.files import FileInput, is_local, local_folder
from anabranch.runtime.sources.schema import layouts_for
from anabranch.runtime.spark import make_session
from anabranch.runtime.validation import validate_input
from anabranch.transport.job import JobContext
from anabranch.transport.operator import Counts
from anabranch.transport.packing import Layout
from anabranch.transport.state import FORMAT

#: Buckets of a stream: fixed for the life of its checkpoint, so enough of them for a larger machine than this.
STREAM_BUCKETS = 16

#: Readings are few and what is inferred from them is much: a partition takes its keys in so many parts, one at a time.
BUCKETS_A_PARTITION = 32


@dataclass(frozen=True, slots=True)
class SharedRun:
    """A query that was run together with others: the run of all of them, and what became of its rows."""

    run: batch.Run
    counts: Counts


class Session:
    """Declarations, inputs and runs on one Spark session.

    Parameters
    ----------
    spark : SparkSession, optional
        The session to run on. The default is the active one, or a new local one, started when it is needed.
    start : callable, optional
        Makes the Spark session where none is given.
    partitions : int, optional
        How many partitions the buckets of a query are spread over, which is how many tasks can work on them at a time.
        The default is a few a core in batch, more where the input is large, and one a core in streaming.

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
        self.catalog = Catalog()
        self._frames: dict[str, DataFrame] = {}
        self._paths: dict[str, str] = {}
        self._origins: dict[str, tuple[str, str]] = {}
        self._folders: dict[str, str] = {}
        self._runs: dict[str, batch.Run | SharedRun | streaming.StreamRun] = {}
        self._held: list[DataFrame] = []

    @property
    def spark(self) -> SparkSession:
        """The Spark session; started by its first use."""
        if self._spark is None:
            self._spark = self._start_spark()
        return self._spark

    # ------------------------------------------------------------ declarations

    def execute(self, text: str, file: str = "<workbook>") -> None:
        """Declare the statements of a workbook; relative paths in it are relative to `file`, or the current folder.

        Raises
        ------
        WorkbookError
            With everything that is wrong; nothing is then declared.
        """
        workbook = parse(text, file)
        findings = declare(workbook, self.catalog)
        if findings:
            raise WorkbookError(findings, text, file)
        folder = os.path.dirname(os.path.abspath(file)) if os.path.exists(file) else os.getcwd()
        for statement in workbook.statements:
            self._origins[statement.name.lower()] = (text, file)
            self._folders[statement.name.lower()] = folder

    def execute_file(self, path: str) -> None:
        """Declare the statements of a workbook file."""
        self.execute(read_workbook(path), path)

    def bind(self, name: str, source: DataFrame | str | os.PathLike[str]) -> None:
        """Give a stream or relation its input: a DataFrame, or the path of a file or folder."""
        entry = self.catalog.get(name)
        if not isinstance(entry, Stream | Relation):
            known = ", ".join(self.catalog.names((Stream, Relation))) or "none"
            raise AnabranchError(f"there is no stream or relation {name} to bind; declared are: {known}")
        self._frames.pop(name.lower(), None)
        self._paths.pop(name.lower(), None)
        if isinstance(source, str | os.PathLike):
            path = os.fspath(source)
            self._paths[name.lower()] = os.path.abspath(path) if is_local(path) else path
        else:
            self._frames[name.lower()] = source

    # ------------------------------------------------------------ queries

    def explain(self, name: str) -> Plan:
        """How a query will be answered: class, routing, cost, and why; needs no data and no Spark."""
        query = self._query(name)
        with self._errors_of(query.name):
            return plan_of(query, self.catalog)

    def run(self, name: str, strict: bool = False, counter: Any = None) -> DataFrame:
        """The answers to a query over the archive, as a lazy DataFrame in which every row carries its probability.

        Parameters
        ----------
        strict : bool
            Fail where a row must be set aside, instead of keeping it in the quarantine.
        counter : Spark accumulator, optional
            Counts the rows while they are read, for a progress bar.
        """
        query = self._query(name)
        run, _ = self._run([query], strict, counter)
        self._runs[query.name.lower()] = run
        return run.answers

    def run_all(
        self, names: Sequence[str] | None = None, strict: bool = False, counter: Any = None
    ) -> dict[str, DataFrame]:
        """The answers to several queries, all of them where none is named.

        Queries that can share one pass over their streams do (SEQUENCE, CONSTRAIN): they are run at once, and Spark
        keeps their answers until `release` is called. The answers of all others are lazy, as `run` gives them.
        """
        queries = self.catalog.queries() if names is None else [self._query(name) for name in names]
        answers: dict[str, DataFrame] = {}
        for group in self.groups(queries):
            if len(group) == 1:
                answers[group[0].name] = self.run(group[0].name, strict, counter)
            else:
                answers |= self._run_shared(group, strict, counter)
        return {query.name: answers[query.name] for query in queries}

    def groups(self, queries: Sequence[Query]) -> list[list[Query]]:
        """Queries that share one pass over their streams, together; every other by itself."""
        with self._errors_of(queries[0].name if queries else ""):
            return groups_of(queries, self.catalog)

    def release(self) -> None:
        """Let Spark forget the answers that `run_all` had it keep."""
        for frame in self._held:
            frame.unpersist()
        self._held.clear()

    def _run_shared(self, queries: Sequence[Query], strict: bool, counter: Any) -> dict[str, DataFrame]:
        run, job = self._run(queries, strict, counter)
        held = run.answers.persist()
        self._held.append(held)
        # Counting reads every answer, so that Spark holds them all, and the report is complete.
        found = {row["query"]: row["count"] for row in held.groupBy("query").count().collect()}
        counts = run.report()
        for number, query in enumerate(queries):
            own = replace(counts, answers=found.get(number, 0))
            self._runs[query.name.lower()] = SharedRun(run, own)
        return {query.name: job.answers_of(held, number) for number, query in enumerate(queries)}

    def _run(self, queries: Sequence[Query], strict: bool, counter: Any) -> tuple[batch.Run, Any]:
        """A batch run of one query, or of several that share it, and its job."""
        with self._errors_of(queries[0].name):
            bounds, inputs = self._resolve(queries)
            job = self._job(queries, bounds, inputs, live=False)
            sources = [inputs[stream.name.lower()] for stream in bounds[0].streams]
            n_partitions = self._partitions or partition_count(sources, self.spark.sparkContext.defaultParallelism)
            inferred = any(layout.derive is not None for layout in job.layouts)
            n_buckets = n_partitions * (BUCKETS_A_PARTITION if inferred else 1)
            # An inferred stream goes on to the newest reading of any key, so every bucket must learn of it.
            packings = [Packing(job, number, n_buckets, inferred, counter) for number in range(len(sources))]
            feeds = [source.feed(self.spark, each) for source, each in zip(sources, packings, strict=True)]
            return batch.run(job, feeds, n_partitions, strict), job

    def has_run(self, name: str) -> bool:
        """Whether a query has been run or started."""
        return name.lower() in self._runs

    def report(self, name: str) -> Counts:
        """What became of the rows of a query's last run: read, used, late, quarantined.

        After `run` it waits for an action on the answers that reads them all.
        """
        run = self._run_of(name)
        return run.report() if isinstance(run, batch.Run) else run.counts

    def quarantine(self, name: str) -> DataFrame:
        """The rows that the last batch run of a query set aside, with the reason."""
        run = self._run_of(name)
        if isinstance(run, SharedRun):
            return run.run.quarantine()
        if not isinstance(run, batch.Run):
            raise AnabranchError(f"{name} runs as a stream; its quarantine is written beside its answers")
        return run.quarantine()

    def rows(self, name: str) -> tuple[pa.Table, pa.Table]:
        """The rows of a stream's input as it was declared, all in memory and in no order; no query is run.

        Returns
        -------
        The rows that can be used, and those that cannot, each with the reason (stream, reason, row).
        """
        stream = self._stream(name)
        if isinstance(stream.source, nodes.DerivedSource):
            raise AnabranchError(f"{stream.name} is {made(stream.source)}, and has no rows but in a query")
        with self._errors_of(stream.name):
            source, _, layout = self._source_of(stream)
            return source.checked_rows(layout)

    def validate(self, name: str) -> DataFrame:
        """The rows of a stream's input that its model does not allow, with the reason; no query is run.

        The input of a stream that is inferred is its readings, of one that is predicted from positions those.
        """
        stream = self._stream(name)
        with self._errors_of(stream.name):
            source, read, layout = self._source_of(stream)
            return validate_input(source, read.model, layout)

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
            A folder; a stopped query goes on from it.
        output : str, optional
            A folder for the answers, one file a micro-batch, and for the quarantine (`_quarantine`).
        file_format : 'parquet', 'csv' or 'json'
        foreach_batch : callable, optional
            Takes the answers of a micro-batch, and its number, in the place of `output`; called again with the same
            number after a failure.
        trigger : dict, optional
            As for Spark's `trigger`; the default is a micro-batch as soon as the last is done.
        max_files : int, optional
            The most new files a micro-batch takes.
        strict : bool
            Fail where a row must be set aside, late ones included.
        """
        if (output is None) == (foreach_batch is None):
            raise AnabranchError("give start either an output folder or a foreach_batch function")
        sink = to_function(foreach_batch) if foreach_batch else AnswerFiles([str(output)], file_format)
        return self._start([self._query(name)], checkpoint, sink, trigger, max_files, strict)

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
        """Start several queries that share one pass over their streams (see `groups`), each with its own output folder.

        They share a checkpoint, so that a query can join or leave with a new one only. Quarantined rows are written
        once, beside the answers of the first.
        """
        queries = [self._query(name) for name in names]
        if len(self.groups(queries)) != 1:
            raise AnabranchError(f"{', '.join(names)} cannot share a pass; start each of Session.groups by itself")
        if len(outputs) != len(queries):
            raise AnabranchError(f"{len(queries)} queries have {len(outputs)} output folders; give one to each")
        return self._start(queries, checkpoint, AnswerFiles(outputs, file_format), trigger, max_files, strict)

    def _start(
        self, queries: Sequence[Query], checkpoint: str, output: streaming.Output, trigger: dict[str, Any] | None,
        max_files: int | None, strict: bool,
    ) -> StreamingQuery:  # fmt: skip
        name = queries[0].name
        with self._errors_of(name):
            place = Checkpoint(local_folder(checkpoint))
            bounds, inputs = self._resolve(queries, place)
            for bound in bounds:
                _refuse_unless_live(plan_for(bound))
            job = self._job(queries, bounds, inputs, live=True)
            schemas = {source.entry.name.lower(): source.schema for source in inputs.values()}
            place.claim(job.fingerprint, STREAM_BUCKETS, schemas)
            sink = output(place.id, job, len(queries))
            sources = [inputs[stream.name.lower()] for stream in bounds[0].streams]
            packings = [Packing(job, number, STREAM_BUCKETS, every=True) for number in range(len(sources))]
            feeds = [source.live_feed(each, max_files) for source, each in zip(sources, packings, strict=True)]
            run = streaming.start(
                self.spark, job, feeds, sink, name=name, checkpoint=place.spark, control=place.control,
                n_buckets=STREAM_BUCKETS, n_partitions=self._partitions or self.spark.sparkContext.defaultParallelism,
                trigger=trigger or {"processingTime": "0 seconds"}, strict=strict,
            )  # fmt: skip
        known = self._runs.get(name.lower())
        if isinstance(known, streaming.StreamRun):
            run.counts += known.counts
        for query in queries:
            self._runs[query.name.lower()] = run
        return run.query

    def end_input(self, checkpoint: str) -> None:
        """Say that no more input will come: a stream on this checkpoint then answers about everything it has read."""
        Checkpoint(local_folder(checkpoint)).end_input()

    # ------------------------------------------------------------ inside

    def _query(self, name: str) -> Query:
        query = self.catalog.query(name)
        if query is None:
            known = ", ".join(each.name for each in self.catalog.queries()) or "none"
            raise AnabranchError(f"there is no query {name}; declared are: {known}")
        return query

    def _stream(self, name: str) -> Stream:
        stream = self.catalog.stream(name)
        if stream is None:
            known = ", ".join(self.catalog.names((Stream,))) or "none"
            raise AnabranchError(f"there is no stream {name}; declared are: {known}")
        return stream

    def _source_of(self, stream: Stream) -> tuple[Input, Stream, Layout]:
        """The input of a stream by itself, what is read there (its readings, where it is inferred), and the layout."""
        source = self._open(stream, None)
        typed = source.typed_entry()
        read = typed if isinstance(typed, Stream) else stream
        (layout,) = layouts_for([read])
        if isinstance(stream.source, nodes.PredictedSource) and read.name != stream.name:
            layout = reported(stream, read, layout)
        return source, read, layout

    def _run_of(self, name: str) -> batch.Run | SharedRun | streaming.StreamRun:
        run = self._runs.get(self._query(name).name.lower())
        if run is None:
            raise AnabranchError(f"{name} has not been run yet")
        return run

    @contextmanager
    def _errors_of(self, name: str) -> Iterator[None]:
        """Errors say which text of which file they are about."""
        try:
            yield
        except WorkbookError as error:
            text, file = self._origins.get(name.lower(), ("", "<workbook>"))
            raise type(error)(error.findings, text, file) from None

    def _resolve(
        self, queries: Sequence[Query], place: Checkpoint | None = None
    ) -> tuple[list[BoundQuery], dict[str, Input]]:
        """Bind queries with the types their sources really have; the inputs are by lower-case name."""
        inputs: dict[str, Input] = {}
        typed = Catalog(dict(self.catalog.entries))
        for query in queries:
            bound = bind(query, self.catalog)
            entries: list[Stream | Relation] = [*bound.streams, *_relations([bound])]
            for entry in entries:
                if entry.name.lower() not in inputs:
                    inputs[entry.name.lower()] = self._open(entry, place)
                    typed.add(with_types_of(entry, inputs[entry.name.lower()].typed_entry()))
        return [bind(query, typed) for query in queries], inputs

    def _job(self, queries: Sequence[Query], bounds: Sequence[BoundQuery], inputs: dict[str, Input], live: bool) -> Any:
        for bound in bounds:
            refused = plan_for(bound).refused
            if refused is not None:
                raise WorkbookError([refused])
        relations = {relation.name.lower(): inputs[relation.name.lower()].rows() for relation in _relations(bounds)}
        layouts = self._layouts(bounds[0], inputs)
        described = [unparse(query.declaration) for query in queries]
        described += [unparse(_sourceless(stream)) for stream in bounds[0].streams]
        text = "\n".join([f"state format {FORMAT}", *described, *map(repr, layouts)])
        fingerprint = hashlib.sha256(text.encode()).hexdigest()
        folders = tuple(self._folders[query.name.lower()] for query in queries)
        return job_for(bounds, JobContext(layouts, relations, fingerprint, live, folders))

    def _layouts(self, bound: BoundQuery, inputs: dict[str, Input]) -> tuple[Layout, ...]:
        """What the workers read: the streams of a query, or what they are made from."""
        names = [stream.name.lower() for stream in bound.streams]
        read = [inputs[name].typed_entry() for name in names]
        streams = [each for each in read if isinstance(each, Stream)]
        return layouts_of(bound.streams, streams, [self._folders[name] for name in names])

    def _open(self, entry: Stream | Relation, place: Checkpoint | None) -> Input:
        """The source of a stream or relation, in streaming (`place`) with the schema it had when the stream began."""
        name = entry.name.lower()
        source = entry.source
        if name in self._frames:
            return Input(entry, self._frames[name].schema, frame=self._frames[name])
        if name in self._paths:
            source = nodes.FileSource(self._paths[name])
        if source is None:
            hint = f"write FROM 'path', give --input {entry.name}=path, or bind a DataFrame to it"
            raise WorkbookError([Finding("no-source", f"{entry.name} has no input", hint, entry.declaration.span)])
        if isinstance(source, nodes.FileSource):
            files = FileInput(self.spark, entry, source, self._folders[name])
            saved = place.schema(name) if place else None
            return Input(entry, saved or files.schema(entry.columns), files=files)
        if isinstance(source, nodes.TableSource):
            return self._open_table(entry, source, place)
        if isinstance(source, nodes.QuerySource) and place is None:
            frame = self.run(source.name)
            return Input(entry, frame.schema, frame=frame)
        if isinstance(source, nodes.QuerySource):
            what = "FROM QUERY cannot stream"
            raise NotYetBuilt([Finding("not-yet-built", what, "use a file or a table", source.span)])
        return self._open(self._made_from(entry, source), place)

    def _made_from(self, entry: Stream | Relation, source: nodes.DerivedSource) -> Stream:
        """The stream whose rows another is made from, if it can be; it may have been declared anew since."""
        read, findings = self.catalog.stream(source.stream), Findings()
        if isinstance(entry, Stream):
            check_derived(entry, source, self.catalog, findings)
        if findings or read is None:
            raise WorkbookError(findings.in_order())
        return read

    def _open_table(self, entry: Stream | Relation, source: nodes.TableSource, place: Checkpoint | None) -> Input:
        if not self.spark.catalog.tableExists(source.name):
            known = ", ".join(table.name for table in self.spark.catalog.listTables()[:10]) or "none"
            message = f"there is no Spark table {source.name}"
            raise WorkbookError([Finding("source", message, f"the current database has: {known}", source.span)])
        live = place is not None and isinstance(entry, Stream)
        frame = self.spark.readStream.table(source.name) if live else self.spark.table(source.name)
        return Input(entry, frame.schema, frame=frame)


def _relations(bounds: Sequence[BoundQuery]) -> list[Relation]:
    """The relations that queries ask, each once."""
    asked = (relation for bound in bounds for relation in bound.declared_relations)
    return list({relation.name.lower(): relation for relation in asked}.values())


def _refuse_unless_live(plan: Plan) -> None:
    if plan.streams != "yes":
        finding = Finding("cannot-stream", f"{plan.query} cannot stream: {plan.streams}", "", plan.span)
        raise WorkbookError([finding])


def _sourceless(stream: Stream) -> nodes.CreateStream:
    """What a stream is, wherever it lies: moving a folder does not make saved state another query's."""
    return replace(stream.declaration, source=None)
