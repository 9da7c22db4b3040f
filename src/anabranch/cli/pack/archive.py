"""Writes an archive, with progress."""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from anabranch.cli.pack.contents import Member
from anabranch.errors import AnabranchError

#: Of the archives that Spark unpacks, those that keep their permissions: Python must be executable.
_ENDINGS = (".tar.gz", ".tgz")

_REPORT_EVERY_SECONDS = 2.0


def write_archive(path: Path, members: Sequence[Member], level: int, report: Callable[[int, int], None]) -> None:
    """Write files to an archive, which appears when it is complete.

    Parameters
    ----------
    level : int
        The level of compression of gzip; 0 does not compress.
    report : callable
        Called every two seconds with the number of files and of bytes that were added.

    Raises
    ------
    AnabranchError
        If the name does not end with .tar.gz or .tgz.
    """
    if not path.name.endswith(_ENDINGS):
        raise AnabranchError(f"{path} is no name of an archive; it ends with {' or '.join(_ENDINGS)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(prefix=".pack-", dir=path.parent)
    try:
        with (
            os.fdopen(descriptor, "wb") as file,
            # Links of an environment lead out of it, so the files behind them are stored.
            tarfile.open(fileobj=file, mode="w:gz", dereference=True, compresslevel=level) as archive,
        ):
            _add(archive, members, report)
        os.chmod(draft, 0o644)
        os.replace(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _add(archive: tarfile.TarFile, members: Sequence[Member], report: Callable[[int, int], None]) -> None:
    n_bytes, reported = 0, time.monotonic()
    for number, member in enumerate(members):
        if isinstance(member.source, str):
            entry, content = _program(member.name, member.source)
            archive.addfile(entry, content)
        else:
            entry = archive.gettarinfo(member.source, member.name)
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            with open(member.source, "rb") as source:
                archive.addfile(entry, source)
        n_bytes += entry.size
        if time.monotonic() - reported >= _REPORT_EVERY_SECONDS:
            report(number, n_bytes)
            reported = time.monotonic()


def _program(name: str, text: str) -> tuple[tarfile.TarInfo, io.BytesIO]:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(text.encode()), 0o755, int(time.time())
    return entry, io.BytesIO(text.encode())
