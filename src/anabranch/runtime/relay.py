"""Passes the final answers of a stream on to a stream that reads them (FROM QUERY), in files of a folder.

A micro-batch writes one file with the answers whose times are complete, and with the promise that no earlier one will
follow; also if there are no answers. The file is never changed. So a micro-batch that reads it can be repeated, and one
that is written again after a failure finds its file there. Spark removes files that have been read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from anabranch.runtime.file_system import Folder
from anabranch.transport.per import Moment
from anabranch.transport.relay import RelayRule, read_held, relay, write_held, write_rows

#: The columns of the rows. Spark's sources ignore files with such names.
_SCHEMA = "_columns.json"
#: The folder of what waits.
_HELD = "_held"
_SUFFIX = ".answers"

#: Files are read once, in the order of their times; those that have been read are removed.
_OPTIONS = {"maxFileAge": "36500d", "cleanSource": "delete"}


@dataclass(frozen=True, slots=True)
class Relay:
    """Writes the answers of a query for one stream that reads them. Picklable if the folder is.

    Parameters
    ----------
    folder : of the files
    fingerprint : of the query
    """

    folder: Folder
    rule: RelayRule
    fingerprint: str

    def advance(self, answers: pa.Table, now: Moment, batch: int) -> None:
        """Take the answers of a micro-batch, and write those that are complete.

        What waits is in a file of the micro-batch, as in `open_rows.py`. It is written before the answers, and that of
        the micro-batch before is kept, so a repetition starts from the same rows.
        """
        held = self.folder.folder(_HELD)
        numbers = [int(name.removesuffix(_SUFFIX)) for name in held.names() if name[0] != "."]
        latest = max((number for number in numbers if number < batch), default=None)
        before = None if latest is None else read_held(held.read(_file(latest)), self.fingerprint)
        relayed = relay(self.rule, before, answers, now)
        held.write(_file(batch), write_held(relayed, self.fingerprint))
        if not self.folder.exists(_file(batch)):
            content = write_rows(relayed, self.rule.frontier.time_kind, now.ended, self.fingerprint)
            self.folder.write(_file(batch), content)
        for number in numbers:
            if latest is not None and number < latest:
                held.delete(_file(number))

    def write_schema(self, schema: StructType) -> None:
        """Write the columns of the rows, for `RelayedInput`."""
        self.folder.write(_SCHEMA, schema.json().encode())


@dataclass(frozen=True, slots=True)
class RelayedInput:
    """The answers of another stream as an input."""

    spark: SparkSession
    folder: Folder

    @property
    def schema(self) -> StructType:
        """The columns of the rows."""
        return StructType.fromJson(json.loads(self.folder.read(_SCHEMA)))

    def stream(self, max_files: int | None) -> DataFrame:
        """The contents of the files, as a streaming DataFrame."""
        reader = (
            self.spark.readStream.format("binaryFile")
            .options(**_OPTIONS)
            .schema("path string, modificationTime timestamp_ltz, length long, content binary")
        )
        if max_files is not None:
            reader = reader.option("maxFilesPerTrigger", max_files)
        return reader.load(self.folder.address).select("content")


def _file(batch: int) -> str:
    return f"{batch:010d}{_SUFFIX}"
