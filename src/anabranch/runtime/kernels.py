"""Compiled kernels before work fans out: what this machine lacks is compiled once, by the driver, with a message."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from anabranch.caches import writable_cache_folder
from anabranch.compiled.build import SECONDS, all_families, compile_families, missing_families
from anabranch.compiled.store import FOLDER
from anabranch.transport.job import Job
from anabranch.transport.shared import SharedJob

#: The families that every job uses.
_SHARED = ("columns", "transport", "events", "files", "splitmix")


def ensure_kernels(jobs: Iterable[Job]) -> None:
    """Compile the kernels that jobs use and this machine does not have.

    Executors on other machines find theirs in the package or compile them: one process per machine, while others wait.
    """
    families = set(_SHARED)
    for job in jobs:
        families |= {
            type(part).__module__.split(".")[1] for part in (job.jobs if isinstance(job, SharedJob) else (job,))
        }
        if any(layout.derivation is not None for layout in job.layouts):
            families.add("inference")
    missing = missing_families(sorted(families.intersection(all_families())))
    folder = writable_cache_folder(FOLDER)
    # Where nothing is writable, each process compiles what it uses.
    if missing and folder is not None:
        names = ", ".join(family.upper() if family not in _SHARED else family for family in missing)
        seconds = max(SECONDS.get(family, 1) for family in missing)
        sys.stderr.write(f"compiling the {names} kernels for this machine, once: about {seconds} s\n")
        compile_families(missing, folder, report=lambda line: None)
