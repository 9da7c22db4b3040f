"""The processors that kernels are compiled for: this one, or all that are in use.

A clone compiles for the processor of its machine. A wheel, an archive or an image runs on machines that its builder
does not know: its kernels are *portable*. On x86-64 they use the instructions of every processor since 2013
(x86-64-v3), on other machines those of the basic architecture. docs/decisions/compiled-kernels.md has the figures.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache

from llvmlite import binding as llvm

#: What the machine code of a kernel is compiled for: the platform, the processor and its features.
Target = tuple[str, str, str]

#: For each architecture, the processor that LLVM compiles portable code for, and the features that it needs.
_PORTABLE = {
    "x86_64": ("x86-64-v3", ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")),
    "aarch64": ("generic", ()),
    "arm64": ("apple-m1", ()),
}


def portable_environment() -> dict[str, str]:
    """The environment variables with which Numba compiles portable code."""
    processor, _ = _PORTABLE.get(_architecture(), ("generic", ()))
    return {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": ""}


def usable_targets(native: Target) -> Iterator[Target]:
    """The targets whose code runs here, the fastest first."""
    yield native
    processor, needed = _PORTABLE.get(_architecture(), ("generic", ()))
    if _host_features().issuperset(needed):
        portable = (native[0], processor, "")
        if portable != native:
            yield portable


@cache
def _host_features() -> frozenset[str]:
    return frozenset(name for name, present in llvm.get_host_cpu_features().items() if present)


def _architecture() -> str:
    return os.uname().machine
