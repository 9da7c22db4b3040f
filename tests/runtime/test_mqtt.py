"""FROM MQTT with a real Mosquitto: messages go through a log on disk, and none is lost by kills and restarts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.cli.command import Command
from tests.cli.conftest import anabranch  # noqa: F401
from tests.runtime.office import ANSWERS, ROWS, same, written
from tests.servers.mosquitto import mosquitto
from tests.servers.ports import wait_for

from anabranch import Session
from anabranch.clients import message_log
from anabranch.clients.message_log import MessageLog, Received, read_segment, remove_before, segments_of
from anabranch.clients.mqtt import MqttSender
from anabranch.errors import WorkbookError
from anabranch.files.mqtt import tasks_of

# ---------------------------------------------------------------- the log


def _stored(folder: Path) -> list[Received]:
    return [record for _, path in segments_of(folder) for record, _ in read_segment(path)]


messages = st.lists(
    st.builds(Received, st.integers(0, 2**50), st.text(max_size=5), st.binary(max_size=40)), max_size=20
)


@given(messages, st.integers(0, 200), messages)
def test_a_log_that_was_cut_anywhere_goes_on_behind_its_last_complete_message(
    before: list[Received], cut: int, after: list[Received]
) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_log, "SEGMENT_BYTES", 100)
        folder = Path(name)
        log = MessageLog(folder)
        for message in before:
            log.append([message])
        log.close()
        last = segments_of(folder)[-1][1]
        os.truncate(last, max(0, last.stat().st_size - cut))
        kept = _stored(folder)
        assert kept == before[: len(kept)]
        log = MessageLog(folder)
        assert log.end == len(kept)
        log.append(after)
        log.close()
        assert _stored(folder) == [*kept, *after]
        position = len(kept) // 2
        remove_before(folder, position)
        first = segments_of(folder)[0][0]
        assert first <= position or first == 0
        assert _stored(folder) == [*kept, *after][first:]
        tasks = tasks_of(folder, position, log.end)
        assert sum(task["stop"] - task["start"] for task in tasks) == log.end - position


# ---------------------------------------------------------------- streams


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[str]:
    with mosquitto(tmp_path / "broker") as server:
        yield server


def _workbook(folder: Path, server: str, more: str = "") -> Path:
    workbook = folder / "live.abq"
    workbook.write_text(
        "CREATE STREAM at KEY (person STRING) VALUE (place STRING) TIME t INTEGER MODEL INDEPENDENT\n"
        f"  FROM MQTT 'office/+' OPTIONS (server = '{server}', columns = 'p DOUBLE'{more});\n"
        "CREATE QUERY coffee AS PATTERN at(x, 'hall') THEN at(x, 'coffee') GROUP BY x;\n"
    )
    return workbook


def _payload(row: tuple) -> bytes:
    return json.dumps(dict(zip(("person", "place", "t", "p"), row, strict=True))).encode()


def _once(anabranch: Command, workbook: Path) -> list[str]:  # noqa: F811
    folder = workbook.parent
    done = anabranch("stream", workbook, "--once", "--checkpoint", folder / "checkpoint", "--output", folder / "out")
    assert done.status == 0, done.err
    return done.err.splitlines()


def test_messages_that_arrived_while_the_stream_was_away_are_answered(
    anabranch: Command,  # noqa: F811
    spark: SparkSession,
    tmp_path: Path,
    broker: str,
) -> None:
    workbook = _workbook(tmp_path, broker)
    session = Session(spark)
    session.execute_file(str(workbook))
    folder = tmp_path / "checkpoint" / "coffee"
    running = session.start("coffee", str(folder), str(tmp_path / "out" / "coffee"))
    sender = MqttSender({"server": broker})
    wait_for(lambda: running.status["message"] == "Waiting for data to arrive", "subscribing")
    sender.send("office/1", [_payload(row) for row in ROWS[:4]])
    wait_for(lambda: session.counts("coffee").read == 4, "reading 4 messages")
    # The counts are known before Spark commits the micro-batch; one that is not committed is repeated.
    wait_for(lambda: not running.status["isTriggerActive"], "committing them")
    running.stop()
    sender.send("office/2", [_payload(ROWS[4]), b"no JSON", _payload(ROWS[5])])
    sender.close()
    lines = _once(anabranch, workbook)
    assert "3 rows read" in lines[-1]
    assert same(written(tmp_path / "out" / "coffee"), ANSWERS)
    files = sorted((tmp_path / "out" / "_quarantine" / "coffee").glob("*.json"))
    (rejected,) = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    place = json.loads(rejected["row"])
    assert place["topic"] == "office/2"
    assert "no JSON" in rejected["row"]


def test_topic_and_time_of_arrival_are_columns(
    anabranch: Command,  # noqa: F811
    spark: SparkSession,
    tmp_path: Path,
    broker: str,
) -> None:
    workbook = tmp_path / "live.abq"
    workbook.write_text(
        "CREATE STREAM at KEY (message_topic) VALUE (place STRING) TIME message_timestamp TIMESTAMP\n"
        f"  FROM MQTT 'office/+' OPTIONS (server = '{broker}');\n"
        "CREATE QUERY coffee AS PATTERN at(x, 'hall') THEN at(x, 'coffee') GROUP BY x;\n"
    )
    assert "rows read" in _once(anabranch, workbook)[-1], "the first start subscribes"
    sender = MqttSender({"server": broker})
    for place in ("hall", "coffee"):
        sender.send("office/7", [json.dumps({"place": place}).encode()])
    sender.close()
    _once(anabranch, workbook)
    assert [key[1] for key in written(tmp_path / "out" / "coffee")] == ["office/7"]


def test_a_batch_run_and_a_wrong_server_are_refused(
    anabranch: Command,  # noqa: F811
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    workbook = _workbook(tmp_path, "127.0.0.1:1", ", password = '${NO_PASSWORD}', username = 'ana'")
    session = Session(spark)
    session.execute_file(str(workbook))
    with pytest.raises(WorkbookError, match="FROM MQTT has live messages only; use anabranch stream"):
        session.run("coffee")
    workbook = _workbook(tmp_path, "127.0.0.1:1")
    done = anabranch("stream", workbook, "--once", "--checkpoint", tmp_path / "cp", "--output", tmp_path / "out")
    assert done.status == 1
    assert "MQTT: 127.0.0.1:1 cannot be reached" in done.err


# ---------------------------------------------------------------- kills

_RECEIVER = """
import sys, time
from pathlib import Path
from anabranch.clients.message_log import MessageLog
from anabranch.clients.mqtt_subscriber import Subscriber
Subscriber({"server": sys.argv[1], "client_id": "receiver"}, "numbers", MessageLog(Path(sys.argv[2])))
print("subscribed", flush=True)
time.sleep(600)
"""


def test_no_message_is_lost_by_kills_of_the_subscriber(tmp_path: Path, broker: str) -> None:
    folder = tmp_path / "log"

    def receiver() -> subprocess.Popen:
        process = subprocess.Popen([sys.executable, "-c", _RECEIVER, broker, str(folder)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"subscribed\n"
        return process

    def kill(process: subprocess.Popen) -> None:
        with process:
            process.send_signal(signal.SIGKILL)

    def numbers() -> list[int]:
        return [int(record.value) for record in _stored(folder)] if folder.is_dir() else []

    running = receiver()
    sender = MqttSender({"server": broker})
    for part in range(4):
        seen = len(numbers())
        sender.send("numbers", [str(number).encode() for number in range(500 * part, 500 * (part + 1))])
        wait_for(lambda seen=seen: len(numbers()) > seen, "new messages")
        kill(running)
        running = receiver()
    wait_for(lambda: len(set(numbers())) == 2000, "all messages")
    kill(running)
    sender.close()
    received = numbers()
    assert set(received) == set(range(2000))
    assert max(Counter(received).values()) <= 5, "each process stores a message at most once"
