"""`anabranch replay`: an archive as a live stream."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.command import Command
from tests.servers.kafka import kafka_cluster, read_topic
from tests.servers.mosquitto import Subscriber, mosquitto

from anabranch.errors import AnabranchError
from anabranch.replay import archive as archives
from anabranch.replay.archive import Block, open_archive
from anabranch.replay.playing import Player, slices


def _csv(path: Path, times: list) -> Path:
    path.write_text("id,t,side\n" + "".join(f"tag{i},{t},in\n" for i, t in enumerate(times)))
    return path


def _files(folder: Path) -> list[Path]:
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    return sorted(folder.iterdir())


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.lists(st.integers(1, 7)), st.integers(1, 20))
def test_slices_have_all_rows_in_order_and_never_separate_an_instant(
    times: list[int], sizes: list[int], every: int
) -> None:
    ordered = np.sort(np.array(times, float))
    cuts = np.unique(np.minimum(np.cumsum([0, *sizes]), len(ordered)))
    bounds = [*cuts.tolist(), len(ordered)]
    rows = pa.table({"row": range(len(ordered))})
    blocks = [Block(ordered[a:b], rows.slice(a, b - a)) for a, b in zip(bounds[:-1], bounds[1:], strict=True) if a < b]
    parts = list(slices(blocks, every))
    assert [row for part in parts for row in part.rows["row"].to_pylist()] == list(range(len(ordered)))
    intervals = [{(t - ordered[0]) // every for t in part.times} for part in parts]
    assert all(len(numbers) == 1 for numbers in intervals)
    assert sorted(set.union(*intervals)) == [min(numbers) for numbers in intervals]


class _Recorder:
    def __init__(self, clock: list[float]) -> None:
        self.clock, self.sent_at, self.sent = clock, [], 0

    def send(self, rows: pa.Table) -> None:
        self.sent_at.append(self.clock[0])
        self.sent += rows.num_rows

    def close(self) -> None:
        pass


def test_a_part_is_sent_when_its_last_row_is_due() -> None:
    now = [100.0]
    target = _Recorder(now)

    def sleep(seconds: float) -> None:
        now[0] += seconds

    blocks = [Block(np.array([0.0, 30.0, 60.0, 3600.0]), pa.table({"row": [0, 1, 2, 3]}))]
    Player(target, 60.0, lambda: now[0], sleep).play(slices(blocks, 60.0))
    assert target.sent_at == [100.5, 101.0, 160.0]
    assert target.sent == 4


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl", "parquet"])
def test_a_folder_gets_the_rows_in_order_of_time(anabranch: Command, tmp_path: Path, suffix: str) -> None:
    rows = [{"id": f"tag{i}", "t": t, "note": 'a "b", c' if i else None} for i, t in enumerate([30, 10, 20, 10])]
    source = tmp_path / f"reads.{suffix}"
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), source)
    elif suffix == "jsonl":
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        text = "id,t,note\ntag0,30,\n" + "".join(f'tag{i},{rows[i]["t"]},"a ""b"", c"\n' for i in (1, 2, 3))
        source.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    done = anabranch(
        "replay", source, "--to", "folder", "--speed", "max", "--every", "10", "--output", tmp_path / "live"
    )
    assert done.status == 0
    assert done.err.splitlines() == ["4 rows by t; sorted in memory", "4 rows sent"]
    files = _files(tmp_path / "live")
    assert len(files) == 3
    assert len({path.stat().st_mtime_ns // 1_000_000 for path in files}) == 3
    seen = []
    for path in files:
        archive = open_archive(str(path), "t")
        seen += [json.loads(text) for block in archive.blocks() for text in archive.messages(block.rows)]
    assert seen == [rows[1], rows[3], rows[2], rows[0]]


def test_a_second_replay_adds_files(anabranch: Command, tmp_path: Path) -> None:
    source = _csv(tmp_path / "reads.csv", [1, 2])
    for _ in range(2):
        assert (
            anabranch("replay", source, "--to", "folder", "--speed", "max", "--output", tmp_path / "live").status == 0
        )
    assert len(_files(tmp_path / "live")) == 2


def test_written_times_give_the_speed(anabranch: Command, tmp_path: Path) -> None:
    source = _csv(tmp_path / "reads.csv", ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "soon"])
    began = time.monotonic()
    done = anabranch("replay", source, "--to", "folder", "--speed", "120", "--time", "t", "--output", tmp_path / "live")
    assert time.monotonic() - began >= 0.5
    assert done.status == 0
    assert "1 rows without a time are left out" in done.err
    wrong = anabranch("replay", source, "--to", "folder", "--time", "side", "--output", tmp_path / "live")
    assert "has a time in side; name another column with --time" in wrong.err


def test_the_time_is_guessed_only_if_one_column_is_clear(anabranch: Command, tmp_path: Path) -> None:
    source = tmp_path / "reads.csv"
    source.write_text("id,t,time\na,1,2\n")
    done = anabranch("replay", source, "--to", "folder", "--output", tmp_path / "live")
    assert done.status == 1
    assert done.err == "anabranch: several columns look like a time (t, time); name one with --time\n"


def test_rows_with_a_duration_are_sent_at_their_end(tmp_path: Path) -> None:
    source = tmp_path / "jams.csv"
    source.write_text("id,start,end\na,1,9\nb,2,3\n")
    archive = open_archive(str(source), None)
    assert archive.time == "end"
    assert [json.loads(m)["id"] for block in archive.blocks() for m in archive.messages(block.rows)] == ["b", "a"]


def test_a_sorted_file_is_read_in_blocks_and_an_unsorted_one_refused_if_it_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "usable_memory", lambda: 1000)
    monkeypatch.setattr(archives, "BLOCK_ROWS", 100)
    pq.write_table(pa.table({"t": range(1000)}), tmp_path / "sorted.parquet")
    blocks = list(open_archive(str(tmp_path / "sorted.parquet"), None).blocks())
    assert [len(block.times) for block in blocks] == [100] * 10
    pq.write_table(pa.table({"t": range(1000, 0, -1)}), tmp_path / "unsorted.parquet")
    with pytest.raises(AnabranchError, match="is not sorted by t, and .* sort the file first"):
        next(open_archive(str(tmp_path / "unsorted.parquet"), None).blocks())


def test_kafka_gets_json_values_with_keys(anabranch: Command, tmp_path: Path) -> None:
    source = _csv(tmp_path / "reads.csv", [1, 2, 3])
    with kafka_cluster() as server:
        done = anabranch(
            "replay", source, "--to", "kafka", "--speed", "max", "--topic", "reads", "--server", server, "--key", "id"
        )
        assert done.err.splitlines()[-1] == "3 rows sent"
        messages = read_topic(server, "reads", 3)
    assert {m.key(): json.loads(m.value()) for m in messages} == {
        f"tag{i}".encode(): {"id": f"tag{i}", "t": i + 1, "side": "in"} for i in range(3)
    }


def test_mqtt_gets_json_payloads(anabranch: Command, tmp_path: Path) -> None:
    source = tmp_path / "reads.parquet"
    times = [datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC) for second in range(3)]
    pq.write_table(pa.table({"id": ["a", "b", "c"], "at": times}), source)
    with mosquitto(tmp_path / "broker") as server:
        subscriber = Subscriber(server, "reads")
        done = anabranch("replay", source, "--to", "mqtt", "--speed", "10", "--topic", "reads", "--server", server)
        assert done.err.splitlines()[-1] == "3 rows sent"
        payloads = [json.loads(payload) for payload in subscriber.wait(3)]
        subscriber.close()
    assert payloads == [{"id": name, "at": f"2026-01-01T00:00:0{i}.000Z"} for i, name in enumerate("abc")]


def test_a_broker_that_cannot_be_reached_is_one_line(anabranch: Command, tmp_path: Path) -> None:
    source = _csv(tmp_path / "reads.csv", [1])
    done = anabranch("replay", source, "--to", "mqtt", "--topic", "reads", "--server", "127.0.0.1:1")
    assert done.status == 1
    assert "anabranch: MQTT: 127.0.0.1:1 cannot be reached" in done.err


def test_wrong_options_are_refused(anabranch: Command, tmp_path: Path) -> None:
    source = _csv(tmp_path / "reads.csv", [1])
    for arguments, message in (
        (("--to", "folder"), "--to folder needs --output"),
        (("--to", "kafka", "--topic", "x"), "--to kafka needs --server"),
        (("--to", "folder", "--output", "x", "--speed", "0"), "--speed is a number above 0, or max, not 0"),
        (("--to", "folder", "--output", "x", "--key", "id"), "--key is for --to kafka"),
    ):
        done = anabranch("replay", source, *arguments)
        assert done.status == 2
        assert message in done.err


#: Runs the command. A process that a shell has started in the background, as `make test` is, ignores Ctrl-C.
_INTERRUPTIBLE = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("anabranch", run_name="__main__")
"""


def test_an_interrupted_replay_says_how_many_rows_were_sent(tmp_path: Path) -> None:
    source = _csv(tmp_path / "reads.csv", [0, 0, 3600])
    folder = tmp_path / "live"
    command = [sys.executable, "-c", _INTERRUPTIBLE, "replay", source, "--to", "folder", "--output", folder]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not (folder.is_dir() and any(path.suffix == ".csv" for path in folder.iterdir())):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert err.splitlines()[-1] == "stopped; 2 of 3 rows sent"


def test_the_command_loads_neither_spark_nor_numba(tmp_path: Path) -> None:
    source = _csv(tmp_path / "reads.csv", [1])
    code = (
        "import sys; sys.argv[1:] = sys.argv[2:]; from anabranch.cli.main import app; "
        "app(standalone_mode=False); print([m for m in ('pyspark', 'numba') if m in sys.modules])"
    )
    arguments = ["-", "replay", source, "--to", "folder", "--speed", "max", "--output", tmp_path / "live"]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
