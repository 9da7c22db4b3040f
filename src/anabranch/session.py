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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from anabranch.binding.binder import lineage_of
from anabranch.catalog import Catalog, Query, Stream
from anabranch.errors import AnabranchError, DataError, Finding, InputWarning
from anabranch.evaluation import Evaluation, evaluate
from anabranch.evaluation.files import read_table
from anabranch.language import nodes
from anabranch.language.parser import parse
from anabranch.language.reading import read_workbook
from anabranch.plan import Plan
from anabranch.planning.prepared import Prepared
from anabranch.plotting import plot
from anabranch.runtime import estimates, execution, streaming
from anabranch.runtime.chains import AnswersElsewhere, Chain, chained, running
from anabranch.runtime.checkpoint import Checkpoint
from anabranch.runtime.evidence import collect_rows, invalid_rows, newest_times
from anabranch.runtime.file_system import open_folder, split_address
from anabranch.runtime.lineage import check_lineage, with_lineage
from anabranch.runtime.readiness import make_ready
from anabranch.runtime.relay import Relay
from anabranch.runtime.runs import Runs
from anabranch.runtime.sinks.declared import declared_target
from anabranch.runtime.sinks.files import FolderTarget, to_quarantine
from anabranch.runtime.sinks.function import to_function
from anabranch.runtime.sinks.target import AnswerTarget, to_targets
from anabranch.runtime.sources.local_rows import local_table
from anabranch.runtime.spark import make_session
from anabranch.runtime.workspace import Workspace
from anabranch.transport.operator import Counts

if TYPE_CHECKING:
    from anabranch.explanation.explanation import Explanation
    from anabranch.explanation.why_not import WhyNot
    from anabranch.plotting.chart import Chart


def ask(query: str, /, **inputs: Any) -> DataFrame:
    """The answers of one query over inputs that are passed by name, as `Session.ask` without a session.

    Example::

        ab.ask("PATTERN door(x, 'in') THEN door(x, 'out') GROUP BY x", door="door.csv").show()

    It runs on the Spark session of the first Spark DataFrame among the inputs, else on the active one, or a new one.
    """
    spark = next((source.sparkSession for source in inputs.values() if isinstance(source, DataFrame)), None)
    return Session(spark).ask(query, **inputs)


def _checked(max_answers: int | None) -> int | None:
    """A limit on answers, which is at least 1; None is the default."""
    if max_answers is not None and max_answers < 1:
        raise AnabranchError(f"max_answers is at least 1, not {max_answers}")
    return max_answers


def _table(source: Any, name: str) -> pa.Table:
    """The rows of a file, a Spark DataFrame or rows in this process, all in memory."""
    if isinstance(source, str | os.PathLike):
        return read_table(os.fspath(source))
    return source.toArrow() if isinstance(source, DataFrame) else local_table(source, name)


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
    max_answers : int, optional
        How many answers a query may have in one step of a bucket, which is the whole run in batch. A query with more
        fails (`TooManyAnswers`), before they fill the memory. The default is 4,000,000 in batch and 1,000,000 in
        streaming. `run`, `run_all`, `start` and `start_together` can change it.

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
        max_answers: int | None = None,
    ) -> None:
        if partitions is not None and partitions < 1:
            raise AnabranchError(f"a query needs at least 1 partition, not {partitions}")
        self._spark = spark
        self._start_spark = start
        self._partitions = partitions
        self._max_answers = _checked(max_answers)
        self._workspace = Workspace(lambda: self.spark, self._answers_to_read)
        self._runs = Runs(self.catalog, self._workspace.bindings)
        #: The streams whose answers others read, by the address of their checkpoint.
        self._read_runs: dict[str, streaming.StreamRun] = {}

    def __repr__(self) -> str:
        return f"<Session: {self.catalog.summary()}>"

    def _repr_html_(self) -> str:
        return self.catalog.to_html("Session")

    @property
    def spark(self) -> SparkSession:
        """The Spark session; started on first use."""
        if self._spark is None:
            self._spark = self._start_spark()
        return self._spark

    @property
    def catalog(self) -> Catalog:
        """The declared streams, relations and queries."""
        return self._workspace.catalog

    def has_small_inputs(self) -> bool:
        """Whether all inputs are local files of at most a megabyte together; known before Spark starts."""
        return self._workspace.bindings.are_small()

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
        self._workspace.declare(workbook, text, file)
        for statement in workbook.statements:
            self._runs.forget(statement.name)

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
        self._workspace.bind(name, source, columns)

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
        asked = [statement for statement in workbook.written if isinstance(statement, nodes.CreateQuery)]
        if len(asked) != 1:
            raise AnabranchError(f"ask takes one query, and this text has {len(asked)}; use execute and run_all")
        copy = Session(self._spark, lambda: self.spark, self._partitions, self._max_answers)
        copy._workspace.copy_from(self._workspace)
        copy._workspace.declare_with_inputs(workbook, query, inputs)
        return copy.run(asked[0].name)

    # ------------------------------------------------------------ planning

    def explain(self, name: str) -> Plan:
        """How a query will be answered: class, routing, cost, and why. Needs neither data nor Spark."""
        return self.prepare(name).plan

    def estimate(self, name: str, rows: int = estimates.ROWS) -> Plan:
        """The plan of a query, with its number of answers and its memory estimated from a sample of its inputs.

        The inputs are counted, and about `rows` of their rows are run in this process. If there are no more rows, the
        number of answers is exact.
        """
        query = self.catalog.require_query(name)
        with self._workspace.errors_of(query.name):
            make_ready(self.spark)
            resolved = execution.resolve(self._workspace.planner, self._workspace.bindings, [query])
            return estimates.estimated_plan(resolved, execution.default_buckets(self.spark), rows)

    def prepare(self, name: str) -> Prepared:
        """The bound query, its analysis and its plan, for the declared types; without a job."""
        query = self.catalog.require_query(name)
        with self._workspace.errors_of(query.name):
            return self._workspace.planner.prepare(query)

    def objections(self, queries: Sequence[Query]) -> list[Finding]:
        """Every reason why one of the queries cannot run, such as a missing file; empty if there is none."""
        return self._workspace.objections(queries)

    def groups(self, queries: Sequence[Query], live: bool = False) -> list[list[Query]]:
        """Queries that share one pass over their streams, together; every other query alone.

        Over archives, all queries of one kind over the same streams do; with `live`, only SEQUENCE and CONSTRAIN.
        """
        with self._workspace.errors_of(queries[0].name if queries else ""):
            return self._workspace.planner.groups(queries, live)

    # ------------------------------------------------------------ batch

    def run(
        self,
        name: str,
        strict: bool = False,
        counter: Any = None,
        max_answers: int | None = None,
        lineage: bool = False,
    ) -> DataFrame:
        """The answers of a query over the archive, as a lazy DataFrame; every row has its probability.

        Parameters
        ----------
        strict : bool
            Fail on the first invalid row instead of quarantining it.
        counter : RowCounter, optional
            Counts rows as they are read, for a progress bar.
        max_answers : int, optional
            Overrides that of the session.
        lineage : bool
            Add the column `lineage`: the rows that each answer depends on, as stream, key, and first and last time.
            NULL means any key, and no bound on the time. Not for rows of several answers (PER).
        """
        query = self.catalog.require_query(name)
        if lineage:
            check_lineage(query)
        answers = self._run(query, strict, counter, max_answers)
        return self._with_lineage(query, answers) if lineage else answers

    def _answers_to_read(self, name: str) -> DataFrame:
        """The answers of a query for a stream of them (FROM QUERY)."""
        return self._run(self.catalog.require_query(name), ends=True)

    def _run(
        self,
        query: Query,
        strict: bool = False,
        counter: Any = None,
        max_answers: int | None = None,
        ends: bool = False,
    ) -> DataFrame:
        with self._workspace.errors_of(query.name):
            resolved = self._resolve([query], max_answers, ends=ends)
            run = execution.run_batch(self.spark, resolved.job, resolved.sources, self._partitions, strict, counter)
        self._runs.add(query, run)
        return run.answers

    def run_all(
        self,
        names: Sequence[str] | None = None,
        strict: bool = False,
        counter: Any = None,
        max_answers: int | None = None,
        lineage: bool = False,
    ) -> dict[str, DataFrame]:
        """The answers of several queries; the default is all.

        Queries of one kind over the same streams share one pass: they are run at once, and Spark caches their answers
        until `release` is called. The answers of all others are lazy, as those of `run`. If a query has more than
        `max_answers`, its pass fails; the error begins with its name. `lineage` is that of `run`.
        """
        queries = self.catalog.queries() if names is None else [self.catalog.require_query(name) for name in names]
        for query in queries if lineage else ():
            check_lineage(query)
        answers: dict[str, DataFrame] = {}
        for group in self.groups(queries):
            if len(group) == 1:
                answers[group[0].name] = self.run(group[0].name, strict, counter, max_answers)
            else:
                answers |= self._run_group(group, strict, counter, max_answers)
        if lineage:
            return {query.name: self._with_lineage(query, answers[query.name]) for query in queries}
        return {query.name: answers[query.name] for query in queries}

    def _with_lineage(self, query: Query, answers: DataFrame) -> DataFrame:
        return with_lineage(answers, lineage_of(query, self.catalog))

    def _resolve(
        self,
        queries: Sequence[Query],
        max_answers: int | None,
        checkpoint: Checkpoint | None = None,
        ends: bool = False,
    ) -> execution.Resolved:
        """A group of queries with their job; with a checkpoint, for live inputs."""
        most = self._max_answers if max_answers is None else _checked(max_answers)
        return execution.resolve(self._workspace.planner, self._workspace.bindings, queries, checkpoint, most, ends)

    def _run_group(
        self, queries: Sequence[Query], strict: bool, counter: Any, max_answers: int | None
    ) -> dict[str, DataFrame]:
        with self._workspace.errors_of(queries[0].name):
            resolved = self._resolve(queries, max_answers)
            run = execution.run_batch(self.spark, resolved.job, resolved.sources, self._partitions, strict, counter)
        return self._runs.add_group(queries, run, resolved)

    def deliver(self, name: str, answers: DataFrame | None = None) -> None:
        """Write answers of a batch run to the target that their query declares (`TO ...`).

        `answers` are those of `run` or `run_all`; without them, the query is run.
        """
        query = self.catalog.require_query(name)
        target = self._declared_target(query)
        if target is None:
            raise AnabranchError(f"{query.name} has no target; write CREATE QUERY {query.name} TO ...")
        target.write_whole(self.run(name) if answers is None else answers)

    def _declared_target(self, query: Query) -> AnswerTarget | None:
        return declared_target(query, self._workspace.bindings.folders[query.name.lower()], lambda: self.spark)

    def release(self) -> None:
        """Remove the answers that `run_all` has cached."""
        self._runs.release()

    def evaluate(
        self,
        answers: Any,
        truth: Any,
        *,
        tolerance: float = 0.0,
        gap: float | None = None,
        by: Sequence[str] | None = None,
        time: str | None = None,
        probability: str = "probability",
        label: str | None = None,
        where: Sequence[str] = (),
        bins: int = 10,
    ) -> Evaluation:
        """Compare answers of any kind of query with the events that really happened.

        Parameters
        ----------
        answers : str, DataFrame or table
            The name of a query, which is run; or answers as anything that `bind` takes.
        truth : path, DataFrame or table
            The events that happened, with their keys and times; as anything that `bind` takes.
        tolerance, gap, by, time, probability, label, where, bins
            As for `anabranch.evaluation.evaluate`.

        Example::

            result = s.evaluate("coffee", "truth.csv", tolerance=30)
            result.scores.brier, result.best.threshold
            result.learn("coffee-map.csv")    # for CALIBRATED BY 'coffee-map.csv'
        """
        if isinstance(answers, str) and self.catalog.query(answers) is not None:
            answers = self.run(answers)
        tables = _table(answers, "answers"), _table(truth, "truth")
        return evaluate(
            *tables, tolerance=tolerance, gap=gap, by=by, time=time, probability=probability, label=label, where=where,
            bins=bins,
        )  # fmt: skip

    def plot(self, name: str, **options: Any) -> Chart:
        """Run a query and draw its answers; a notebook displays the chart, and `save` writes it to a file.

        Parameters
        ----------
        name : str
            The name of a query, which is also the default title.
        options
            As for `anabranch.plot`. `data` may also be the name of a stream, whose rows are then used.

        Example::

            s.plot("coffee", threshold=0.5).save("coffee.html")
        """
        data = options.get("data")
        if isinstance(data, str) and self.catalog.stream(data) is not None:
            options["data"] = self.rows(data)
        return plot(self.run(name), **{"title": name, **options})

    # ------------------------------------------------------------ explanations

    def why(self, name: str, answer: Any, shown: int = 20) -> Explanation:
        """Explain the probability of an answer: which pieces of evidence moved it, and the most likely histories.

        The rows that the answer depends on are read again. Each piece of evidence is left out, and the query is run
        without it, in this process.

        Parameters
        ----------
        name : str
            The name of the query.
        answer : Row, dict or Series
            One of its answers, as Spark, pandas or Arrow give it.
        shown : int
            How many pieces of evidence are listed, those with the largest effects.

        Example::

            answer = s.run("coffee").orderBy("probability", ascending=False).first()
            print(s.why("coffee", answer))
        """
        # Loads analyses of all kinds, which nothing else of a session needs.
        from anabranch.explanation.case import Case
        from anabranch.explanation.explain import explain, explainer_of
        from anabranch.explanation.identity import plain_answer

        query, row = self.catalog.require_query(name), plain_answer(answer)
        with self._workspace.errors_of(query.name):
            make_ready(self.spark)
            resolved = self._resolve([query], None)
            (prepared,) = resolved.prepared
            selections = explainer_of(prepared.bound.kind).selections(prepared.analysis, resolved.context.layouts, row)
            tables = collect_rows(resolved, selections)
            case = Case.of(prepared, self.catalog, resolved.context, tables, self._newest(resolved))
            return explain(case, row, shown)

    @staticmethod
    def _newest(resolved: execution.Resolved) -> dict[str, object] | None:
        """The newest time of each stream, if some are inferred: they have rows up to the newest reading of any key."""
        is_inferred = any(layout.derivation is not None for layout in resolved.context.layouts)
        return newest_times(resolved) if is_inferred else None

    def why_not(self, name: str, keys: Mapping[str, Any] | None = None, quarantine: str | None = None) -> WhyNot:
        """Explain why a query has no answers, or none of some keys.

        It names the goal, condition or bound at which the query fails, constants that no row has, quarantined rows, and
        the watermark. The inputs are read again, and weaker queries are run in this process.

        Parameters
        ----------
        name : str
            The name of the query.
        keys : mapping, optional
            Values of KEY columns, or of grouping variables: `{"person": "joe"}`.
        quarantine : str, optional
            The folder of quarantined rows of a run or stream, which also has rows that were late.

        Example::

            print(s.why_not("coffee", {"person": "joe"}))
        """
        from anabranch.explanation.case import Case
        from anabranch.explanation.why_not import (
            quarantine_facts,
            selections_of,
            typed_keys,
            watermark_fact,
            why_not,
        )

        query = self.catalog.require_query(name)
        with self._workspace.errors_of(query.name):
            make_ready(self.spark)
            resolved = self._resolve([query], None)
            (prepared,), layouts = resolved.prepared, resolved.context.layouts
            wanted = typed_keys(keys or {}, layouts)
            tables = collect_rows(resolved, selections_of(prepared.analysis, layouts, wanted))
            case = Case.of(prepared, self.catalog, resolved.context, tables, self._newest(resolved))
            rejected = invalid_rows(resolved) if quarantine is None else read_table(quarantine).to_pylist()
            facts = [
                *self.absent_values(name),
                *quarantine_facts(rejected, wanted),
                *watermark_fact(newest_times(resolved), layouts, tables),
            ]
            return why_not(case, wanted, query.threshold, facts)

    # ------------------------------------------------------------ what happened to the rows

    def has_run(self, name: str) -> bool:
        """Whether a query has been run or started."""
        query = self.catalog.query(name)
        return query is not None and self._runs.find(query) is not None

    def counts(self, name: str) -> Counts:
        """What happened to the rows of a query's last run: read, used, duplicate, late, quarantined.

        After `run`, it blocks until an action has read all answers. Gives an `InputWarning`, once for each run, for
        each input of which most rows were quarantined, or that has no rows.
        """
        return self._runs.counts(name)

    def doubts(self, name: str) -> list[tuple[Stream, str]]:
        """The inputs of a query's last batch run that are probably wrong, with the reason and the likely fix.

        These are inputs of which most rows were quarantined, or that have no rows.
        """
        return self._runs.doubts(name)

    def absent_values(self, name: str) -> list[str]:
        """The constants of a query that no row of its inputs has, and the values that rows have. Reads the inputs."""
        query = self.catalog.require_query(name)
        with self._workspace.errors_of(query.name):
            return execution.absent_values(self._workspace.bindings, self._workspace.planner.bound(query))

    def quarantine(self, name: str) -> DataFrame:
        """The rows that the last batch run of a query quarantined, with the reason."""
        return self._runs.quarantine(name)

    def rows(self, name: str, strict: bool = False, counter: Any = None) -> DataFrame:
        """The rows of a stream as a lazy DataFrame, in no order; no query is run.

        The rows of an inferred or predicted stream are derived as in a run of a query over it, and `counts` and
        `quarantine` then say what happened to its readings. Cached and bound, they are derived once for all queries:
        `s.bind("at", s.rows("at").cache())`. Of any other stream, they are the valid rows of its input.

        Parameters
        ----------
        strict : bool
            Fail on the first invalid reading instead of quarantining it.
        counter : RowCounter, optional
            Counts rows as they are read, for a progress bar.
        """
        stream = self.catalog.require_stream(name)
        with self._workspace.errors_of(stream.name):
            run = execution.derive_rows(self.spark, self._workspace.bindings, stream, self._partitions, strict, counter)
        if run is None:
            return self._workspace.valid_rows(name)
        self._runs.add(stream, run)
        return run.answers

    def checked_rows(self, name: str) -> tuple[pa.Table, pa.Table]:
        """The rows of a stream's input, all in memory and in no order; no query is run.

        Returns
        -------
        The valid rows, and the others with the reason (stream, reason, row).
        """
        return self._workspace.checked_rows(name)

    def validate(self, name: str) -> DataFrame:
        """The rows of a stream's input that its model does not allow, with the reason; no query is run.

        The input of a derived stream is that of the stream that it is derived from.
        """
        return self._workspace.invalid_rows(name)

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
        max_answers: int | None = None,
        buckets: int | None = None,
    ) -> StreamingQuery:
        """Start a query on live inputs, and the queries whose answers it reads.

        If it reads answers (FROM QUERY), the stream that is returned stands for all of these: they end together. With a
        trigger that ends, the queries that are read are run first, before this method returns.

        Parameters
        ----------
        checkpoint : str
            Checkpoint folder; a restarted stream resumes from it.
        output : str, optional
            Folder for the answers, one file per micro-batch. Quarantined rows go to `_quarantine` next to it. The
            default is the target that the query declares (`TO ...`); quarantined rows then go to the checkpoint.
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
        max_answers : int, optional
            How many answers the query may have in one step of a bucket; overrides that of the session.
        buckets : int, optional
            The number of buckets of a new checkpoint, by default 16. No more cores than buckets can be used.
        """
        queries = [self.catalog.require_query(name)]
        if output is not None and foreach_batch is not None:
            raise AnabranchError("start takes either an output folder or a foreach_batch function")
        sink = to_function(foreach_batch) if foreach_batch else self._sink(queries, checkpoint, [output], file_format)
        options = execution.StreamOptions(trigger, max_files, strict, buckets)
        quarantine = _quarantine(queries, checkpoint, output)
        return self._start(queries, checkpoint, sink, quarantine, options, max_answers)

    def start_together(
        self,
        names: Sequence[str],
        checkpoint: str,
        outputs: Sequence[str | None],
        file_format: str = "parquet",
        trigger: dict[str, Any] | None = None,
        max_files: int | None = None,
        strict: bool = False,
        max_answers: int | None = None,
        buckets: int | None = None,
    ) -> StreamingQuery:
        """Start a group of queries that share one pass over their streams (see `groups`), each with its output folder.

        The output of a query that declares its target (`TO ...`) is None.

        They share a checkpoint. A later start may have other queries of the group: one that is missing is removed, and
        a new one sees the events that are newer than all rows read before. Quarantined rows are written once, next to
        the answers of the first query.
        """
        queries = [self.catalog.require_query(name) for name in names]
        if len(self.groups(queries, live=True)) != 1:
            raise AnabranchError(f"{', '.join(names)} cannot share a pass; start each of Session.groups by itself")
        if len(outputs) != len(queries):
            raise AnabranchError(f"{len(queries)} queries have {len(outputs)} output folders; pass one for each query")
        sink = self._sink(queries, checkpoint, outputs, file_format)
        options = execution.StreamOptions(trigger, max_files, strict, buckets)
        quarantine = _quarantine(queries, checkpoint, outputs[0])
        return self._start(queries, checkpoint, sink, quarantine, options, max_answers)

    def _sink(
        self, queries: Sequence[Query], checkpoint: str, folders: Sequence[str | None], file_format: str
    ) -> streaming.Output:
        """The output of a stream: a folder or the declared target for each query."""
        targets: list[AnswerTarget] = []
        for query, folder in zip(queries, folders, strict=True):
            declared = self._declared_target(query)
            if folder is not None and declared is not None:
                raise AnabranchError(f"{query.name} declares its target; start it without an output folder")
            if folder is None and declared is None:
                raise AnabranchError(f"{query.name} needs an output folder, a foreach_batch function or a target (TO)")
            targets.append(declared or FolderTarget(str(folder), file_format, lambda: self.spark))
        return to_targets(targets, to_quarantine(_quarantine(queries, checkpoint, folders[0])))

    def _checkpoint(self, folder: str) -> Checkpoint:
        return Checkpoint(open_folder(folder, lambda: self.spark))

    def _start(
        self, queries: Sequence[Query], folder: str, output: streaming.Output, quarantine: str,
        options: execution.StreamOptions, max_answers: int | None,
    ) -> StreamingQuery:  # fmt: skip
        """Start queries, and before them those whose answers they read."""
        runs = (self._runs.find(query) for query in queries)
        counts = next((run.counts for run in runs if isinstance(run, streaming.StreamRun)), Counts())
        with self._workspace.errors_of(queries[0].name):
            checkpoint = self._checkpoint(folder)
            chain = Chain(self._workspace.planner, queries, checkpoint)
            with running(chain, partial(self._start_read, chain, quarantine, options, max_answers)) as read:
                resolved = self._resolve(queries, max_answers, checkpoint)
                run = self._start_resolved(resolved, checkpoint, output, options, counts)
        for query in queries:
            self._runs.add(query, run)
        return chained(run.query, [] if options.ends else read)

    def _start_read(
        self, chain: Chain, quarantine: str, options: execution.StreamOptions, max_answers: int | None, query: Query
    ) -> StreamingQuery:
        """Start a query whose answers another one reads; with a trigger that ends, wait for its end."""
        with self._workspace.errors_of(query.name):
            checkpoint = chain.checkpoint(query)
            resolved = self._resolve([query], max_answers, checkpoint)
            relays = chain.relays(resolved, self._workspace.bindings)
            output = to_targets([AnswersElsewhere()], to_quarantine(f"{quarantine}.{query.name}"))
            earlier = self._read_runs.get(checkpoint.folder.address)
            counts = Counts() if earlier is None else earlier.counts
            run = self._start_resolved(resolved, checkpoint, output, options, counts, relays)
            self._read_runs[checkpoint.folder.address] = run
        if options.ends:
            run.query.awaitTermination()
        return run.query

    def _start_resolved(
        self, resolved: execution.Resolved, checkpoint: Checkpoint, output: streaming.Output,
        options: execution.StreamOptions, counts: Counts, relays: Sequence[Relay] = (),
    ) -> streaming.StreamRun:  # fmt: skip
        """Start a group of queries, with the lock of their checkpoint."""
        with checkpoint.lock() as lock:
            _warn_of_vanished(checkpoint, options.strict)
            run = execution.start_stream(
                self.spark, resolved, checkpoint, output, self._partitions, options, counts, relays
            )
            lock.release_after(run.query)
        return run

    def end_input(self, checkpoint: str) -> None:
        """Mark the end of the input: a stream on this checkpoint then answers about all rows that it has read."""
        self._checkpoint(checkpoint).end_input()


def _quarantine(queries: Sequence[Query], checkpoint: str, output: str | None) -> str:
    """The folder of quarantined rows: next to the answers of the first query, or in the checkpoint."""
    folder, name = split_address(output or os.path.join(checkpoint, queries[0].name))
    return os.path.join(folder, "_quarantine", name)


def _warn_of_vanished(checkpoint: Checkpoint, strict: bool) -> None:
    """Warn of input files that were removed before they were read; refuse the start if `strict`."""
    for path in checkpoint.vanished_files():
        message = f"{path} has vanished before it was read; its rows are missing. Add it again under another name"
        if strict:
            raise DataError(message)
        warnings.warn(message, InputWarning, stacklevel=4)
