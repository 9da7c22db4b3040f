"""Compiles kernels in advance: `python -m anabranch.compiled.build`, and before the first query of a kind.

Each family of kernels is compiled by a process of its own, as many at a time as there are cores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from numba.core.registry import cpu_target

from anabranch.compiled import store
from anabranch.compiled.signatures import Signature, decode_signature, family_of, listed_signatures
from anabranch.compiled.targets import portable_environment
from anabranch.errors import AnabranchError
from anabranch.machine import n_cores
from anabranch.patches import numba_cache

#: Seconds of one core that a family takes, the longest first.
SECONDS = {
    "monitor": 140, "inference": 20, "relate": 15, "pattern": 15, "sequence": 15, "constrain": 12, "files": 8,
    "events": 2, "transport": 2, "columns": 2, "splitmix": 1,
}  # fmt: skip

Report = Callable[[str], None]


def missing_families(families: Sequence[str]) -> list[str]:
    """Those of the families of which this machine does not have all compiled kernels."""
    return [family for family in families if None in stored_files(family)]


def stored_files(family: str) -> Iterator[Path | None]:
    """The files of the compiled kernels of a family; None for each that this machine does not have."""
    native = numba_cache.target_of(cpu_target.target_context)
    return (store.stored_file(function, signature, native) for function, signature in _listed(family))


def _missing_in(folder: Path, families: Sequence[str]) -> list[str]:
    """Those of the families that are not complete in one folder, compiled for this processor."""
    native = numba_cache.target_of(cpu_target.target_context)

    def is_complete(family: str) -> bool:
        names = (store.file_name(function, signature, native) for function, signature in _listed(family))
        return all((folder / name).exists() for name in names)

    return [family for family in families if not is_complete(family)]


def compile_families(families: Sequence[str], folder: Path, report: Report, portable: bool = False) -> None:
    """Compile families of kernels into a folder, in parallel.

    Parameters
    ----------
    families : sequence of str
        Packages with kernels.
    folder : Path
        Where the files go; compiled kernels that it already has are kept.
    report : callable
        Gets a line for each compiled family.
    portable : bool
        Compile for all processors in use, not only for this one.
    """
    environment = {**os.environ, **(portable_environment() if portable else {})}
    waiting = sorted(families, key=lambda family: -SECONDS.get(family, 0))
    running: dict[str, tuple[subprocess.Popen[bytes], float]] = {}
    n_done = 0
    try:
        while waiting or running:
            while waiting and len(running) < n_cores():
                family = waiting.pop(0)
                running[family] = (_start(family, folder, environment), time.monotonic())
            for family in _finished(running):
                process, started = running.pop(family)
                if process.returncode:
                    raise AnabranchError(f"the {family} kernels cannot be compiled; see the messages above")
                n_done += 1
                report(f"compiled {family} in {time.monotonic() - started:.0f} s, {n_done} of {len(families)}")
    finally:
        for process, _ in running.values():
            process.kill()


def _start(family: str, folder: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", __spec__.name if __spec__ else __name__, "--folder", str(folder), "--here", family]
    search_path = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(command, env={**environment, "PYTHONPATH": search_path}, stdin=subprocess.DEVNULL)


def _finished(running: dict[str, tuple[subprocess.Popen[bytes], float]]) -> list[str]:
    done = [family for family, (process, _) in running.items() if process.poll() is not None]
    if not done:
        time.sleep(0.05)
    return done


def compile_here(family: str, folder: Path) -> None:
    """Compile the kernels of one family into a folder, in this process, and remove its files that are out of date.

    Those of the package are copied from the user's cache if another clone on this machine has compiled them.
    """
    context = cpu_target.target_context
    context.refresh()
    target = numba_cache.target_of(context)
    kept = set()
    with store.family_lock(folder, family):
        for function, signature in _listed(family):
            name = store.file_name(function, signature, target)
            kept.add(name)
            if not (folder / name).exists() and not (folder == store.PACKAGED and store.copy_cached(name, folder)):
                store.write(folder, name, _compile(function, signature))
                if folder == store.PACKAGED:
                    store.keep_cached(folder / name)
        store.remove_others(folder, family, kept)


def _compile(function: str, signature: Signature) -> Any:
    module, name = function.split(":")
    return numba_cache.compile_result(getattr(import_module(module), name), decode_signature(signature))


def _listed(family: str) -> Iterator[tuple[str, Signature]]:
    for function, signatures in listed_signatures().items():
        if family_of(function) == family:
            for signature in signatures:
                yield function, signature


def all_families() -> list[str]:
    """The packages that have listed kernels."""
    return sorted({family_of(function) for function in listed_signatures()})


def main() -> None:
    """Read the arguments and compile what is missing."""
    parser = argparse.ArgumentParser(prog="python -m anabranch.compiled.build", description=__doc__)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help="default: all")
    parser.add_argument("--portable", action="store_true", help="compile for all processors in use, not only this one")
    parser.add_argument("--folder", type=Path, default=store.PACKAGED, help="default: the package's own folder")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    families = options.families or all_families()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.here:
        for family in families:
            compile_here(family, options.folder)
        return
    if not options.portable:
        families = _missing_in(options.folder, families)
    compile_families(families, options.folder, _print_line, options.portable)


def _print_line(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    main()
