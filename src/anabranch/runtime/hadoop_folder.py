"""Folders of any file system that Hadoop knows (`s3a://`, `hdfs://`, `abfss://`, ...), through the JVM of Spark.

Where a file only appears when its stream is closed (S3), that is how files are written as a whole. Elsewhere they are
written as those of Spark's own checkpoint are. Their content does not pass through the connection to the JVM, which is
slow, but through a temporary file of this machine, where the driver and its JVM run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlparse

from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.sql import SparkSession

from anabranch.errors import DataError
from anabranch.patches.spark_checkpoint_files import file_manager, renames_over_files
from anabranch.runtime.file_system import Folder
from anabranch.runtime.spark_mode import java_view

#: Hadoop's name for a file system whose files appear when their streams are closed, and not if these are aborted.
_APPEARS_ON_CLOSE = "fs.capability.outputstream.abortable"

#: The exceptions of Python for those of Hadoop.
_ERRORS: dict[str, type[OSError]] = {
    "FileNotFoundException": FileNotFoundError,
    "FileAlreadyExistsException": FileExistsError,
    "AccessControlException": PermissionError,
    "AccessDeniedException": PermissionError,
}


class HadoopFolder(Folder):
    """A folder with an address; refused if this Spark has no file system for it."""

    appends: ClassVar[bool] = False

    def __init__(self, spark: SparkSession, address: str) -> None:
        super().__init__(address)
        view = java_view(spark)
        if view is None:
            raise DataError(
                f"{address}: Spark Connect gives no access to this file system; start the stream in classic mode, or "
                "use a folder that is mounted"
            )
        self._java, self._configuration = view
        self._root = self._java.org.apache.hadoop.fs.Path(address)
        try:
            self._system = self._root.getFileSystem(self._configuration)
            self._appears_on_close = self._system.hasPathCapability(self._root, _APPEARS_ON_CLOSE)
            self._manager = file_manager(self._java, self._root, self._configuration)
        except Py4JJavaError as error:
            raise DataError(
                f"{address}: Spark has no file system for {urlparse(address).scheme}:// "
                f"({_reason(error)}); add its package with --packages, and its settings with --conf"
            ) from None
        if self._manager is None:
            raise DataError(f"{address}: this version of Spark cannot be used for it; use a folder that is mounted")

    def folder(self, name: str) -> HadoopFolder:
        """A folder in this one."""
        inner = copy(self)
        inner.address = f"{self.address}/{name}"
        inner._root = self._path(name)
        return inner

    def make(self) -> None:
        """Make the folder, if it does not exist."""
        with self._errors():
            self._system.mkdirs(self._root)

    def names(self, name: str = "") -> Iterator[str]:
        """The names in the folder, or in a folder in it; none if it does not exist."""
        with self._errors():
            if not self._system.exists(self._path(name)):
                return
            found = self._system.listStatusIterator(self._path(name))
            while found.hasNext():
                yield found.next().getPath().getName()

    def exists(self, name: str = "") -> bool:
        """Whether there is a file or a folder."""
        with self._errors():
            return self._system.exists(self._path(name))

    def size(self, name: str) -> int:
        """The number of bytes of a file; 0 if there is none."""
        try:
            with self._errors():
                return self._system.getFileStatus(self._path(name)).getLen()
        except FileNotFoundError:
            return 0

    def read(self, name: str, start: int = 0) -> bytes:
        """The content of a file behind a position. Fails with FileNotFoundError."""
        with self._errors(), tempfile.NamedTemporaryFile() as local:
            source = self._system.open(self._path(name))
            try:
                source.seek(start)
                target = self._java.java.io.FileOutputStream(local.name)
                self._java.org.apache.hadoop.io.IOUtils.copyBytes(source, target, self._configuration, False)
                target.close()
            finally:
                source.close()
            return Path(local.name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        """Write or replace a file as a whole; makes the folder. If it fails, the file is what it was."""
        self._write(name, data, overwrite=True)

    def create(self, name: str, data: bytes) -> None:
        """Write a new file as a whole; makes the folder. Fails with FileExistsError if there is one."""
        if self.exists(name):  # otherwise Spark would leave a draft
            raise FileExistsError(f"{self.address}/{name} exists")
        self._write(name, data, overwrite=False)

    def append(self, name: str, data: bytes) -> None:
        """Add to the end of a file, not necessarily as a whole; the folder exists. The file is written again."""
        self.write(name, (self.read(name) if self.exists(name) else b"") + data)

    def move(self, source: str, target: str) -> None:
        """Give a file another name, as a whole; it replaces one of this name. It is copied: few systems rename."""
        with self._errors():
            self._publish(self._system.open(self._path(source)), target, overwrite=True)
            self._system.delete(self._path(source), False)

    def delete(self, name: str = "") -> None:
        """Remove a file, or a folder with all that is in it, if there is one."""
        with self._errors():
            self._system.delete(self._path(name), True)

    def _path(self, name: str) -> Any:
        return self._java.org.apache.hadoop.fs.Path(f"{self.address}/{name}") if name else self._root

    def _write(self, name: str, data: bytes, overwrite: bool) -> None:
        with self._errors(), tempfile.NamedTemporaryFile() as local:
            local.write(data)
            local.flush()
            self._publish(self._java.java.io.FileInputStream(local.name), name, overwrite)

    def _publish(self, source: Any, name: str, overwrite: bool) -> None:
        """Write a file from a stream of bytes, which is closed. The file appears when its own stream is closed."""
        path = self._path(name)
        try:
            if self._appears_on_close:
                target = self._system.create(path, overwrite)
                cancel = target.abort
            else:
                self._system.mkdirs(path.getParent())
                target = self._manager.createAtomic(path, overwrite)
                cancel = target.cancel
            try:
                self._java.org.apache.hadoop.io.IOUtils.copyBytes(source, target, self._configuration, False)
            except BaseException:
                cancel()
                raise
            if overwrite and not self._appears_on_close and not renames_over_files(self._manager):
                self._system.delete(path, False)
            target.close()
        finally:
            source.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Errors of Hadoop as those of Python, in one line."""
        try:
            yield
        except Py4JJavaError as error:
            kind = _ERRORS.get(error.java_exception.getClass().getSimpleName(), OSError)
            raise kind(f"{self.address}: {_reason(error)}") from None
        except Py4JNetworkError as error:
            raise ConnectionResetError(f"{self.address}: the Java process of Spark has ended") from error


def _reason(error: Py4JJavaError) -> str:
    """The first line of the message of Java."""
    message = error.java_exception.getMessage() or error.java_exception.getClass().getName()
    return message.splitlines()[0]
