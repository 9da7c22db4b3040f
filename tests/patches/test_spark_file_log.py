"""The logs in a checkpoint of Spark; `tests/recovery/test_faults.py` reads those of a stream."""

from __future__ import annotations

import json
from pathlib import Path

from anabranch.patches.spark_file_log import unfinished_files
from anabranch.runtime.file_system import LocalFolder


def write(path: Path, *entries: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]
    path.write_text("\n".join(["v1", *lines]))


def checkpoint(folder: Path, n_planned: int, n_committed: int) -> Path:
    """Two sources: the first has a file per micro-batch, the second has none."""
    (folder / "commits").mkdir()
    for number in range(n_planned):
        write(folder / "offsets" / str(number), {"conf": {}}, {"logOffset": number}, "-")
        write(folder / "sources" / "0" / str(number), {"path": f"file:///in/{number}.csv", "batchId": number})
    for number in range(n_committed):
        write(folder / "commits" / str(number), {})
    return folder


def test_the_files_of_a_planned_micro_batch_are_found(tmp_path: Path) -> None:
    assert unfinished_files(LocalFolder(checkpoint(tmp_path, 3, 2))) == ["file:///in/2.csv"]


def test_the_first_micro_batch_may_be_the_one(tmp_path: Path) -> None:
    assert unfinished_files(LocalFolder(checkpoint(tmp_path, 1, 0))) == ["file:///in/0.csv"]


def test_a_committed_micro_batch_has_no_files_left(tmp_path: Path) -> None:
    assert unfinished_files(LocalFolder(checkpoint(tmp_path, 2, 2))) == []


def test_a_compacted_log_has_all_entries(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, 3, 2)
    (folder / "sources" / "0" / "2").unlink()
    entries = [{"path": f"file:///in/{number}.csv", "batchId": number} for number in range(3)]
    write(folder / "sources" / "0" / "2.compact", *entries)
    assert unfinished_files(LocalFolder(folder)) == ["file:///in/2.csv"]


def test_logs_of_another_form_are_not_read(tmp_path: Path) -> None:
    assert unfinished_files(LocalFolder(tmp_path)) == []
    folder = checkpoint(tmp_path, 3, 2)
    (folder / "offsets" / "2").write_text("v2\nanother form")
    assert unfinished_files(LocalFolder(folder)) == []
