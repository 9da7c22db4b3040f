"""Ctrl-C and SIGTERM stop a command at any moment: one line, a known exit status, no process and no file left behind.

The signals to a stream are in `test_kill.py`.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.recovery.killing import Killable
from tests.runtime.office import query, stream

STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}


def handles(process: int, number: int) -> bool:
    """Whether a process has set a handler for a signal."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


@pytest.mark.spark
@pytest.mark.parametrize("number", STATUS)
def test_a_command_that_is_stopped_while_it_loads_says_so(number: int, tmp_path: Path) -> None:
    command = Killable(tmp_path, "doctor")
    command.wait_until(lambda: handles(command.process.pid, signal.SIGTERM))
    status = command.signal(number)
    assert "Traceback" not in command.log
    assert status == STATUS[signal.Signals(number)], command.log


@pytest.mark.spark
def test_a_run_that_is_stopped_leaves_neither_processes_nor_files(tmp_path: Path) -> None:
    count = 400_000
    people = pa.array([f"person {number % 1000}" for number in range(count)])
    places = pa.array(["hall", "coffee"] * (count // 2))
    times = pa.array([number // 1000 for number in range(count)])
    pq.write_table(
        pa.table({"person": people, "place": places, "t": times, "p": [0.5] * count}), tmp_path / "1.parquet"
    )
    (tmp_path / "w.abq").write_text(stream("at", "'1.parquet'") + query())
    commands = {}
    for number in STATUS:
        folder = tmp_path / number.name
        folder.mkdir()
        commands[number] = Killable(folder, "run", tmp_path / "w.abq", "--output", folder / "out")
    try:
        for number, command in commands.items():
            command.wait_until(lambda command=command: bool(command.workers()))
            assert command.signal(number) == STATUS[number], command.log
            assert command.log.splitlines()[-1] == "anabranch: stopped"
            assert "Traceback" not in command.log
            assert not list((tmp_path / number.name / "out").glob("coffee/*"))
    finally:
        for command in commands.values():
            command.kill_rest()
