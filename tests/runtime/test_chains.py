"""Chains of streams: which queries run, where their answers go, what is written, and that they end together."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from anabranch.arrays import BEGINNING
from anabranch.columns.times import TimeKind
from anabranch.language.parser import parse
from anabranch.planning.planner import Planner
from anabranch.runtime.chains import Chain, ChainedStream, chained
from anabranch.runtime.checkpoint import Checkpoint
from anabranch.runtime.file_system import LocalFolder
from anabranch.runtime.relay import Relay
from anabranch.transport.frontier import Frontier
from anabranch.transport.per import Moment
from anabranch.transport.relay import RelayRule, read_rows

WORKBOOK = """
CREATE STREAM at KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE QUERY one AS PATTERN at(x, 'a') GROUP BY x;
CREATE STREAM first FROM QUERY one;
CREATE STREAM again MODEL CERTAIN VALUE (probability) FROM QUERY one;
CREATE QUERY two AS SEQUENCE (u, v) FROM first AS u, at AS v WHERE u.x = v.k WITHIN 5;
CREATE STREAM pairs KEY (u.x AS x) MODEL CERTAIN FROM QUERY two;
CREATE STREAM here KEY (x) TIME t INTERVALS FROM again WHILE probability > 0.5 SILENCE 2 HORIZON [0, 9];
CREATE STREAM there KEY (x) TIME t INTERVALS FROM again WHILE probability <= 0.5 SILENCE 2 HORIZON [0, 9];
CREATE QUERY three AS PATTERN pairs(x) THEN first(x) GROUP BY x;
CREATE QUERY related AS RELATE SOME a PRECEDES SOME b FROM here AS a, there AS b WHERE a.x = b.x;
"""


def chain_of(name: str, folder: Path) -> Chain:
    planner = Planner()
    assert not planner.declare(parse(WORKBOOK))
    return Chain(planner, [planner.catalog.require_query(name)], Checkpoint(LocalFolder(folder)))


def readers(chain: Chain, name: str, folder: Path) -> list[str]:
    query = next(query for query in chain.queries if query.name == name)
    return sorted(str(Path(answers.address).relative_to(folder)) for _, answers in chain._readers(query))


def test_a_query_runs_once_for_all_streams_of_the_chain_that_read_it(tmp_path: Path) -> None:
    chain = chain_of("three", tmp_path)
    assert [query.name for query in chain.queries] == ["one", "two"]
    assert readers(chain, "one", tmp_path) == ["answers/first", "read/two/answers/first"]
    assert readers(chain, "two", tmp_path) == ["answers/pairs"]


def test_streams_that_are_derived_from_the_same_answers_have_files_of_their_own(tmp_path: Path) -> None:
    assert readers(chain_of("related", tmp_path), "one", tmp_path) == ["answers/here", "answers/there"]


def test_an_end_of_the_input_before_the_first_start_ends_all_inputs_once(tmp_path: Path) -> None:
    Checkpoint(LocalFolder(tmp_path)).end_input()
    for _ in range(2):
        chain = chain_of("three", tmp_path)
        assert [len(list(chain.checkpoint(query).control.names())) for query in chain.queries] == [1, 1]
    Checkpoint(LocalFolder(tmp_path)).end_input()
    assert [len(list(chain.checkpoint(query).control.names())) for query in chain.queries] == [2, 2]


def test_a_micro_batch_that_is_repeated_passes_on_the_same_rows(tmp_path: Path) -> None:
    """Also after its file was read and removed, or if only what waits was written before the crash."""
    rule = RelayRule(Frontier(TimeKind.INTEGER, TimeKind.INTEGER), "t", ("k", "t"))
    relay = Relay(LocalFolder(tmp_path), rule, "0" * 32)
    rows = [("j", 1, 0.5), ("j", 4, 0.25), ("j", 4, 0.5), ("k", 2, 0.5)]
    parts = [(rows[:1], BEGINNING, False), (rows[1:2], 3, False), (rows[2:], 3, False), ([], 3, True)]
    found: list[tuple[list, int, bool]] = []
    for batch, (part, watermark, ended) in enumerate(parts):
        columns = ([row[index] for row in part] for index in range(3))
        types = (pa.string(), pa.int64(), pa.float64())
        table = pa.table([pa.array(*column) for column in zip(columns, types, strict=True)], ["k", "t", "probability"])
        file = tmp_path / f"{batch:010d}.answers"
        contents = []
        for _ in range(3):
            file.unlink(missing_ok=True)
            relay.advance(table, Moment(watermark, ended), batch)
            contents.append(read_rows(file.read_bytes(), TimeKind.INTEGER))
        before = file.stat().st_mtime_ns
        relay.advance(table, Moment(watermark, ended), batch)
        assert file.stat().st_mtime_ns == before
        assert all(content.rows.equals(contents[0].rows) for content in contents)
        last = contents[0]
        found.append(([tuple(row.values()) for row in last.rows.to_pylist()], last.promise, last.ended))
    # The row at 2 comes after the promise of 3: it is passed on, and is late for the reader.
    assert found == [
        ([], BEGINNING, False), ([("j", 1, 0.5)], 3, False), ([("k", 2, 0.5)], 3, False), ([("j", 4, 0.5)], 5, True),
    ]  # fmt: skip
    assert len(list((tmp_path / "_held").iterdir())) == 2


class Fake:
    """A stream that runs until it is stopped or fails."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.isActive = True
        self.error: Exception | None = None

    def stop(self) -> None:
        self.isActive = False

    def fail(self) -> None:
        self.isActive, self.error = False, ValueError(f"{self.name} has failed")

    def exception(self) -> Exception | None:
        return self.error

    def awaitTermination(self) -> None:
        assert not self.isActive
        if self.error is not None:
            raise self.error


def test_the_failure_of_a_query_that_is_read_ends_the_reader() -> None:
    read, reader = Fake("read"), Fake("reader")
    stream = ChainedStream(reader, [read])
    assert stream.isActive
    assert stream.name == "reader"
    assert stream.awaitTermination(0.01) is False
    assert stream.exception() is None
    read.fail()
    with pytest.raises(ValueError, match="read has failed"):
        stream.awaitTermination()
    assert not reader.isActive
    assert stream.exception() is read.error


def test_a_reader_that_ends_ends_those_that_it_reads() -> None:
    streams = [Fake("one"), Fake("two"), Fake("reader")]
    stream = ChainedStream(streams[2], streams[:2])
    streams[2].stop()
    assert stream.awaitTermination(10) is True
    assert not any(each.isActive for each in streams)


def test_a_stream_that_reads_no_answers_is_itself() -> None:
    alone = Fake("alone")
    assert chained(alone, []) is alone
