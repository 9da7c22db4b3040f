"""Folders on local and other file systems behave alike; a lease refuses a second process."""

from __future__ import annotations

import json
import os
import pickle
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from tests.runtime.test_stream_log import outcomes

from anabranch import Session
from anabranch.errors import DataError, StateError
from anabranch.patches.spark_checkpoint_files import file_manager
from anabranch.runtime import hadoop_folder, lock, stream_log
from anabranch.runtime.checkpoint import Checkpoint
from anabranch.runtime.file_system import Folder, LocalFolder, address_of, open_folder, split_address
from anabranch.runtime.hadoop_folder import HadoopFolder
from anabranch.runtime.sinks.files import MARK, check_replaceable
from anabranch.runtime.spark import with_settings
from anabranch.runtime.stream_log import NewEntries, StreamLog, entries, last_entry
from anabranch.transport.operator import Counts


def mounted(spark: SparkSession, folder: Path) -> str:
    """The address of a folder on another file system, which has its files in a local folder.

    Hadoop keeps file systems by their name, so each has its own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = f"lake-{uuid.uuid4().hex}"
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    settings.set(f"fs.viewfs.mounttable.{name}.link./data", f"file://{folder}")
    return f"viewfs://{name}/data"


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("/a/b/", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a//b", "/a/b"),
        ("c", os.path.abspath("c")),
        ("s3a://lake/out/", "s3a://lake/out"),
        ("dbfs:/out", "dbfs:/out"),
    ],
)
def test_paths_become_absolute_and_addresses_stay(path: str, address: str) -> None:
    assert address_of(path) == address


def test_a_folder_with_other_files_is_not_replaced_by_answers(tmp_path: Path) -> None:
    (tmp_path / "input.csv").write_text("k,t\n")
    with pytest.raises(DataError, match="holds files that are not answers; use another output folder"):
        check_replaceable(str(tmp_path), pytest.fail)
    assert (tmp_path / "input.csv").exists()
    (tmp_path / MARK).touch()
    check_replaceable(str(tmp_path), pytest.fail)


def test_a_local_folder_needs_no_spark(tmp_path: Path) -> None:
    def never() -> SparkSession:
        raise AssertionError("Spark was started")

    folder = open_folder(f"file://{tmp_path}", never)
    assert isinstance(folder, LocalFolder)
    pickle.loads(pickle.dumps(folder)).write("a", b"1")  # noqa: S301
    assert folder.read("a") == b"1"
    code = "import sys, anabranch.runtime.file_system, anabranch.runtime.lock; print('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize(
    ("kind", "manager"),
    [
        ("local", "FileContext"),
        ("file", "FileContext"),
        ("file", "FileSystem"),
        ("viewfs", "FileContext"),
        ("viewfs", "FileSystem"),
        ("store", "FileContext"),
    ],
)
def test_folders_of_all_file_systems_behave_alike(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, manager: str
) -> None:
    base = tmp_path / f"{kind}-1"
    if kind == "store":  # its files appear when they are closed
        monkeypatch.setattr(hadoop_folder, "_APPEARS_ON_CLOSE", "fs.capability.paths.permissions")
    makers: dict[str, Callable[[], Folder]] = {
        "local": lambda: LocalFolder(base / "new"),
        "file": lambda: HadoopFolder(spark, f"file:{base}/new"),
        "viewfs": lambda: HadoopFolder(spark, f"{mounted(spark, base)}/new"),
        "store": lambda: HadoopFolder(spark, f"file:{base}/new"),
    }
    used = f"org.apache.spark.sql.execution.streaming.checkpointing.{manager}BasedCheckpointFileManager"
    with with_settings(spark, {"spark.sql.streaming.checkpointFileManagerClass": used}):
        folder = makers[kind]()
        if isinstance(folder, HadoopFolder):
            assert folder._appears_on_close is (kind == "store")
            assert folder._manager.getClass().getName() == used
        check_folder(folder)
        check_log(folder.folder("log"))
    # Nothing else is left: no drafts, and the files have their names.
    assert {path.name for path in (base / "new").iterdir() if path.name[0] != "."} == {"a", "b", "in", "log"}
    assert {path.suffix for path in (base / "new").rglob(".*")} <= {".crc"}


def check_folder(folder: Folder) -> None:
    assert folder.name == "new"
    assert not folder.exists()
    assert not folder.exists("a")
    assert [*folder.names()] == []
    assert folder.size("a") == 0
    with pytest.raises(FileNotFoundError):
        folder.read("a")
    folder.delete("a")

    folder.write("a", b"one")
    folder.write("a", b"number two")
    assert (folder.read("a"), folder.read("a", 7), folder.size("a")) == (b"number two", b"two", 10)
    folder.create("b", b"")
    with pytest.raises(FileExistsError):
        folder.create("b", b"other")
    assert folder.read("b") == b""

    folder.write("in/c", bytes(range(256)) * 5_000)
    inner = folder.folder("in")
    assert inner.address == f"{folder}/in"
    assert inner.size("c") == 1_280_000
    inner.append("d", b"x")
    inner.append("d", b"y")
    assert folder.read("in/d") == b"xy"
    inner.move("d", "c")
    assert inner.read("c") == b"xy"
    assert [*folder.names("in")] == ["c"]
    assert sorted(folder.names()) == ["a", "b", "in"]
    other = folder.folder("other")
    other.make()
    other.make()
    assert other.exists()
    folder.write("other/e", b"1")
    folder.delete("other")
    assert not other.exists()


def check_log(folder: Folder) -> None:
    """The log of a stream, of which only the newest entries are kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_log, "_MOST_BYTES", 2_000)
        patch.setattr(stream_log, "_MOST_REWRITTEN", 2_000)
        folder.make()
        log, new = StreamLog(folder, "near", Counts()), NewEntries(folder)
        seen = []
        for batch in range(20):
            log.add(batch, outcomes(read=1), 0, 0.0, None)
            if batch % 3 == 2:
                seen += [entry.batch for entry in new.read()]
        assert seen + [entry.batch for entry in new.read()] == [*range(20)]
    kept = [entry.batch for entry in entries(folder)]
    assert kept == [*range(20 - len(kept), 20)]
    assert 0 < len(kept) < 20
    last = last_entry(folder)
    assert last is not None
    assert last.total.read == 20


def test_a_failed_write_leaves_the_file_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    folder = HadoopFolder(spark, f"{mounted(spark, tmp_path / 'failing')}/x")
    folder.write("a", b"before")
    with pytest.raises(Py4JJavaError, match="Pipe not connected"):
        folder._publish(folder._java.java.io.PipedInputStream(), "a", overwrite=True)
    assert folder.read("a") == b"before"
    assert {path.name for path in (tmp_path / "failing" / "x").iterdir() if path.suffix != ".crc"} == {"a"}


def test_file_systems_that_spark_does_not_have_are_refused_in_one_line(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = "nosuch://lake/cp: Spark has no file system for nosuch:// .*; add its package with --packages"
    session = Session(spark)
    with pytest.raises(DataError, match=message) as refused:
        session.end_input("nosuch://lake/cp")
    assert "\n" not in str(refused.value)
    monkeypatch.setattr(hadoop_folder, "file_manager", lambda *arguments: None)
    with pytest.raises(DataError, match="this version of Spark cannot be used for it; use a folder that is mounted"):
        HadoopFolder(spark, f"file:{tmp_path}")
    monkeypatch.setattr(hadoop_folder, "java_view", lambda session: None)
    with pytest.raises(DataError, match="Spark Connect gives no access to this file system; start the stream in"):
        HadoopFolder(spark, "s3a://lake/cp")


def test_a_whole_bucket_is_not_an_output_folder() -> None:
    assert split_address("s3a://lake/out/") == ("s3a://lake", "out")
    assert split_address("file:/a/b") == ("/a", "b")
    for bucket in ("s3a://lake", "s3a://lake/"):
        with pytest.raises(DataError, match="s3a://lake/? is not a folder; write the answers to a folder in it"):
            split_address(bucket)


def test_messages_of_mqtt_need_a_local_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = Checkpoint(HadoopFolder(spark, f"{mounted(spark, tmp_path / 'mqtt')}/cp"))
    with pytest.raises(StateError, match="FROM MQTT keeps its messages in the checkpoint, and viewfs://.*/cp is not"):
        checkpoint.messages("s")


class NoSuchPackage:
    """What Py4J gives for a class that does not exist."""

    def __getattr__(self, name: str) -> NoSuchPackage:
        return self

    def __call__(self, *arguments: object) -> None:
        raise TypeError("'JavaPackage' object is not callable")


def test_a_spark_without_the_class_is_noticed() -> None:
    assert file_manager(NoSuchPackage(), None, None) is None


# ------------------------------------------------------------ leases


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folder]:
    """A folder whose leases are renewed every 0.1 s. They need no more than a local one."""
    monkeypatch.setattr(lock, "RENEWED_EVERY", 0.1)
    yield LocalFolder(tmp_path)


def owned(folder: Folder, host: str, process: int, renewed: float = 0.0, id: str = "other") -> None:
    """Write the lease of another process."""
    folder.write("lock", json.dumps(asdict(lock._Owner(id, host, process, renewed))).encode())


def owner(folder: Folder) -> lock._Owner:
    found = lock._Owner.in_folder(folder)
    assert found is not None
    return found


def until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_lease_is_renewed_until_it_is_released(folder: Folder) -> None:
    lease = lock._Lease(folder)
    first = owner(folder)
    assert (first.host, first.process) == (socket.gethostname(), os.getpid())
    assert lock._owner_of_lease(folder) == f"{os.getpid()} on {socket.gethostname()}"
    until(lambda: owner(folder).renewed > first.renewed)
    lease.release()
    assert lock._owner_of_lease(folder) is None
    time.sleep(0.3)
    assert not folder.exists("lock"), "it was renewed after its release"


def test_a_lease_that_is_renewed_is_refused(folder: Folder) -> None:
    other = """
import sys, time
from pathlib import Path
from anabranch.runtime import lock
from anabranch.runtime.file_system import LocalFolder
lock.RENEWED_EVERY = 0.1
lease = lock._Lease(LocalFolder(Path(sys.argv[1])))
print(flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", other, folder.address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        used = f"is used by a stream that runs .process {holder.pid} on "
        with pytest.raises(StateError, match=used):
            lock._Lease(folder)
        holder.kill()
        holder.wait()
    assert lock._owner_of_lease(folder) is None
    began = time.monotonic()
    lock._Lease(folder).release()
    assert time.monotonic() - began < lock.EXPIRES_AFTER / 2, "the owner was a process of this machine, which has ended"


def test_a_lease_of_another_machine_is_taken_when_it_has_expired(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "EXPIRES_AFTER", 1.0)
    owned(folder, "elsewhere", 1, time.time() + 3_600)
    began = time.monotonic()
    lease = lock._Lease(folder)
    assert time.monotonic() - began >= 1.0, "its clock is an hour ahead, but it was not renewed for a second"
    owned(folder, "elsewhere", 2, time.time(), "third")
    time.sleep(0.3)
    lease.release()
    assert owner(folder).id == "third", "a lease that another process has taken is left alone"
