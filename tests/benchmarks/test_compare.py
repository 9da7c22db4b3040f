"""The comparison of two files of measurements."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.compare import main
from benchmarks.harness import Options, Provenance, Record, append_json

MACHINE = Provenance("a machine", {"python": "3.11"}, "abc", "2026-11-18")

BASE = {
    ("in process", "rows/s"): 1_000_000.0,
    ("longest micro-batch", "s"): 2.0,
    ("processor time", "CPU s per s"): 0.5,
    ("state", "MB"): 3.0,
}


def write(path: Path, values: dict[tuple[str, str], float], rounds: int = 5) -> str:
    """A file of measurements as a benchmark writes it."""
    records = [
        Record("pattern.streaming", "few rows", metric, value, unit, provenance=MACHINE)
        for (metric, unit), value in values.items()
    ]
    append_json(records, str(path), Options(rounds=rounds))
    return str(path)


@pytest.fixture
def a(tmp_path: Path) -> str:
    return write(tmp_path / "a.jsonl", BASE)


def output(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_equal_measurements_are_within_the_tolerance(a: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([a, a]) == 0
    text = output(capsys)
    assert "pattern.streaming; few rows" in text
    assert "in process rows/s 1,000,000 1,000,000 1.00" in text
    assert "4 measurements: none differs, tolerance 5 %" in text


@pytest.mark.parametrize(
    ("metric", "unit", "value"),
    [
        ("in process", "rows/s", 900_000.0),
        ("in process", "rows/s", 0.0),
        ("longest micro-batch", "s", 2.2),
        ("processor time", "CPU s per s", 0.6),
    ],
)
def test_a_worse_throughput_or_time_fails(
    a: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], metric: str, unit: str, value: float
) -> None:
    b = write(tmp_path / "b.jsonl", BASE | {(metric, unit): value})
    assert main([a, b]) == 1
    text = output(capsys)
    assert text.count("worse") == 2, "in the row, and in the summary"
    assert "4 measurements: 1 worse" in text


def test_better_measurements_pass(a: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    b = write(tmp_path / "b.jsonl", BASE | {("in process", "rows/s"): 2e6, ("longest micro-batch", "s"): 1.0})
    assert main([a, b]) == 0
    assert "4 measurements: 2 better" in output(capsys)


def test_other_units_are_shown_but_not_judged(a: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    b = write(tmp_path / "b.jsonl", BASE | {("state", "MB"): 30.0})
    assert main([a, b]) == 0
    text = output(capsys)
    assert "state MB 3 30 10.00" in text
    assert "none differs" in text


def test_the_tolerance_can_be_set(a: str, tmp_path: Path) -> None:
    b = write(tmp_path / "b.jsonl", BASE | {("longest micro-batch", "s"): 2.2})
    assert main([a, b, "--tolerance", "10.1"]) == 0
    assert main([a, b, "--tolerance", "9"]) == 1


def test_a_missing_measurement_is_named(a: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = {name: value for name, value in BASE.items() if name != ("state", "MB")}
    b = write(tmp_path / "b.jsonl", values | {("to files", "rows/s"): 7.0})
    assert main([a, b]) == 0
    text = output(capsys)
    assert "state MB 3 - only in A" in text
    assert "to files rows/s - 7 only in B" in text


def test_the_median_of_several_runs_is_compared(a: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for value in (900_000.0, 1_010_000.0, 1_020_000.0):
        b = write(tmp_path / "b.jsonl", {("in process", "rows/s"): value})
    assert main([a, b]) == 0
    assert "in process rows/s 1,000,000 1,010,000 1.01" in output(capsys)


def test_the_files_of_a_folder_are_compared_together(
    a: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "saved").mkdir()
    for (metric, unit), value in BASE.items():
        write(tmp_path / "saved" / f"{metric}.jsonl", {(metric, unit): value})
    assert main([a, str(tmp_path / "saved")]) == 0
    assert "4 measurements: none differs" in output(capsys)


def test_different_conditions_are_printed(a: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    b = write(tmp_path / "b.jsonl", BASE, rounds=1)
    assert main([a, b]) == 0
    assert "rounds differs: 5 in A, 1 in B" in output(capsys)


@pytest.mark.parametrize("line", ["not JSON", "[]", json.dumps({"benchmark": "pattern.kernel", "value": 1})])
def test_a_file_of_something_else_is_an_error(
    a: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    (tmp_path / "b.jsonl").write_text(line)
    with pytest.raises(SystemExit, match="2"):
        main([a, str(tmp_path / "b.jsonl")])
    assert "line 1: not a record of a benchmark" in capsys.readouterr().err


def test_a_missing_file_is_an_error(a: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([a, str(tmp_path / "missing.jsonl")])
    assert "missing.jsonl" in capsys.readouterr().err


def test_files_without_a_common_measurement_are_an_error(
    a: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    b = write(tmp_path / "b.jsonl", {("another metric", "s"): 1.0})
    with pytest.raises(SystemExit, match="2"):
        main([a, b])
    assert "no measurement in common" in capsys.readouterr().err
