"""The inputs of a session: what is bound to each stream and relation, and how it is opened."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from anabranch.binding.answer_streams import is_event
from anabranch.binding.binder import bind
from anabranch.binding.bound import BoundQuery
from anabranch.binding.derived_streams import check_derived
from anabranch.binding.reading import Reading, bind_reading, optional_sources, with_optional_columns
from anabranch.catalog import Catalog, Column, Model, Relation, Stream
from anabranch.errors import DataError, Finding, NotYetBuilt, WorkbookError
from anabranch.language import nodes
from anabranch.language.findings import Findings
from anabranch.language.types import Type
from anabranch.runtime.checkpoint import Checkpoint
from anabranch.runtime.inputs import Input
from anabranch.runtime.relay import RelayedInput
from anabranch.runtime.sources.answers import most_probable
from anabranch.runtime.sources.files import FileInput, is_local, missing_file, resolve
from anabranch.runtime.sources.lakes import is_lake, open_lake
from anabranch.runtime.sources.local_rows import LocalRows, local_rows
from anabranch.runtime.sources.mqtt import MqttInput
from anabranch.runtime.sources.schema import CORRUPT, types_of, with_fields
from anabranch.runtime.sources.sizes import SHORT_RUN_BYTES, total_bytes
from anabranch.runtime.sources.spark_sources import open_source
from anabranch.runtime.sources.topics import MessageInput, TopicInput
from anabranch.runtime.sources.unchanged import UnchangedFiles


class Bindings:
    """Opens the source of a stream or relation: a bound DataFrame or path, or what its declaration says.

    Parameters
    ----------
    catalog : the declarations
    spark : gives the Spark session
    run : the answers of a query, for streams that are declared FROM QUERY
    """

    def __init__(self, catalog: Catalog, spark: Callable[[], SparkSession], run: Callable[[str], DataFrame]) -> None:
        self._catalog, self._spark, self._run = catalog, spark, run
        self._frames: dict[str, DataFrame | LocalRows] = {}
        self._paths: dict[str, str] = {}
        #: The folder of the workbook of each entry, which relative paths refer to.
        self.folders: dict[str, str] = {}
        self._unchanged = UnchangedFiles()

    def bind(self, entry: Stream | Relation, source: Any, columns: Sequence[str] | None = None) -> None:
        """Bind rows, or the path of a file or folder, to a stream or relation (see `Session.bind`)."""
        name, path, frame = entry.name.lower(), None, None
        if isinstance(source, str | os.PathLike):
            path = os.fspath(source)
            path = os.path.abspath(path) if is_local(path) else path
        else:
            frame = source if isinstance(source, DataFrame) else local_rows(source, entry, columns)
        self._frames.pop(name, None)
        self._paths.pop(name, None)
        if path is not None:
            self._paths[name] = path
        if frame is not None:
            self._frames[name] = frame

    @property
    def bound_names(self) -> set[str]:
        """The streams and relations that have a bound input, in lower case."""
        return {*self._frames, *self._paths}

    def copy_from(self, other: Bindings) -> None:
        """Take over the inputs of another session."""
        self._frames.update(other._frames)
        self._paths.update(other._paths)
        self.folders.update(other.folders)

    def columns_of(self, entry: Stream | Relation) -> dict[str, Type]:
        """The columns of what is bound to an entry, in their order; columns of unsupported types are left out."""
        bound = self._frames.get(entry.name.lower())
        schema = bound.schema(entry) if isinstance(bound, LocalRows) else self.open(entry).schema
        known = types_of(schema)
        return {name: known[name.lower()] for name in schema.names if name.lower() in known and name != CORRUPT}

    def open(
        self, entry: Stream | Relation, checkpoint: Checkpoint | None = None, derived: Stream | Relation | None = None
    ) -> Input:
        """Open the source of an entry; of a live input with the columns it had when the stream was first started.

        `derived` is the stream that is derived from the rows of the entry, if there is one.
        """
        opened = self._open(entry, checkpoint, derived or entry)
        if not isinstance(opened.entry, Stream):
            return opened
        return replace(opened, entry=with_optional_columns(opened.entry, opened.schema.names))

    def _open(self, entry: Stream | Relation, checkpoint: Checkpoint | None, reader: Stream | Relation) -> Input:
        name = entry.name.lower()
        relations = self._relations(entry)
        needed = self._needed(entry)
        if name in self._frames:
            opened = self._open_frame(entry, self._frames[name], live=checkpoint is not None)
            return replace(opened, relations=relations)
        source = entry.source
        if name in self._paths:
            source = nodes.FileSource(self._paths[name], span=entry.declaration.span)
        if isinstance(source, nodes.FileSource) and is_lake(source):
            return replace(self._open_lake(entry, source, live=checkpoint is not None), relations=relations)
        if isinstance(source, nodes.FileSource):
            files = FileInput(self._spark(), entry, source, self.folders[name])
            saved = checkpoint.schema(name) if checkpoint else None
            schema = saved or self._unchanged.read(files, entry, lambda: files.schema(needed, self._optional(entry)))
            return Input(entry, schema, files=files, relations=relations)
        if isinstance(source, nodes.ConnectorSource):
            return replace(self._open_connector(entry, source, checkpoint), relations=relations)
        if isinstance(source, nodes.TableSource):
            return replace(self._open_table(entry, source, live=checkpoint is not None), relations=relations)
        if isinstance(source, nodes.QuerySource):
            return replace(self._open_query(entry, source, checkpoint, reader.name), relations=relations)
        if source is None:
            hint = f"write FROM 'path', pass --input {entry.name}=path, or bind a DataFrame to it"
            raise WorkbookError([Finding("no-source", f"{entry.name} has no input", hint, entry.declaration.span)])
        return self.open(self._made_from(entry, source), checkpoint, reader)

    def _relations(self, entry: Stream | Relation) -> dict[str, Input]:
        """The inputs of the relations that the clauses of a stream use."""
        reading = self._reading(entry)
        return {} if reading is None else {each.name.lower(): self.open(each) for each in reading.relations}

    def _needed(self, entry: Stream | Relation) -> tuple[Column, ...]:
        """The columns that a source of an entry must have."""
        reading = self._reading(entry)
        return entry.columns if reading is None else reading.needed

    @staticmethod
    def _optional(entry: Stream | Relation) -> list[Column]:
        """The columns that a source of an entry may have or not; an empty column of a text file has their type, too."""
        sources = optional_sources(entry) if isinstance(entry, Stream) else {}
        return [replace(column, name=name, declared=True) for name, column in sources.items()]

    def _reading(self, entry: Stream | Relation) -> Reading | None:
        if not isinstance(entry, Stream) or isinstance(entry.source, nodes.DerivedSource):
            return None
        findings = Findings()
        reading = bind_reading(entry, self._catalog, findings)
        if findings:  # a relation may have been declared again
            raise WorkbookError(findings.in_order())
        return reading

    def relation_rows(self, relation: Input) -> pa.Table:
        """All rows of an opened relation, in the declared order and types."""
        if relation.files is None:
            return relation.rows()
        return self._unchanged.read(relation.files, (relation.typed_entry(), "rows"), relation.rows)

    def are_small(self) -> bool:
        """Whether all inputs are local files, and small; known before Spark starts."""
        if self._frames:
            return False
        paths = []
        for name in self._catalog.names((Stream, Relation)):
            entry = self._catalog.stream(name) or self._catalog.relation(name)
            source = None if entry is None else entry.source
            if name.lower() in self._paths:
                source = nodes.FileSource(self._paths[name.lower()])
            if isinstance(source, nodes.TableSource | nodes.ConnectorSource):
                return False
            if isinstance(source, nodes.FileSource):
                paths.append(resolve(source.path, self.folders[name.lower()]))
        return all(map(is_local, paths)) and total_bytes(paths) <= SHORT_RUN_BYTES

    def _open_frame(self, entry: Stream | Relation, bound: DataFrame | LocalRows, live: bool) -> Input:
        if isinstance(bound, LocalRows):
            schema = bound.schema(entry)
            frame = bound.frame(self._spark(), entry, (*self._needed(entry), *self._optional(entry)))
        else:
            schema, frame = bound.schema, bound
        live_rows = live and isinstance(entry, Stream)
        if live_rows and not frame.isStreaming:
            raise DataError(f"the input of {entry.name} is not a streaming DataFrame; bind one, or use run")
        if frame.isStreaming and not live_rows:
            fix = "bind a batch DataFrame" if isinstance(entry, Relation) else "use start, or bind a batch DataFrame"
            raise DataError(f"the input of {entry.name} is a streaming DataFrame; {fix}")
        return Input(entry, schema, frame=frame)

    def missing_files(self, queries: Iterable[BoundQuery]) -> list[Finding]:
        """A finding for each input of the queries that is declared as a file that does not exist; starts no Spark."""
        entries: dict[str, Stream | Relation] = {}
        for query in queries:
            entries |= {stream.name.lower(): stream for stream in query.streams}
            readings = (self._reading(stream) for stream in query.streams)
            entries |= {
                relation.name.lower(): relation
                for reading in readings if reading is not None
                for relation in reading.relations
            }  # fmt: skip
            entries |= {relation.name.lower(): relation for relation in query.declared_relations}
        found = [self._missing_file(entry) for entry in entries.values()]
        # A stream and those that are derived from it have the same file.
        return list(dict.fromkeys(finding for finding in found if finding is not None))

    def _missing_file(self, entry: Stream | Relation) -> Finding | None:
        name = entry.name.lower()
        if name in self._frames:
            return None
        if name in self._paths:
            source = nodes.FileSource(self._paths[name], span=entry.declaration.span)
            return missing_file(source, self.folders[name])
        if isinstance(entry.source, nodes.FileSource):
            return missing_file(entry.source, self.folders[name])
        if isinstance(entry.source, nodes.DerivedSource):
            return self._missing_file(self._made_from(entry, entry.source))
        return None

    def _open_query(
        self, entry: Stream | Relation, source: nodes.QuerySource, checkpoint: Checkpoint | None, reader: str
    ) -> Input:
        if checkpoint is not None and isinstance(entry, Stream):
            relayed = RelayedInput(self._spark(), checkpoint.answers(reader))
            return Input(entry, relayed.schema, relayed=relayed)
        if checkpoint is not None:
            message = "a relation declared FROM QUERY cannot be used on live inputs"
            raise NotYetBuilt([Finding("not-yet-built", message, "use a file or a table", source.span)])
        frame = with_fields(self._run(source.name))
        query = self._catalog.require_query(source.name)
        if isinstance(entry, Stream) and entry.model is Model.INDEPENDENT:
            opened = Input(entry, frame.schema, frame=frame)
            if not is_event(entry, bind(query, self._catalog)):
                frame = most_probable(opened)
        return Input(entry, frame.schema, frame=frame)

    def answers_of(self, entry: Stream, schema: StructType) -> Input:
        """The answers of a live query, with these columns, as the source of a stream: before they are relayed."""
        return Input(entry, schema, relations=self._relations(entry))

    def _open_lake(self, entry: Stream | Relation, source: nodes.FileSource, live: bool) -> Input:
        live_rows = live and isinstance(entry, Stream)
        needed = {column.name.lower() for column in self._needed(entry)}
        frame = open_lake(self._spark(), source, self.folders[entry.name.lower()], live_rows, needed)
        return Input(entry, frame.schema, frame=frame)

    def _open_connector(
        self, entry: Stream | Relation, source: nodes.ConnectorSource, checkpoint: Checkpoint | None
    ) -> Input:
        name = entry.name.lower()
        if source.connector == "SOURCE":
            live = checkpoint is not None and isinstance(entry, Stream)
            frame = open_source(self._spark(), source, live, checkpoint.schema(name) if checkpoint else None)
            return Input(entry, frame.schema, frame=frame)
        topic: MessageInput
        if source.connector == "MQTT":
            topic = MqttInput(self._spark(), entry, source, self.folders[name], self._needed(entry), checkpoint)
        else:
            topic = TopicInput(self._spark(), entry, source, self.folders[name], self._needed(entry))
        return Input(entry, topic.schema, topic=topic)

    def _open_table(self, entry: Stream | Relation, source: nodes.TableSource, live: bool) -> Input:
        spark = self._spark()
        if not spark.catalog.tableExists(source.name):
            known = ", ".join(table.name for table in spark.catalog.listTables()[:10]) or "none"
            message = f"there is no Spark table {source.name}"
            raise WorkbookError([Finding("source", message, f"the current database has: {known}", source.span)])
        streams = live and isinstance(entry, Stream)
        frame = spark.readStream.table(source.name) if streams else spark.table(source.name)
        return Input(entry, frame.schema, frame=frame)

    def _made_from(self, entry: Stream | Relation, source: nodes.DerivedSource) -> Stream:
        """The stream that another one is derived from; checked again, because it may have been declared again."""
        read, findings = self._catalog.stream(source.stream), Findings()
        if isinstance(entry, Stream):
            check_derived(entry, source, self._catalog, findings)
        if findings or read is None:
            raise WorkbookError(findings.in_order())
        return read
