"""The log of a stream can be read at any time, and stays small."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from anabranch.runtime import stream_log
from anabranch.runtime.file_system import LocalFolder
from anabranch.runtime.stream_log import NewEntries, StreamLog, entries, folders_with_log, last_entry
from anabranch.transport.operator import COUNTED, Counts


def outcomes(**counts: int) -> pa.Table:
    """The counts of two buckets, of which the second has none."""
    names = (*COUNTED, "state_bytes")
    return pa.table({name: [counts.get(name, 0), 0] for name in names})


def test_entries_have_the_counts_of_a_micro_batch_and_of_all(tmp_path: Path) -> None:
    log = StreamLog(LocalFolder(tmp_path), "near", Counts(read=1))
    log.add(7, outcomes(read=10, used=8, late=2, kept=5, state_bytes=300), 4, 0.25, "2026-01-01 00:00:00Z")
    log.add(8, outcomes(read=1, used=1, kept=3), 0, 0.5, 12)
    started, first, second = entries(LocalFolder(tmp_path))
    assert (started.batch, started.total) == (None, Counts(read=1))
    assert (first.batch, first.seconds, first.watermark, first.state_bytes) == (7, 0.25, "2026-01-01 00:00:00Z", 300)
    assert first.rows == Counts(read=10, used=8, late=2, kept=5, answers=4)
    assert second.watermark == 12
    assert second.total == Counts(read=12, used=9, late=2, kept=5, answers=4), "of events kept, the largest number"
    assert last_entry(LocalFolder(tmp_path)) == second
    assert [folder.address for folder in folders_with_log(LocalFolder(tmp_path))] == [str(tmp_path)]


def test_a_line_that_was_cut_off_is_not_an_entry(tmp_path: Path) -> None:
    StreamLog(LocalFolder(tmp_path), "near", Counts(read=1))
    with open(tmp_path / "log.jsonl", "a") as file:
        file.write('{"at": "2026-01-0')
    assert [entry.total.read for entry in entries(LocalFolder(tmp_path))] == [1]
    StreamLog(LocalFolder(tmp_path), "near", Counts(read=2))
    assert [entry.total.read for entry in entries(LocalFolder(tmp_path))] == [1, 2]


def test_the_last_entry_is_found_wherever_the_part_that_is_read_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = StreamLog(LocalFolder(tmp_path), "near", Counts())
    for batch in range(3):
        log.add(batch, outcomes(read=1), 0, 0.0, None)
    line = len((tmp_path / "log.jsonl").read_text().splitlines()[-1])
    for n_bytes in range(line + 1, 2 * line + 2):
        monkeypatch.setattr(stream_log, "_TAIL", n_bytes)
        assert last_entry(LocalFolder(tmp_path)).batch == 2, "a part of a line can begin and end as a line does"


def test_a_long_log_keeps_its_newest_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_log, "_MOST_BYTES", 2_000)
    log = StreamLog(LocalFolder(tmp_path), "near", Counts())
    new = NewEntries(LocalFolder(tmp_path))
    seen = []
    for batch in range(100):
        log.add(batch, outcomes(read=1), 0, 0.0, None)
        if batch % 3 == 2:
            seen += [entry.batch for entry in new.read()]
    seen += [entry.batch for entry in new.read()]
    assert seen == [*range(100)], "each entry is read once, although the file was replaced"
    kept = [entry.batch for entry in entries(LocalFolder(tmp_path))]
    assert kept == [*range(100 - len(kept), 100)]
    assert 2_000 <= sum(path.stat().st_size for path in tmp_path.iterdir()) <= 2 * 3_000
    assert last_entry(LocalFolder(tmp_path)).total.read == 100
    assert all(json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines())
