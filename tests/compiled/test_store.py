"""Compiled kernels on disk: found after a copy, compiled once per machine, never trusted from foreign folders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from numba.core.registry import cpu_target

from anabranch.caches import VARIABLE
from anabranch.compiled import build, store, targets
from anabranch.patches import numba_cache

MIX_ALL = "anabranch.splitmix:mix_all"
SIGNATURE = [["array", "uint64", 1, "C"]]

#: Reads lists of environments. In each environment, a fork of the process calls a small kernel, and prints the result
#: and what was compiled. Numba is imported once, before the forks, because that takes longer than the call.
PROGRAM = """
import json, os, pathlib, sys
import numpy as np
from numba.core.dispatcher import _FunctionCompiler

def call_kernel():
    from anabranch.compiled import store
    store.PACKAGED = pathlib.Path("/nowhere")
    compiled = []
    numba_compile = _FunctionCompiler.compile
    def recording(self, args, return_type):
        if self.py_func.__module__.startswith("anabranch."):
            compiled.append(self.py_func.__name__)
        return numba_compile(self, args, return_type)
    _FunctionCompiler.compile = recording
    from anabranch.splitmix import mix_all
    return " ".join(map(str, [mix_all(np.array([3], np.uint64))[0], *compiled]))

def fork(environment):
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            os.environ.clear()
            os.environ.update(environment)
            os.write(writer, call_kernel().encode())
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(0)
    os.close(writer)
    return reader

for line in sys.stdin:
    readers = [fork(environment) for environment in json.loads(line)]
    print(json.dumps([open(reader).read() for reader in readers]), flush=True)
"""

VALUE = "2092789425003139053"
COMPILED = f"{VALUE} mix_all"


Call = Callable[..., str]
CallTogether = Callable[..., list[str]]


@pytest.fixture(scope="module")
def call_together() -> Iterator[CallTogether]:
    """Returns what processes with these environments print, which are started together."""
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout

        def call(*environments: dict[str, str]) -> list[str]:
            hidden = ("HOME", "XDG_CACHE_HOME", VARIABLE)
            known = {name: value for name, value in os.environ.items() if name not in hidden}
            process.stdin.write(json.dumps([known | environment for environment in environments]) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield call
        process.stdin.close()


@pytest.fixture
def call_kernel(call_together: CallTogether) -> Call:
    """Returns what a process prints, with a folder for compiled kernels or another environment."""

    def call(folder: Path | None = None, **environment: str) -> str:
        (printed,) = call_together(({VARIABLE: str(folder)} if folder else {}) | environment)
        return printed

    return call


def stored(folder: Path) -> list[Path]:
    return sorted(folder.rglob("splitmix-mix_all-*.kernel"))


def test_a_kernel_is_compiled_once_and_found_after_a_copy(tmp_path: Path, call_kernel: Call) -> None:
    assert call_kernel(tmp_path / "first") == COMPILED
    assert call_kernel(tmp_path / "first") == VALUE
    (tmp_path / "second" / "kernels").mkdir(parents=True)
    (file,) = stored(tmp_path / "first")
    (tmp_path / "second" / "kernels" / file.name).write_bytes(file.read_bytes())
    assert call_kernel(tmp_path / "second") == VALUE


def test_processes_that_start_together_compile_once(tmp_path: Path, call_together: CallTogether) -> None:
    printed = call_together(*[{VARIABLE: str(tmp_path)}] * 3)
    assert sorted(printed) == [VALUE, VALUE, COMPILED]


@pytest.mark.parametrize("content", [b"", b"x" * 1000], ids=["empty", "wrong checksum"])
def test_a_damaged_file_is_compiled_again(tmp_path: Path, content: bytes, call_kernel: Call) -> None:
    call_kernel(tmp_path)
    (file,) = stored(tmp_path)
    file.write_bytes(content)
    assert call_kernel(tmp_path) == COMPILED
    assert call_kernel(tmp_path) == VALUE


def test_without_a_home_the_temporary_folder_is_used(tmp_path: Path, call_kernel: Call) -> None:
    environment = {"HOME": "/proc/nowhere", "TMPDIR": str(tmp_path)}
    assert call_kernel(**environment) == COMPILED
    assert [path.parent.parent.name for path in stored(tmp_path)] == [f"anabranch-{os.getuid()}"]
    assert call_kernel(**environment) == VALUE


def test_a_folder_that_others_can_write_is_not_used(tmp_path: Path, call_kernel: Call) -> None:
    folder = tmp_path / f"anabranch-{os.getuid()}"
    folder.mkdir()
    (folder / "kernels").mkdir()
    (folder / "kernels").chmod(0o777)
    environment = {"HOME": "/proc/nowhere", "TMPDIR": str(tmp_path)}
    assert call_kernel(**environment) == COMPILED
    assert not stored(tmp_path)


def test_the_name_depends_on_what_the_code_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    target = numba_cache.target_of(cpu_target.target_context)
    names = {
        store.file_name(MIX_ALL, SIGNATURE, target),
        store.file_name(MIX_ALL, [["array", "uint64", 1, "A"]], target),
        store.file_name("anabranch.splitmix:uniform", SIGNATURE, target),
        store.file_name(MIX_ALL, SIGNATURE, (*target[:2], "+other")),
    }
    monkeypatch.setattr(store, "source_digest", lambda family: "another source")
    names.add(store.file_name(MIX_ALL, SIGNATURE, target))
    monkeypatch.setattr(store, "_versions", lambda: ["another version"])
    names.add(store.file_name(MIX_ALL, SIGNATURE, target))
    assert len(names) == 6


def test_sources_of_one_family_do_not_change_the_names_of_another() -> None:
    digests = {family: store.source_digest(family) for family in build.all_families()}
    assert len(set(digests.values())) == len(digests)


def test_kernels_of_other_packages_depend_on_their_own_sources() -> None:
    digests = {family: store.source_digest(family) for family in ("benchmarks", "reproductions", "pattern")}
    assert len(set(digests.values())) == 3


def test_a_full_disk_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.numba_cache, "to_bytes", lambda result: b"code")
    monkeypatch.setattr(store.os, "replace", no_space)
    store.write(tmp_path, "splitmix-mix_all-1.kernel", None)
    assert list(tmp_path.iterdir()) == []


def test_portable_kernels_are_used_where_native_ones_are_missing(tmp_path: Path, call_kernel: Call) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir(mode=0o700)
    lines: list[str] = []
    build.compile_families(["splitmix"], folder, lines.append, portable=True)
    assert len(lines) == 1 and lines[0].startswith("compiled splitmix in ")
    assert call_kernel(tmp_path) == VALUE


def test_portable_code_runs_only_where_the_processor_has_its_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    native = ("triple", "this-processor", "+all")
    assert list(targets.usable_targets(native))[0] == native
    monkeypatch.setattr(targets, "_architecture", lambda: "x86_64")
    monkeypatch.setattr(targets, "_host_features", lambda: frozenset({"avx2"}))
    assert list(targets.usable_targets(native)) == [native]
    monkeypatch.setattr(targets, "_host_features", lambda: frozenset(targets._PORTABLE["x86_64"][1]))
    assert list(targets.usable_targets(native)) == [native, ("triple", "x86-64-v3", "")]


def test_a_build_removes_what_is_out_of_date(tmp_path: Path) -> None:
    old = tmp_path / "splitmix-mix_all-0123456789.kernel"
    other = tmp_path / "pattern-step_single-0123456789.kernel"
    for path in (old, other):
        path.write_bytes(b"")
    build.compile_here("splitmix", tmp_path)
    assert not old.exists() and other.exists()
    assert len(stored(tmp_path)) == 1


def test_families_are_missing_until_they_are_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "PACKAGED", tmp_path)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert build.missing_families(["splitmix"]) == ["splitmix"]
    build.compile_here("splitmix", tmp_path)
    assert build.missing_families(["splitmix"]) == []


def test_a_second_clone_copies_what_the_first_has_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv(VARIABLE, str(cache))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for clone in ("first", "second", "third"):
        (tmp_path / clone).mkdir()
    monkeypatch.setattr(store, "PACKAGED", tmp_path / "first")
    build.compile_here("splitmix", tmp_path / "first")
    (file,) = stored(tmp_path / "first")
    name, content = file.name, file.read_bytes()
    assert (cache / store.FOLDER / name).read_bytes() == content

    old = cache / store.FOLDER / "splitmix-mix_all-0123456789.kernel"
    old.write_bytes(b"")
    os.utime(old, (0, 0))
    compiled: list[str] = []
    compile_kernel = build._compile
    monkeypatch.setattr(build, "_compile", lambda *call: compiled.append(call[0]) or compile_kernel(*call))
    monkeypatch.setattr(store, "PACKAGED", tmp_path / "second")
    build.compile_here("splitmix", tmp_path / "second")
    assert (tmp_path / "second" / name).read_bytes() == content
    assert compiled == []

    (cache / store.FOLDER / name).write_bytes(content[:-1])
    monkeypatch.setattr(store, "PACKAGED", tmp_path / "third")
    build.compile_here("splitmix", tmp_path / "third")
    assert compiled == [MIX_ALL]
    assert [kept.name for kept in stored(cache)] == [name]


def test_a_family_that_does_not_compile_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    monkeypatch.setenv("NUMBA_CPU_NAME", "no such processor")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with pytest.raises(build.AnabranchError, match="the splitmix kernels cannot be compiled"):
        build.compile_families(["splitmix"], tmp_path, lambda line: None)
