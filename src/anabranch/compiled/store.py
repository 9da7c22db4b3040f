"""Compiled kernels on disk.

A file is named by a hash of everything that its code depends on: the sources of the kernels, the versions of Python,
Numba and LLVM, the target and the argument types. So a file is valid wherever it is copied, and is never stale. Kernels
are looked up in the package (a wheel ships them, `make install` compiles them), then in the user's cache, then in a
temporary folder; a process that needs a kernel which is nowhere compiles it, while other processes wait, and keeps it
in the cache.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np

from anabranch.caches import cache_folders, is_private, writable_cache_folder
from anabranch.compiled.signatures import Signature, encode_signature, family_of, is_listed
from anabranch.compiled.targets import Target, usable_targets
from anabranch.patches import numba_cache

#: The kernels that the package brings along.
PACKAGED = Path(__file__).parent / "kernels"

#: The file to which every process appends the kernels that it uses and that are not listed; for tests.
UNLISTED = "ANABRANCH_UNLISTED_KERNELS"

#: The name of the folder in a cache.
FOLDER = "kernels"
_SUFFIX = ".kernel"
_CHECKSUM_BYTES = 32
#: How long a compiled kernel that is not copied any more stays in the user's cache.
_KEPT_DAYS = 90


def fetch(function: str, args: Any, compile_kernel: Callable[[], Any], target_context: Any) -> Any:
    """The compile result of a function for argument types: from disk, or compiled now and kept.

    Parameters
    ----------
    function : str
        The function as `module:function`.
    args : tuple
        Argument types of Numba.
    compile_kernel : callable
        Compiles the function for these types.
    target_context : Any
        Numba's target context.
    """
    signature = encode_signature(args)
    if function.startswith("anabranch.") and not is_listed(function, signature):
        _note_unlisted(function, signature)
    native = numba_cache.target_of(target_context)
    found = _load(function, signature, native, target_context)
    if found is not None:
        return found
    folder = writable_cache_folder(FOLDER)
    with family_lock(folder, family_of(function)):
        # Another process may have compiled it while this one waited.
        found = _load(function, signature, native, target_context)
        if found is not None:
            return found
        result = compile_kernel()
        numba_cache.set_environments(result)
        if folder is not None:
            write(folder, file_name(function, signature, native), result)
        return result


def stored_file(function: str, signature: Signature, native: Target) -> Path | None:
    """The file of a compiled kernel that runs here; None where this machine has none."""
    names = [file_name(function, signature, target) for target in usable_targets(native)]
    return next((folder / name for name in names for folder in folders() if (folder / name).exists()), None)


def folders() -> Iterator[Path]:
    """The folders with compiled kernels that can be trusted: the package's, and those that only this user can write."""
    yield PACKAGED
    for folder in cache_folders(FOLDER):
        if is_private(folder):
            yield folder


def file_name(function: str, signature: Signature, target: Target) -> str:
    """The name of the file of a kernel, compiled for argument types and a target."""
    family = family_of(function)
    content = json.dumps([function, signature, target, source_digest(family), _versions()])
    return f"{family}-{function.split(':')[1]}-{hashlib.sha256(content.encode()).hexdigest()[:24]}{_SUFFIX}"


def write(folder: Path, name: str, result: Any) -> None:
    """Write a compile result, so that other processes see the whole file or none. A full disk is no error."""
    payload = numba_cache.to_bytes(result)
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".", suffix=_SUFFIX)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(payload).digest() + payload)
            Path(temporary).chmod(0o644)
            os.replace(temporary, folder / name)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise


def copy_cached(name: str, folder: Path) -> bool:
    """Copy the file of a kernel from the user's cache to a folder; returns whether the cache has it."""
    for cached in cache_folders(FOLDER):
        source = cached / name
        if is_private(cached) and _read(source) is not None:
            with suppress(OSError):
                os.utime(source)
                shutil.copyfile(source, folder / f".{name}")
                os.replace(folder / f".{name}", folder / name)
                return True
    return False


def keep_cached(file: Path) -> None:
    """Copy the file of a kernel to the user's cache, and remove files there that were not used for a long time."""
    folder = writable_cache_folder(FOLDER)
    if folder is None:
        return
    with suppress(OSError):
        shutil.copyfile(file, folder / f".{file.name}")
        os.replace(folder / f".{file.name}", folder / file.name)
        for other in folder.glob(f"*{_SUFFIX}"):
            if time.time() - other.stat().st_mtime > _KEPT_DAYS * 86_400:
                other.unlink()


def remove_others(folder: Path, family: str, kept: set[str]) -> None:
    """Remove the files of a family that are not among `kept`: older sources, other versions, other processors."""
    for path in folder.glob(f"{family}-*{_SUFFIX}"):
        if path.name not in kept:
            path.unlink(missing_ok=True)


@cache
def source_digest(family: str) -> str:
    """A hash of the sources that the code of a family depends on; it does not depend on where the package is."""
    digest = hashlib.sha256()
    for path in _sources(resources.files("anabranch"), family):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _sources(package: Any, family: str) -> Iterator[Any]:
    yield from (package / "arrays.py", package / "splitmix.py", package / "compiled" / "__init__.py")
    yield from _python_files(package / "patches", "numba_")
    if (package / family / "kernel.py").is_file():
        yield package / family / "kernel.py"
    elif (package / family).is_dir():
        yield from _python_files(package / family / "kernel", "")
    elif not (package / f"{family}.py").is_file():
        # Another package, such as the benchmarks, whose kernels may call any kernel of this one.
        for path in (resources.files(family), package):
            yield from sorted(Path(str(path)).rglob("*.py"))


def _python_files(folder: Any, prefix: str) -> list[Any]:
    files = [path for path in folder.iterdir() if path.name.endswith(".py") and path.name.startswith(prefix)]
    return sorted(files, key=lambda path: str(path.name))


@cache
def _versions() -> list[str]:
    python = f"{sys.implementation.name}-{sys.version_info[0]}.{sys.version_info[1]}"
    return [python, numba.__version__, llvmlite.__version__, np.__version__.split(".")[0]]


def _load(function: str, signature: Signature, native: Target, target_context: Any) -> Any:
    for target in usable_targets(native):
        name = file_name(function, signature, target)
        for folder in folders():
            payload = _read(folder / name)
            if payload is not None:
                return numba_cache.from_bytes(payload, target_context)
    return None


def _read(path: Path) -> bytes | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    checksum, payload = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
    return payload if hashlib.sha256(payload).digest() == checksum else None


@contextmanager
def family_lock(folder: Path | None, family: str) -> Iterator[None]:
    """One process of this user on this machine compiles kernels of a family at a time."""
    if folder is None:
        yield
        return
    with (folder / f"{family}.lock").open("a") as lock:
        with suppress(OSError):  # a file system without locks: two processes may compile the same kernel
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _note_unlisted(function: str, signature: Signature) -> None:
    path = os.environ.get(UNLISTED)
    if path:
        with Path(path).open("a") as file:
            file.write(json.dumps([function, signature]) + "\n")
