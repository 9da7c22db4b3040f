"""Files that the workers read themselves, which is several times faster than passing rows through the JVM.

A file that cannot be read does not stop a stream: it is quarantined with its path. Errors that may pass, such as a
missing permission or a lost connection, do stop it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from errno import ENOENT
from typing import Any, Protocol

import pyarrow as pa

from anabranch.transport.layout import Layout

#: A worker packs at most about this many rows at once, so its memory does not grow with the partition.
ROWS_AT_ONCE = 2_000_000


class UnreadableFile(Exception):
    """A file that no later attempt can read: the reason, to be read after the name of the file."""


class TaskReader(Protocol):
    """How the rows of a task are read."""

    def tables(self, task: dict[str, Any], layout: Layout) -> Iterator[tuple[pa.Table, pa.Table]]:
        """The rows of a task, or of a file if the task has no more than its path, and a QUARANTINE table of the others.

        Tables have at most about ROWS_AT_ONCE rows. Raises `UnreadableFile`, perhaps after some tables.
        """


class FileReader(TaskReader, Protocol):
    """How the files of an input are read."""

    def tasks(self, paths: Sequence[str], n_cores: int) -> pa.Table:
        """Tasks of a batch run of about the same size, several per core; the column `path` is that of the file."""

    def clustered_tasks(self, paths: Sequence[str], column: str, n_tasks: int) -> list[pa.Table] | None:
        """At most `n_tasks` tasks, each with all rows of its values of a column; None if nothing shows that.

        Where the files are not clustered by the column, tasks would read many rows twice.
        """


def plain_path(path: str) -> str:
    """The path of a local file, which Spark may write as a URL."""
    return path.removeprefix("file://").removeprefix("file:")


@contextmanager
def readable() -> Iterator[None]:
    """Raise `UnreadableFile` for what reading a damaged or missing file raises."""
    try:
        yield
    except (pa.ArrowException, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise UnreadableFile(f"cannot be read: {str(error).splitlines()[0]}") from error
    except OSError as error:
        # Arrow reports damaged pages and compressed data as an OSError without a number.
        if error.errno not in (None, ENOENT):
            raise
        raise UnreadableFile(f"cannot be read: {str(error).splitlines()[0]}") from error
