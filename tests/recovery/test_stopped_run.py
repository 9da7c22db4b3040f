"""Ctrl-C and SIGTERM stop `run`: one line, a known exit status, no process and no file left behind."""

from __future__ import annotations

import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.recovery.processes import Killable
from tests.runtime.office import query, stream

STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}


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
