"""What the command line loads before it does anything: the commands that need no data start at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.cli.command import Command

from anabranch.cli.commands import COMMANDS

WORKBOOKS = Path(__file__).parents[1] / "fixtures" / "identity"

#: What takes long to load.
HEAVY = {"numba", "numpy", "pandas", "pyarrow", "pyspark", "rich", "scipy", "shapely"}

CALLS = [
    ["--help"],
    ["--version"],
    *(
        [command, str(WORKBOOKS / f"{kind}.abq")]
        for command in ("check", "explain")
        for kind in ("pattern", "sequence", "relate", "monitor", "constrain")
        # The score tables of a SEQUENCE are made to find out whether they are too large.
        if (command, kind) != ("check", "sequence")
    ),
]

CODE = """
import json, sys
from threading import Event
from anabranch.cli.main import _status
for call in json.loads(sys.argv[1]):
    sys.argv = ["anabranch", *call]
    print(json.dumps([call, _status(Event()), sorted(sys.modules)]), file=sys.__stderr__)
"""


def test_help_version_check_and_explain_load_neither_spark_nor_arrays() -> None:
    # Without a Java, a session could not be started.
    env = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": "/nowhere"}
    done = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps(CALLS)], capture_output=True, text=True, env=env, check=True
    )
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("[[")]
    assert [call for call, _, _ in lines] == CALLS
    for call, status, modules in lines:
        assert status == 0, (call, done.stderr)
        assert not HEAVY & set(modules), call
    assert "RELATE" in done.stdout, "the plans are printed"


def test_check_never_loads_spark() -> None:
    call = ["check", str(WORKBOOKS / "sequence.abq")]
    done = subprocess.run([sys.executable, "-c", CODE, json.dumps([call])], capture_output=True, text=True, check=True)
    (line,) = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("[[")]
    assert line[1] == 0
    assert "pyspark" not in line[2]


def test_python_m_anabranch_is_the_command_line() -> None:
    done = subprocess.run([sys.executable, "-m", "anabranch", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"anabranch {version('anabranch')}\n"
    assert done.stderr == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_is_the_same_in_the_list_and_in_its_own_page(name: str, anabranch: Command) -> None:
    page = " ".join(anabranch(name, "--help").out.split())
    assert page.startswith(f"Usage: anabranch {name} ")
    assert COMMANDS[name] in page
    module = import_module(f"anabranch.cli.{name.replace('-', '_')}")
    if name != "fit":
        assert module.command.__doc__.splitlines()[0] == COMMANDS[name]
    assert COMMANDS[name] in " ".join(anabranch("--help").out.split())


def test_a_misspelled_command_gets_a_suggestion(anabranch: Command) -> None:
    wrong = anabranch("explane", "x.abq")
    assert wrong.status == 2
    assert (
        wrong.err
        == "anabranch: No such command 'explane'. Did you mean 'explain', 'examples', 'replay'?; see anabranch --help\n"
    )
