"""Checks of this machine: one function each, without Spark."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from anabranch.cli.doctor.result import Result, fails, ok, slow
from anabranch.machine import cpu_quota, machine_memory, n_cores, usable_memory
from anabranch.runtime.java import JavaError, find_java

_GIB = 1 << 30

#: What Spark and a worker need at least, and what is enough for inputs that do not fit in memory.
_LEAST_MEMORY, _ENOUGH_MEMORY = 1 * _GIB, 4 * _GIB
_LEAST_DISK, _ENOUGH_DISK = _GIB // 4, 5 * _GIB


def python() -> Result:
    """The Python of this process, which is also that of local workers."""
    version = ".".join(map(str, sys.version_info[:3]))
    workers = os.environ.get("PYSPARK_PYTHON")
    # ./environment/bin/python is a path on the executors, in a packed environment.
    if workers and not workers.startswith(".") and shutil.which(workers) is None:
        return fails(
            f"{version}, but PYSPARK_PYTHON is {workers}, which cannot be run", "unset it, or set it to a Python"
        )
    return ok(f"{version} ({sys.executable})" + (f"; workers use {workers} (PYSPARK_PYTHON)" if workers else ""))


def packages() -> Result:
    """The versions of the packages that answers depend on."""
    names = ("anabranch", "numpy", "numba", "pyarrow", "pandas", "scipy", "shapely")
    found, missing = [], []
    for name in names:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        return fails(f"not installed: {', '.join(missing)}", f"run `pip install {' '.join(missing)}`")
    return ok(", ".join(found))


def java() -> Result:
    """The Java that Spark will run on."""
    if os.environ.get("SPARK_REMOTE"):
        return ok("not needed: SPARK_REMOTE is set")
    try:
        chosen = find_java()
    except JavaError as error:
        reason, _, advice = str(error).partition("; ")
        return fails(reason, advice or "install Java 17 or newer")
    return ok(f"{chosen.version} ({chosen.executable}, from {chosen.source})")


def spark() -> Result:
    """The installed Spark."""
    try:
        version = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return fails("pyspark is not installed", "run `pip install pyspark`")
    remote, home = os.environ.get("SPARK_REMOTE"), os.environ.get("SPARK_HOME")
    if remote:
        return ok(f"{version}, on the Connect server {remote} (SPARK_REMOTE)")
    if home and not os.access(Path(home) / "bin" / "spark-submit", os.X_OK):
        return fails(f"{version}, but SPARK_HOME is {home}, which has no bin/spark-submit", "unset SPARK_HOME")
    return ok(f"{version}" + (f" (SPARK_HOME is {home})" if home else ""))


def cores() -> Result:
    """The cores that this process may use."""
    usable, quota = n_cores(), cpu_quota()
    if quota is not None and quota < usable:
        text = f"{usable}, of which the container may use {quota:g}"
        return slow(text, f"use --master 'local[{max(round(quota), 1)}]'")
    if usable == 1:
        return slow("1", "workers and Spark share it; two or more are better")
    return ok(str(usable))


def memory() -> Result:
    """The memory of the machine or the container."""
    total, usable = machine_memory(), usable_memory()
    text = f"{usable / _GIB:.1f} GiB"
    if usable < total:
        text += f" in this container, of {total / _GIB:.1f} GiB"
    if usable < _LEAST_MEMORY:
        return fails(text, f"Spark and its workers need {_LEAST_MEMORY / _GIB:.0f} GiB or more")
    if usable < _ENOUGH_MEMORY:
        return slow(text, f"{_ENOUGH_MEMORY / _GIB:.0f} GiB or more are better")
    return ok(text)


def disk() -> Result:
    """The free space in Spark's folders for shuffles."""
    folders = os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")
    sizes = []
    for folder in folders:
        try:
            sizes.append((shutil.disk_usage(folder).free, folder))
        except OSError as error:
            return fails(f"{folder}: {error.strerror}", "set SPARK_LOCAL_DIRS to an existing folder")
    free, folder = min(sizes)
    text = f"{free / _GIB:.1f} GiB free in {folder}"
    advice = "free some space, or set SPARK_LOCAL_DIRS to a folder with more"
    if free < _LEAST_DISK:
        return fails(text, advice)
    return ok(text) if free >= _ENOUGH_DISK else slow(text, advice)


def temporary_folder() -> Result:
    """Whether files can be written to the temporary folder."""
    try:
        folder = tempfile.gettempdir()
        with tempfile.NamedTemporaryFile():
            pass
    except OSError as error:
        return fails(str(error), "set TMPDIR to a writable folder")
    return ok(f"{folder} is writable")


def host_name() -> Result:
    """Whether Spark can find the address of this machine, which its start needs."""
    name = socket.gethostname()
    if os.environ.get("SPARK_LOCAL_IP") or os.environ.get("SPARK_LOCAL_HOSTNAME"):
        return ok(f"{name}; the address is set")
    try:
        return ok(f"{name} is {socket.gethostbyname(name)}")
    except OSError:
        return fails(f"{name} has no address, so Spark does not start", "set SPARK_LOCAL_IP=127.0.0.1")
