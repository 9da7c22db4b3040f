"""Saved measurements: each part has its latest records, and the command saves what ran."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import __main__ as command
from benchmarks.harness import Options, Record
from benchmarks.results import Results, save

from tests.benchmarks.measured import MACHINE, records, saved


def test_each_family_has_a_file(tmp_path: Path) -> None:
    results = saved(tmp_path)
    names = ["constrain", "pattern", "peers", "whole"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{name}.jsonl" for name in names]
    assert len(list(results)) == len(records())
    assert results.of("whole").parts == ["whole.stages", "whole.cost", "whole.memory"]


def test_a_part_that_is_measured_again_replaces_its_records(tmp_path: Path) -> None:
    saved(tmp_path)
    save([Record("whole.cost", "PATTERN: five sizes", "a run", 7.0, "CPU s")], tmp_path, Options())
    results = Results.read([tmp_path])
    assert [record["value"] for record in results.of("whole.cost")] == [7.0]
    assert results.of("whole.stages"), "other parts of the file stay"


def test_a_metric_is_found_by_name_and_unit(tmp_path: Path) -> None:
    results = saved(tmp_path).of("whole.stages", "PATTERN")
    assert results.value("Spark: shuffled", "MB") == 20.0
    assert results.value("Spark: shuffled", "s") is None
    assert results.value("nothing") is None
    (origin,) = results.origins
    assert str(origin) == f"{MACHINE.machine}; commit abc123, 2026-11-18; 5 rounds"


def test_the_last_of_equal_records_counts() -> None:
    fields = {"benchmark": "a.b", "workload": "", "metric": "m", "unit": "s"}
    assert [record["value"] for record in Results([fields | {"value": 1}, fields | {"value": 2}])] == [2]


@pytest.mark.parametrize("name", command.SETS)
def test_sets_name_existing_parts(name: str) -> None:
    parts = command._all_parts()
    assert command._select(parts, command.SETS[name].split())


def test_a_part_that_fails_does_not_stop_the_others(tmp_path: Path, monkeypatch, capsys) -> None:
    def fails(options: Options):
        yield Record("a.fails", "", "m", 1.0, "s")
        raise AssertionError("wrong answers")

    parts = {"a.fails": fails, "a.works": lambda options: [Record("a.works", "", "m", float(options.rows), "rows")]}
    monkeypatch.setattr(command, "_all_parts", lambda: parts)
    assert command.main(["a", "--rows", "7", "--save", str(tmp_path)]) == 1
    assert [record["value"] for record in Results.read([tmp_path])] == [7.0]
    assert "failed: a.fails" in capsys.readouterr().err
    assert command.main(["a.works", "--rows", "7"]) == 0
