"""The table of targets: numbers before and now, and whether each goal is met."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import __main__ as command
from benchmarks import targets
from benchmarks.harness import Record
from benchmarks.results import Results

from tests.benchmarks.measured import saved

SPARK = "Spark, 2 cores"


def rates(parquet: float, csv: float, small: float) -> list[Record]:
    """What `whole.sequence` and `whole.large` measure."""
    return [
        Record("whole.sequence", "", f"{SPARK}, Parquet", parquet, "rows/s"),
        Record("whole.sequence", "", f"{SPARK}, CSV", csv, "rows/s"),
        Record("whole.sequence", "", f"{SPARK}, 1,000 rows of Parquet", small, "s"),
        Record("whole.large", "SEQUENCE: 20 rows", f"{SPARK}, rows", parquet, "rows/s", "one process", 1.6),
    ]


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    saved(tmp_path / "before", rates(1_000.0, 200.0, 0.6))
    monkeypatch.setattr(targets, "BEFORE", tmp_path / "before")
    header, *rows = targets.table(saved(tmp_path / "now", rates(1_000.0, 600.0, 0.35)))
    assert header == ["target", "goal", "before", "now", "met"]
    return {row[0]: row[1:] for row in rows}


def test_a_ratio_within_one_run_is_compared_with_its_goal(rows: dict[str, list[str]]) -> None:
    assert rows["CSV by Parquet, the slowest kind"] == ["at least 0.5", "0.2", "0.6", "yes"]
    assert rows["SEQUENCE, 20 million rows of Parquet: Spark by one thread"] == ["at least 1.5", "1.6", "1.6", "yes"]


def test_a_goal_can_be_a_share_of_the_number_before(rows: dict[str, list[str]]) -> None:
    assert rows["a job over 1,000 rows, s, mean of the kinds"] == ["at most 0.3", "0.6", "0.35", "no"]


def test_a_target_that_is_not_measured_has_no_numbers(rows: dict[str, list[str]]) -> None:
    assert rows["CONSTRAIN, 100 queries: million events/s"] == ["at least 1", "", "", ""]


def test_without_measurements_of_before_only_the_present_is_shown(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(targets, "BEFORE", tmp_path / "nothing")
    assert {row[2] for row in targets.table(Results([]))[1:]} == {""}


@pytest.mark.parametrize("part", targets.MEASURED.split())
def test_the_parts_of_the_targets_exist(part: str) -> None:
    assert part in command._all_parts()
