"""The Dockerfile names files, packages and commands that exist. The image itself is built by `docker build`."""

from __future__ import annotations

import fnmatch
import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile with their arguments, continued lines joined."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


def commands() -> list[list[str]]:
    """The commands of all RUN instructions, as lists of words."""
    scripts = [argument for name, argument in instructions() if name == "RUN"]
    return [shlex.split(command) for script in scripts for command in script.split("&&")]


def ignored(name: str) -> bool:
    """Whether .dockerignore leaves a file out: the last pattern that matches decides."""
    result = False
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!").removeprefix("**/")
        if line and not line.startswith("#") and any(fnmatch.fnmatch(part, pattern) for part in Path(name).parts):
            result = not line.startswith("!")
    return result


def test_copied_files_exist_and_are_not_ignored() -> None:
    copied = [
        name
        for instruction, argument in instructions()
        if instruction == "COPY" and "--from" not in argument
        for name in argument.split()[:-1]
    ]
    assert {"requirements.lock", "pyproject.toml", "setup.py", "src"} <= set(copied)
    for name in copied:
        assert (ROOT / name).exists()
        assert not ignored(name)
    for name in (".git", ".venv", "tests", "docs", "src/anabranch/__pycache__"):
        assert ignored(name)


def test_stages_users_and_folders_belong_together() -> None:
    images = [argument for name, argument in instructions() if name == "FROM"]
    assert images == ["python:3.11-slim AS build", "python:3.11-slim"], "the environment needs the same Python in both"
    (user,) = [argument for name, argument in instructions() if name == "USER"]
    assert any(command[0] == "useradd" and command[-1] == user for command in commands())
    built = next(command[-1] for command in commands() if command[:3] == ["python", "-m", "venv"])
    assert ("COPY", f"--from=build {built} {built}") in instructions()
    assert any(name == "ENV" and f'PATH="{built}/bin:$PATH"' in argument for name, argument in instructions())


def test_commands_of_anabranch_exist() -> None:
    called = [command[1] for command in commands() if Path(command[0]).name == "anabranch"]
    assert called
    for name in called:
        assert find_spec(f"anabranch.cli.{name}") is not None
    modules = [command[command.index("-m") + 1] for command in commands() if "-m" in command]
    assert "anabranch.compiled.build" in modules
    for name in modules:
        assert find_spec(name) is not None


@pytest.mark.parametrize("package", ["setuptools", "pyspark", "prompt-toolkit"])
def test_the_lock_file_has_what_the_image_installs(package: str) -> None:
    assert re.search(rf"^{package}==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    backend = next(command for command in commands() if command[0] == "sed")
    assert backend[2] == "/^setuptools==/,/[0-9a-f]$/p"
