"""One process at a time uses a checkpoint: two streams on one would overwrite each other's files.

On a local file system, the lock is that of a file, which the system removes with the process, even if it is killed.
Other file systems have no locks: there, a *lease* is a file that its owner renews. It refuses a second stream early and
in one line. Besides, Spark stops one of two streams on a checkpoint when both write the same entry of its log.

The streams of one process share its lock: Spark itself stops a running stream if another one of the session starts on
its checkpoint.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Self

from anabranch.errors import StateError
from anabranch.runtime.file_system import Folder, LocalFolder

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

_FILE = "lock"
#: How often a lock is tried, and the pause between, in seconds.
_ATTEMPTS, _PAUSE = 5, 0.02
#: Seconds between two renewals of a lease, and without a renewal until its owner is taken for dead.
RENEWED_EVERY, EXPIRES_AFTER = 5.0, 30.0


class FolderLock:
    """The lock of one stream on a folder; refused if another process has it."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        with _changes:
            if folder.address not in _held:
                own = _FileLock(folder.path) if isinstance(folder, LocalFolder) else _Lease(folder)
                _held[folder.address] = _Held(own)
            _held[folder.address].streams += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Release the lock if the stream could not be started."""
        if kind is not None:
            self.release()

    def release(self) -> None:
        """Let other processes use the folder, if no other stream of this process does."""
        with _changes:
            held = _held[self._folder.address]
            held.streams -= 1
            if not held.streams:
                del _held[self._folder.address]
                held.lock.release()

    def release_after(self, stream: StreamingQuery) -> None:
        """Release the lock when a stream has ended, for whatever reason."""

        def wait() -> None:
            with suppress(Exception):  # of the stream: others report it
                stream.awaitTermination()
            self.release()

        threading.Thread(target=wait, name=f"lock of {self._folder}", daemon=True).start()


def owner_of(folder: Folder) -> str | None:
    """The process that has the lock of a folder; None if no process has it."""
    return _owner_of_file(folder.path) if isinstance(folder, LocalFolder) else _owner_of_lease(folder)


def _refuse(folder: object, process: str) -> NoReturn:
    raise StateError(
        f"the checkpoint {folder} is used by a stream that runs (process {process}); stop it first, or use another "
        "checkpoint folder"
    ) from None


class _FileLock:
    """The lock of a local file, which has the number of the process, for the message of others."""

    def __init__(self, folder: Path) -> None:
        self._descriptor = os.open(folder / _FILE, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(self._descriptor)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                return  # a file system without locks
            number = _number_in(self._descriptor)
            os.close(self._descriptor)
            _refuse(folder, number)
        with suppress(OSError):  # the disk may be full
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let other processes have the lock."""
        os.close(self._descriptor)


def _lock(descriptor: int) -> None:
    """Lock an open file. `owner_of` has the lock for a moment, therefore it is tried several times."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(_PAUSE)
    return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _number_in(descriptor: int) -> str:
    return os.pread(descriptor, 20, 0).decode(errors="replace")


def _owner_of_file(folder: Path) -> str | None:
    try:
        descriptor = os.open(folder / _FILE, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        # For a moment only: a stream that is started meanwhile tries again (`_lock`).
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _number_in(descriptor)
    finally:
        os.close(descriptor)
    return None


@dataclass(frozen=True, slots=True)
class _Owner:
    """What the file of a lease says.

    Attributes
    ----------
    id : of the lease
    host, process : where its owner runs
    renewed : when it was renewed, by the clock of the owner, in seconds since 1970
    """

    id: str
    host: str
    process: int
    renewed: float

    @staticmethod
    def in_folder(folder: Folder) -> _Owner | None:
        """The owner of a folder; None if it has none."""
        with suppress(FileNotFoundError, ValueError, TypeError):
            return _Owner(**json.loads(folder.read(_FILE)))
        return None

    def has_ended(self) -> bool:
        """Whether it was a process of this machine that does not exist any more, or an earlier stream of this one."""
        if self.host != socket.gethostname():
            return False
        return self.process == os.getpid() or not _exists(self.process)

    def __str__(self) -> str:
        return f"{self.process} on {self.host}"


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is that of another user
        return True
    return True


class _Lease:
    """A file that says who uses a folder, and that a thread renews until it is released."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._id = uuid.uuid4().hex
        self._take()
        self._released = threading.Event()
        self._writing = threading.Lock()
        threading.Thread(target=self._renew, name=f"lease of {folder}", daemon=True).start()

    def release(self) -> None:
        """Let other processes have the lease."""
        self._released.set()
        with self._writing, suppress(Exception):  # the JVM may have ended: the lease expires
            if self._is_mine():
                self._folder.delete(_FILE)

    def _take(self) -> None:
        """Take the lease if there is none, or if that of another process is not renewed any more.

        Clocks of machines differ, so the age of a lease says little: it is watched until it is renewed or expires.
        """
        found = _Owner.in_folder(self._folder)
        if found is None:
            try:
                return self._folder.create(_FILE, self._content())
            except FileExistsError:
                found = _Owner.in_folder(self._folder)
        deadline = time.monotonic() + EXPIRES_AFTER
        while found is not None and not found.has_ended() and time.monotonic() < deadline:
            time.sleep(RENEWED_EVERY / 10)
            now = _Owner.in_folder(self._folder)
            if now is not None and now != found:
                _refuse(self._folder, str(now))
            found = now
        self._folder.write(_FILE, self._content())

    def _renew(self) -> None:
        while not self._released.wait(RENEWED_EVERY):
            with self._writing, suppress(Exception):  # of the file system: the next attempt may succeed
                if self._released.is_set() or not self._is_mine():
                    return
                self._folder.write(_FILE, self._content())

    def _is_mine(self) -> bool:
        owner = _Owner.in_folder(self._folder)
        return owner is not None and owner.id == self._id

    def _content(self) -> bytes:
        return json.dumps(asdict(_Owner(self._id, socket.gethostname(), os.getpid(), time.time()))).encode()


def _owner_of_lease(folder: Folder) -> str | None:
    owner = _Owner.in_folder(folder)
    if owner is None or time.time() - owner.renewed > EXPIRES_AFTER:
        return None
    if owner.process != os.getpid() and owner.has_ended():
        return None
    return str(owner)


@dataclass(slots=True)
class _Held:
    """The lock of this process on a folder, and the number of streams that use it."""

    lock: _FileLock | _Lease
    streams: int = 0


_held: dict[str, _Held] = {}
_changes = threading.Lock()
