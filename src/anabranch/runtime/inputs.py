"""Opened inputs: their columns, and how their rows get to the workers.

The workers read files on a shared file system themselves, where they can, which is several times faster than passing
rows through the JVM (`worker_files.py`). Spark reads all other sources.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from anabranch.binding.reading import Reading, bind_reading, source_name
from anabranch.catalog import Catalog, Column, Relation, Stream
from anabranch.columns.conditions import ARROW_TYPES
from anabranch.errors import DataError, Finding, WorkbookError
from anabranch.files.clusters import in_two_files, tasks_of_files
from anabranch.files.reader import FileReader
from anabranch.language.findings import Findings
from anabranch.language.types import Type
from anabranch.planning.layouts import preparation_of
from anabranch.runtime.batch import Feed, FrameFeed, TaskFeed
from anabranch.runtime.clusters import clustered_values
from anabranch.runtime.diagnosis import TextFormat
from anabranch.runtime.filters import lower
from anabranch.runtime.packets import Packing, pack_answers, pack_files, pack_rows, quarantine_unreadable
from anabranch.runtime.relay import RelayedInput
from anabranch.runtime.sources.files import FileInput, is_local
from anabranch.runtime.sources.schema import CORRUPT, match_columns, types_of
from anabranch.runtime.sources.topics import MessageInput
from anabranch.runtime.sources.worker_readers import reader_of
from anabranch.runtime.spark_mode import parallelism
from anabranch.transport.checks import QUARANTINE, check_rows
from anabranch.transport.layout import Layout
from anabranch.transport.preparation import Preparation
from anabranch.transport.preparing import prepare_rows

#: Relations are sent to every worker; larger ones must be streams.
MAX_RELATION_ROWS = 5_000_000

#: With more relation rows than this, relations do not become lists of constants in Spark's filters.
MAX_LISTED_ROWS = 1000

#: A partition of a batch run has about this many bytes of the input files.
_BYTES_PER_PARTITION = 64 << 20

#: Files of this size in all, some thousand rows, take longer to distribute than to process.
_SMALL_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class Input:
    """The source of a stream or relation: files, a topic, or a DataFrame (of a table, a query, or bound by the user).

    The answers of a live query are `relayed`. `relations` are those that the clauses of the stream use, by lower-case
    name.
    """

    entry: Stream | Relation
    schema: spark_types.StructType
    files: FileInput | None = None
    frame: DataFrame | None = None
    topic: MessageInput | None = None
    relayed: RelayedInput | None = None
    relations: Mapping[str, Input] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """The name of the source in errors."""
        if self.topic is not None:
            return f"topic '{self.topic.name}'"
        return f"'{os.path.basename(self.files.path)}'" if self.files else f"the input of {self.entry.name}"

    @property
    def is_bounded(self) -> bool:
        """Whether a stream gets no more rows than those of one file: a file that has been read does not change."""
        return self.files is not None and self.files.is_one_file

    @property
    def n_files(self) -> int:
        """How many local files there are now; nothing is known about those of other file systems."""
        return len(self.files.paths()) if self.files is not None and is_local(self.files.path) else 0

    def typed_entry(self) -> Stream | Relation:
        """The declaration with the types of the source; columns that do not fit are findings at the declaration."""
        reading = self.reading()
        needed = self.entry.columns if reading is None else reading.needed
        match_columns(self.entry, needed, self.schema, self.where)
        known = types_of(self.schema)
        times = self.entry.time_names if isinstance(self.entry, Stream) else frozenset()
        if isinstance(self.entry, Stream) and reading is not None:
            times = frozenset(source_name(self.entry, name).lower() for name in times)
        findings = [
            Finding(
                "column-type",
                f"column {column.name} of {self.where} is {known[column.name.lower()].value}, "
                f"not {(column.source_type or column.type).value}",
                "declare the type it has, or convert the data",
                self.entry.declaration.span,
            )
            for column in needed
            if not _fits(known[column.name.lower()], column, times)
        ]
        if findings:
            raise WorkbookError(findings)
        typed = self.reading(known)
        if typed is None:
            return self.entry.with_types(known)
        return self.entry.with_types({name.lower(): tree.type for name, tree in typed.columns.items()})

    def reading(self, types: Mapping[str, Type] | None = None) -> Reading | None:
        """How the rows of the stream are made from those of the source, given the types of the source."""
        if not isinstance(self.entry, Stream):
            return None
        relations = {name: source.typed_entry() for name, source in self.relations.items()}
        findings = Findings()
        reading = bind_reading(self.entry, Catalog(dict(relations)), findings, types)
        if findings:
            raise WorkbookError(findings.in_order())
        return reading

    def preparation(self) -> Preparation | None:
        """The same for the workers."""
        reading = self.reading(types_of(self.schema))
        if reading is None or not isinstance(self.entry, Stream):
            return None
        return preparation_of(self.entry, reading)

    def text_format(self) -> TextFormat:
        """How the input is written."""
        types = types_of(self.schema)
        known = {name: types.get(name.lower(), Type.UNKNOWN) for name in self.schema.names if name != CORRUPT}
        source = self.files or self.topic
        return TextFormat(source.format if source else "", known, source.options if source else {})

    def n_rows(self) -> int:
        """The number of existing rows, readable or not."""
        return self._rows_now().count()

    def frequent_values(self, column: str, first: Any, most: int) -> list[Any]:
        """The most frequent values of a column; the value `first` comes first if a row has it. Reads every row."""
        reading = self.reading(types_of(self.schema))
        source = column if reading is None else reading.source_of(column)
        if source is None:  # it is computed, or a column of a relation
            return [first]
        name = F.col(f"`{self._spelling([source])[source]}`")
        counted = self._rows_now().where(name.isNotNull()).groupBy(name.alias("value")).count()
        is_first = F.col("value") == F.lit(first)
        rows = counted.orderBy(is_first.desc_nulls_last(), F.desc("count"), "value").limit(most).collect()
        return [row["value"] for row in rows]

    def n_bytes(self) -> int:
        """The size of the existing files; 0 if it is unknown."""
        if self.files is None or not is_local(self.files.path):
            return 0
        return sum(os.path.getsize(path) for path in self.files.paths())

    def feed(self, spark: SparkSession, packing: Packing) -> Feed:
        """The existing rows."""
        reader = self._reader(packing)
        if self.files is not None and reader is not None:
            tasks = reader.tasks(self.files.paths(), parallelism(spark))
            return TaskFeed(spark, [tasks], pack_files(packing, reader))
        if self.topic is not None:
            return self._topic_feed(self.topic, spark.createDataFrame(self.topic.tasks()), packing)
        return self._row_feed(self._rows_now(), packing)

    def clustered_feed(self, spark: SparkSession, packing: Packing, n_tasks: int) -> Feed | None:
        """The existing rows, in tasks that need no rows of others; None if the files are not clustered that way."""
        reader = self._reader(packing)
        if self.files is None or reader is None:
            return None
        layout, together = packing.job.layouts[packing.stream], packing.job.together(packing.stream)
        paths, stage = self.files.paths(), pack_files(packing, reader)
        for column in layout.plain_sources(together):
            tasks = reader.clustered_tasks(paths, column, n_tasks)
            if tasks is not None:
                return TaskFeed(spark, tasks, stage, clustered=True)
        tasks = self._declared_clusters(spark, self.files, layout, set(together), n_tasks)
        return None if tasks is None else TaskFeed(spark, tasks, stage, clustered=True)

    def _declared_clusters(
        self, spark: SparkSession, files: FileInput, layout: Layout, together: set[str], n_tasks: int
    ) -> list[pa.Table] | None:
        """Tasks of whole files, if CLUSTERED BY says that they need no rows of others; the declaration is checked."""
        declared = {name.lower() for name in self.entry.declaration.clustered} if isinstance(self.entry, Stream) else {}
        columns = layout.plain_sources(declared)
        paths = files.paths()
        if len(paths) < 2 or not columns or len(columns) < len(declared) or not together.issuperset(declared):
            return None
        # Another column, because those of CLUSTERED BY may be in the names of folders, and not in the files.
        other = next(name for name in layout.source_columns if name not in columns)
        narrow = Layout(layout.name, tuple(columns), (), (), (), other, layout.time_kind)
        reader = reader_of(files, self.schema, narrow.source_columns)
        if reader is None:
            return None
        tasks = tasks_of_files(paths, n_tasks)
        found = clustered_values(spark, reader, narrow, tasks)
        twice = in_two_files([hashes for _, hashes in found])
        if twice is not None:
            names = " and ".join(os.path.basename(found[number][0]) for number in twice)
            raise DataError(
                f"CLUSTERED BY ({', '.join(columns)}) of {layout.name} is wrong: {names} have rows of the same key; "
                "write all rows of a key to one file, or remove CLUSTERED BY"
            )
        return tasks

    def live_feed(self, packing: Packing, max_files: int | None) -> Feed:
        """The existing rows and those that will arrive."""
        reader = self._reader(packing)
        if self.files is not None and reader is not None:
            return FrameFeed(self.files.stream_paths(max_files), pack_files(packing, reader))
        if self.topic is not None:
            return self._topic_feed(self.topic, self.topic.stream_tasks(), packing)
        if self.relayed is not None:
            names = self._spelling(packing.job.layouts[packing.stream].source_columns)
            return FrameFeed(self.relayed.stream(max_files), pack_answers(packing, names))
        frame = self.files.stream(self.schema, max_files) if self.files is not None else self._bound_frame()
        return self._row_feed(frame, packing)

    def _topic_feed(self, topic: MessageInput, tasks: DataFrame, packing: Packing) -> Feed:
        columns = self._spelling(packing.job.layouts[packing.stream].source_columns)
        return FrameFeed(tasks, pack_files(packing, topic.reader(list(columns.values()))))

    def _row_feed(self, frame: DataFrame, packing: Packing) -> Feed:
        layout = packing.job.layouts[packing.stream]
        chosen, names, corrupt = self._chosen(frame, layout)
        # A stream reads every row, because each row moves the watermark; text, because a row may be unreadable. The
        # rows of a source that has others than its stream are counted.
        if not packing.every and corrupt is None and layout.preparation is None:
            chosen = self._only_needed(chosen, names, packing)
        return FrameFeed(chosen, pack_rows(packing, names, corrupt))

    def _only_needed(self, frame: DataFrame, names: dict[str, str], packing: Packing) -> DataFrame:
        """Let Spark filter out rows whose key no answer can use; NULL keys are kept for the quarantine."""
        job, known = packing.job, types_of(self.schema)
        needed = job.needed(packing.stream)
        # If a column is declared with another type, Spark would compare other values than the workers.
        as_declared = all(
            not column.declared or known[column.name.lower()] is column.type for column in self.entry.columns
        )
        listed = sum(table.num_rows for table in job.relations.values())
        if needed is None or not as_declared or listed > MAX_LISTED_ROWS:
            return frame
        rows = {name: [tuple(row.values()) for row in table.to_pylist()] for name, table in job.relations.items()}
        columns = {name.lower(): frame[chosen] for name, chosen in names.items()}
        no_key = (columns[name.lower()].isNull() for name in job.layouts[packing.stream].keys)
        return frame.where(reduce(or_, no_key, lower(needed, columns, rows)))

    def columns_of(self, layout: Layout) -> tuple[DataFrame, dict[str, str], str | None]:
        """The existing rows, their names of the layout's columns, and their column of unreadable text."""
        return self._chosen(self._rows_now(), layout)

    def checked_rows(self, layout: Layout) -> tuple[pa.Table, pa.Table]:
        """The valid rows of a stream in the types of the layout, and the others with the reason."""
        frame, names, corrupt = self.columns_of(layout)
        table = frame.toArrow()
        unreadable = QUARANTINE.empty_table()
        if corrupt is not None:
            table, unreadable = quarantine_unreadable(table, layout.name, corrupt)
        table = table.select(list(names.values())).rename_columns(list(names))
        if layout.preparation is not None:
            prepared = prepare_rows(table, layout.name, layout.preparation, self.relation_rows())
            table, unreadable = prepared.rows, pa.concat_tables([unreadable, prepared.rejected])
        valid, rejected = check_rows(table, layout)
        types = dict(zip((*layout.keys, *layout.values), (*layout.key_types, *layout.value_types), strict=True))
        columns = [valid[name].cast(types.get(name, valid[name].type)) for name in layout.columns]
        return pa.table(columns, names=layout.columns), pa.concat_tables([rejected, unreadable])

    def relation_rows(self) -> dict[str, pa.Table]:
        """The rows of the relations that the clauses of the stream use."""
        return {name: source.rows() for name, source in self.relations.items()}

    def _chosen(self, frame: DataFrame, layout: Layout) -> tuple[DataFrame, dict[str, str], str | None]:
        spelled = self._spelling(layout.source_columns)
        # Plain names, because mapInArrow takes a dot in a name for a field of a struct.
        names = {name: f"c{index}" for index, name in enumerate(spelled)}
        times = layout.times if layout.preparation is None else []
        dates = {name for name in times if types_of(self.schema).get(name.lower()) is Type.DATE}
        columns = {name: frame[f"`{spelled[name]}`"] for name in spelled}
        # A cast would be to midnight in the time zone of the session.
        columns |= {name: F.timestamp_seconds(F.unix_date(columns[name]) * 86_400) for name in dates}
        chosen = [columns[name].alias(plain) for name, plain in names.items()]
        corrupt = CORRUPT if CORRUPT in frame.columns else None
        return frame.select(*chosen, *([corrupt] if corrupt else [])), names, corrupt

    def _rows_now(self) -> DataFrame:
        if self.topic is not None:
            return self.topic.batch()
        return self.files.batch(self.schema) if self.files is not None else self._bound_frame()

    def _bound_frame(self) -> DataFrame:
        if self.frame is None:
            raise DataError(f"{self.entry.name} has no input")
        return self.frame

    def _spelling(self, columns: Sequence[str]) -> dict[str, str]:
        spelled = {name.lower(): name for name in self.schema.names}
        return {name: spelled[name.lower()] for name in columns}

    def _reader(self, packing: Packing) -> FileReader | None:
        """How workers read the files themselves; None if Spark must read the input."""
        if self.files is None:
            return None
        return reader_of(self.files, self.schema, packing.job.layouts[packing.stream].source_columns)

    def rows(self) -> pa.Table:
        """All rows of a relation, in the declared order and types."""
        frame = self._rows_now()
        entry = self.typed_entry()
        names = self._spelling([column.name for column in entry.columns])
        table = frame.select(*(frame[f"`{name}`"] for name in names.values())).limit(MAX_RELATION_ROWS + 1).toArrow()
        if table.num_rows > MAX_RELATION_ROWS:
            raise DataError(f"relation {entry.name} has more than {MAX_RELATION_ROWS:,} rows; declare it as a stream")
        kinds = [ARROW_TYPES[column.type] for column in entry.columns]
        return pa.table(
            [table.column(index).cast(kind) for index, kind in enumerate(kinds)],
            names=[column.name for column in entry.columns],
        )


def _fits(found: Type, column: Column, times: Collection[str]) -> bool:
    """Whether a column of the source can be read as the type of the declaration or of the model."""
    needed = (column.declared and column.source_type) or column.type
    if needed in (Type.UNKNOWN, Type.STRING, found):
        return True
    if needed is Type.TIMESTAMP and found is Type.DATE:
        return column.name.lower() in times
    return needed is Type.DOUBLE and found is Type.INTEGER


def partition_count(inputs: Sequence[Input], n_cores: int) -> int:
    """How many partitions a batch run has: a few per core, more for large inputs."""
    return max(2 * n_cores, sum(source.n_bytes() for source in inputs) // _BYTES_PER_PARTITION)


def are_small(inputs: Sequence[Input]) -> bool:
    """Whether one task should process the inputs: the size of each is known, and all together are small."""
    sizes = [source.n_bytes() for source in inputs]
    return all(sizes) and sum(sizes) <= _SMALL_BYTES
