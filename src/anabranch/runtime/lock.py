"""One process at a time uses a checkpoint: two streams on one would overwrite each other's files.

The system removes the lock of a process that ends, even if it is killed. The streams of one process share its lock:
Spark itself stops a running stream if another one of the session starts on its checkpoint.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from anabranch.errors import StateError

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

_FILE = "lock"
#: How often a lock is tried, and the pause between, in seconds.
_ATTEMPTS, _PAUSE = 5, 0.02


@dataclass(slots=True)
class _Held:
    """The lock of this process on a folder, and the number of streams that use it."""

    descriptor: int
    streams: int = 0


_held: dict[Path, _Held] = {}
_changes = threading.Lock()


class FolderLock:
    """The lock of one stream on a folder; refused if another process has it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with _changes:
            if folder not in _held:
                _held[folder] = _Held(_acquired(folder))
            _held[folder].streams += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Release the lock if the stream could not be started."""
        if kind is not None:
            self.release()

    def release(self) -> None:
        """Let other processes use the folder, if no other stream of this process does."""
        with _changes:
            held = _held[self._folder]
            held.streams -= 1
            if not held.streams:
                del _held[self._folder]
                os.close(held.descriptor)

    def release_after(self, stream: StreamingQuery) -> None:
        """Release the lock when a stream has ended, for whatever reason."""

        def wait() -> None:
            with suppress(Exception):  # of the stream: others report it
                stream.awaitTermination()
            self.release()

        threading.Thread(target=wait, name=f"lock of {self._folder}", daemon=True).start()


def _acquired(folder: Path) -> int:
    """The descriptor of the locked file, which has the number of the process, for the message of others."""
    descriptor = os.open(folder / _FILE, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _lock(descriptor)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            return descriptor  # a file system without locks
        number = _owner(descriptor)
        os.close(descriptor)
        raise StateError(
            f"the checkpoint {folder} is used by a stream that runs (process {number}); stop it first, or use another "
            "checkpoint folder"
        ) from None
    with suppress(OSError):  # the disk may be full
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


def _lock(descriptor: int) -> None:
    """Lock an open file. `owner_of` has the lock for a moment, therefore it is tried several times."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(_PAUSE)
    return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _owner(descriptor: int) -> str:
    return os.pread(descriptor, 20, 0).decode(errors="replace")


def owner_of(folder: Path) -> str | None:
    """The number of the process that has the lock of a folder; None if no process has it."""
    try:
        descriptor = os.open(folder / _FILE, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        # For a moment only: a stream that is started meanwhile tries again (`_lock`).
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _owner(descriptor)
    finally:
        os.close(descriptor)
    return None
