"""The folders of a stream, on any file system: its checkpoint, its answers and its quarantined rows.

A file is written as a whole: a reader, or a process that is started after another one was killed, sees the old content
or the new one. Local folders are used without the JVM, so they are fast and work in both modes of Spark. Folders with
an address, such as `s3a://lake/out`, are in `hadoop_folder.py`.
"""

from __future__ import annotations

import os
import shutil
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlparse

from anabranch.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def address_of(path: str) -> str:
    """The absolute path of a local folder, also of one that is written as `file:`; other addresses do not change."""
    plain = path.removeprefix("file:")
    if plain != path:
        plain = plain.removeprefix("//")
    elif urlparse(path).scheme:
        return path.rstrip("/")
    return os.path.abspath(plain)


def split_address(path: str) -> tuple[str, str]:
    """The folder that a folder is in, and its name; refused if it is a whole bucket or host."""
    address = address_of(path)
    parsed = urlparse(address)
    if parsed.scheme and not parsed.path:
        raise DataError(f"{path} is not a folder; write the answers to a folder in it")
    folder, name = os.path.split(address)
    return folder, name


def is_address(path: str) -> bool:
    """Whether a path is the address of a file system that only Spark knows."""
    return not os.path.isabs(address_of(path))


def open_folder(path: str, spark: Callable[[], SparkSession]) -> Folder:
    """The folder with this path or address, which need not exist. Only an address needs Spark."""
    if not is_address(path):
        return LocalFolder(Path(address_of(path)))
    from anabranch.runtime.hadoop_folder import HadoopFolder

    return HadoopFolder(spark(), address_of(path))


class Folder(ABC):
    """A folder that may not exist yet. Names are those of files and folders in it; they may have several parts.

    Attributes
    ----------
    address : the absolute path, or the address; Spark reads and writes it
    appends : whether the cost of `append` does not depend on what the file has
    """

    appends: ClassVar[bool]

    def __init__(self, address: str) -> None:
        self.address = address

    def __str__(self) -> str:
        return self.address

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.address.rpartition("/")[2]

    @abstractmethod
    def folder(self, name: str) -> Folder:
        """A folder in this one."""

    @abstractmethod
    def make(self) -> None:
        """Make the folder, if it does not exist."""

    @abstractmethod
    def names(self, name: str = "") -> Iterator[str]:
        """The names in the folder, or in a folder in it; none if it does not exist."""

    @abstractmethod
    def exists(self, name: str = "") -> bool:
        """Whether there is a file or a folder."""

    @abstractmethod
    def size(self, name: str) -> int:
        """The number of bytes of a file; 0 if there is none."""

    @abstractmethod
    def read(self, name: str, start: int = 0) -> bytes:
        """The content of a file behind a position. Fails with FileNotFoundError."""

    @abstractmethod
    def write(self, name: str, data: bytes) -> None:
        """Write or replace a file as a whole; makes the folder. If it fails, the file is what it was.

        A file has one writer at a time.
        """

    @abstractmethod
    def create(self, name: str, data: bytes) -> None:
        """Write a new file as a whole; makes the folder. Fails with FileExistsError if there is one."""

    @abstractmethod
    def append(self, name: str, data: bytes) -> None:
        """Add to the end of a file, not necessarily as a whole; the folder exists."""

    @abstractmethod
    def move(self, source: str, target: str) -> None:
        """Give a file another name, as a whole; it replaces one of this name."""

    @abstractmethod
    def delete(self, name: str = "") -> None:
        """Remove a file, or a folder with all that is in it, if there is one."""


class LocalFolder(Folder):
    """A folder on a file system that this machine mounts. Picklable."""

    appends: ClassVar[bool] = True

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path

    def folder(self, name: str) -> LocalFolder:
        """A folder in this one."""
        return LocalFolder(self.path / name)

    def make(self) -> None:
        """Make the folder, if it does not exist."""
        self.path.mkdir(parents=True, exist_ok=True)

    def names(self, name: str = "") -> Iterator[str]:
        """The names in the folder, or in a folder in it; none if it does not exist."""
        folder = self.path / name
        if folder.is_dir():
            yield from (path.name for path in folder.iterdir())

    def exists(self, name: str = "") -> bool:
        """Whether there is a file or a folder."""
        return (self.path / name).exists()

    def size(self, name: str) -> int:
        """The number of bytes of a file; 0 if there is none."""
        path = self.path / name
        return path.stat().st_size if path.exists() else 0

    def read(self, name: str, start: int = 0) -> bytes:
        """The content of a file behind a position. Fails with FileNotFoundError."""
        with open(self.path / name, "rb") as file:
            file.seek(start)
            return file.read()

    def write(self, name: str, data: bytes) -> None:
        """Write or replace a file as a whole; makes the folder. If it fails, the file is what it was."""
        # The draft of a process that was killed is replaced when the file is written again.
        self._write_draft(name, "draft", data, os.replace)

    def create(self, name: str, data: bytes) -> None:
        """Write a new file as a whole; makes the folder. Fails with FileExistsError if there is one."""
        self._write_draft(name, uuid.uuid4().hex, data, _name_new)

    def append(self, name: str, data: bytes) -> None:
        """Add to the end of a file, not necessarily as a whole; the folder exists."""
        with open(self.path / name, "ab") as file:
            file.write(data)

    def move(self, source: str, target: str) -> None:
        """Give a file another name, as a whole; it replaces one of this name."""
        with open(self.path / source, "rb") as file:
            os.fsync(file.fileno())  # the content is on disk before the name
        os.replace(self.path / source, self.path / target)

    def delete(self, name: str = "") -> None:
        """Remove a file, or a folder with all that is in it, if there is one."""
        path = self.path / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def _write_draft(self, name: str, suffix: str, data: bytes, publish: Callable[[Path, Path], None]) -> None:
        """Write a hidden file, which is on disk when it gets its name."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{suffix}")
        try:
            with open(draft, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            publish(draft, path)
        finally:
            draft.unlink(missing_ok=True)


def _name_new(draft: Path, path: Path) -> None:
    """Give a file a name that no other file has."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links, such as a mounted object store
        if path.exists():
            raise FileExistsError(f"{path} exists") from None
        os.replace(draft, path)
