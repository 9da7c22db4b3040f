"""The cores and the memory that this process may use: those of the machine, or of its container."""

from __future__ import annotations

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")

#: The files with the memory limit of a container, in versions 2 and 1 of control groups.
_MEMORY_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")


def n_cores() -> int:
    """The cores that this process may run on. A container may get less time on them: `cpu_quota`."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_quota() -> float | None:
    """The number of cores whose time a container may use (control groups version 2); None without a limit."""
    try:
        quota, period = (_CGROUP / "cpu.max").read_text().split()
        return int(quota) / int(period)
    except (OSError, ValueError):
        return None


def machine_memory() -> int:
    """The bytes of memory of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def usable_memory() -> int:
    """The bytes of memory that this process may use."""
    return min([machine_memory(), *filter(None, map(_limit, _MEMORY_LIMITS))])


def _limit(name: str) -> int | None:
    try:
        return int((_CGROUP / name).read_text())
    except (OSError, ValueError):  # "max" is no limit
        return None
