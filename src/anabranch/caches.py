"""Folders for files that can be made again, such as compiled kernels."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

#: Set this to choose the folder; it must be writable by this user alone.
VARIABLE = "ANABRANCH_CACHE"


def cache_folders(name: str) -> Iterator[Path]:
    """The folders in which this user may have files of this name, in the order of preference; they may not exist."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        yield Path(chosen) / name
    else:
        user_cache = _user_cache()
        if user_cache is not None:
            yield user_cache / "anabranch" / name
    yield _temporary_folder() / name


def writable_cache_folder(name: str) -> Path | None:
    """The first of `cache_folders` that this user can write, made if necessary; None where nothing is writable."""
    return next((folder for folder in cache_folders(name) if _is_usable(folder)), None)


def is_private(folder: Path) -> bool:
    """Whether a folder exists and only this user (or the administrator) can write to it."""
    try:
        status = folder.stat()
    except OSError:
        return False
    others_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(status.st_mode) and status.st_uid in (os.getuid(), 0) and not others_write


def _is_usable(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return is_private(folder) and os.access(folder, os.W_OK | os.X_OK)


def _user_cache() -> Path | None:
    configured = os.environ.get("XDG_CACHE_HOME")
    if configured:
        return Path(configured)
    try:
        home = Path.home()
    except RuntimeError:  # no HOME, and the user is not in the list of users
        return None
    return home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"


def _temporary_folder() -> Path:
    return Path(tempfile.gettempdir()) / f"anabranch-{os.getuid()}"
