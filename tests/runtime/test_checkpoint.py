"""The files of a checkpoint that are ours: a damaged one is noticed, and one process at a time uses them."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from anabranch.errors import StateError
from anabranch.planning.identity import VERSION
from anabranch.runtime.checkpoint import Checkpoint
from anabranch.runtime.file_system import LocalFolder
from anabranch.transport.state import FORMAT

SCHEMA = StructType([StructField("k", StringType()), StructField("t", LongType())])


def claimed(folder: Path) -> Checkpoint:
    """A checkpoint that has been used."""
    identity = {"version": VERSION, "state format": FORMAT, "queries": {"a": "text", "b": "text"}, "streams": []}
    checkpoint = Checkpoint(LocalFolder(folder))
    checkpoint.claim(identity, 16, {"s": SCHEMA}, shares_pass=True)
    checkpoint.claim(identity | {"queries": {"b": "text", "c": "text"}}, 16, {"s": SCHEMA}, shares_pass=True)
    return Checkpoint(LocalFolder(folder))


def test_every_damaged_byte_of_the_manifest_is_noticed(tmp_path: Path) -> None:
    claimed(tmp_path)
    path = tmp_path / "anabranch.json"
    content = path.read_bytes()
    document = json.loads(content)
    checksum = document.pop("checksum")
    rng = random.Random(20261117)
    harmless = 0
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            Checkpoint(LocalFolder(tmp_path))
        except StateError as error:
            assert str(error) == f"{path} is damaged; start with a new checkpoint folder"
        else:
            harmless += 1
            # White space, or a letter of the name of the checksum.
            read = json.loads(damaged)
            (name,) = read.keys() - document.keys()
            assert read == {**document, name: checksum}
    assert harmless < len(content) / 4


def test_a_manifest_of_an_earlier_version_has_no_checksum(tmp_path: Path) -> None:
    before = claimed(tmp_path)
    path = tmp_path / "anabranch.json"
    document = json.loads(path.read_text())
    del document["checksum"]
    path.write_text(json.dumps(document))
    read = Checkpoint(LocalFolder(tmp_path))
    assert (read.id, read.queries, read.schema("s")) == (before.id, before.queries, SCHEMA)


def test_a_manifest_that_is_missing_is_not_made_again(tmp_path: Path) -> None:
    claimed(tmp_path)
    path = tmp_path / "anabranch.json"
    path.unlink()
    Checkpoint(LocalFolder(tmp_path)).claim({"queries": {}}, 16, {})
    path.unlink()
    (tmp_path / "spark" / "offsets").mkdir(parents=True)
    with pytest.raises(
        StateError, match=r"anabranch\.json is missing; restore it, or start with a new checkpoint folder"
    ):
        Checkpoint(LocalFolder(tmp_path))


def test_a_manifest_is_written_if_it_changes(tmp_path: Path) -> None:
    claimed(tmp_path)
    path = tmp_path / "anabranch.json"
    before = path.stat()
    document = json.loads(path.read_text())
    Checkpoint(LocalFolder(tmp_path)).claim(document["identity"], 16, {"s": SCHEMA}, shares_pass=True)
    assert path.stat() == before
    changed = document["identity"] | {"queries": {"b": "text"}}
    Checkpoint(LocalFolder(tmp_path)).claim(changed, 16, {"s": SCHEMA}, shares_pass=True)
    assert json.loads(path.read_text())["identity"] == changed


def test_the_end_of_the_input_is_a_whole_file(tmp_path: Path) -> None:
    checkpoint = claimed(tmp_path)
    checkpoint.end_input()
    checkpoint.end_input()
    assert [path.read_text() for path in Path(checkpoint.control.address).iterdir()] == ["end\n", "end\n"]


_HOLDER = """
import sys
from pathlib import Path
from anabranch.runtime.file_system import LocalFolder
from anabranch.runtime.lock import FolderLock
lock = FolderLock(LocalFolder(Path(sys.argv[1])))
print("locked", flush=True)
sys.stdin.read()
"""


def test_one_process_at_a_time_uses_a_checkpoint(tmp_path: Path) -> None:
    checkpoint = claimed(tmp_path)
    command = [sys.executable, "-c", _HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        used = f"the checkpoint {tmp_path} is used by a stream that runs (process {holder.pid}); stop it first, or use "
        with pytest.raises(StateError, match=f"{re.escape(used)}another checkpoint folder"):
            checkpoint.lock()
        holder.kill()
        holder.wait()
    checkpoint.lock().release()


def test_streams_of_one_process_share_its_lock(tmp_path: Path) -> None:
    first, second = claimed(tmp_path).lock(), Checkpoint(LocalFolder(tmp_path)).lock()
    first.release()
    code = _HOLDER.replace("sys.stdin.read()", "")
    refused = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert "is used by a stream that runs" in refused.stderr
    second.release()
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True).returncode == 0


def test_a_stream_that_cannot_be_started_releases_the_lock(tmp_path: Path) -> None:
    checkpoint = claimed(tmp_path)
    with pytest.raises(ZeroDivisionError), checkpoint.lock():
        raise ZeroDivisionError
    code = _HOLDER.replace("sys.stdin.read()", "")
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True).returncode == 0
