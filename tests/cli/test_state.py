"""`anabranch state` shows what streams of every kind keep about a key."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.cli.command import Command

from anabranch import Session

WORKBOOK = """
CREATE STREAM at KEY (person STRING) VALUE (place STRING) TIME t INTEGER MODEL INDEPENDENT WATERMARK 2;
CREATE STREAM reads KEY (tag STRING) VALUE (reader STRING) TIME t INTEGER WATERMARK 2;
CREATE STREAM jams KEY (road INTEGER, jam INTEGER) TIME t INTEGER ORDER seq MODEL INTERVALS LENGTH n WATERMARK 2;
CREATE STREAM cars KEY (Car STRING) VALUE (x DOUBLE) TIME t INTEGER MODEL PREDICTED ERROR 1 PERIOD 5;
CREATE QUERY coffee AS PATTERN at(p, 'hall') THEN at(p, 'coffee') GROUP BY p;
CREATE QUERY unpaid AS SEQUENCE (x, z) FROM reads WHERE x.reader = 'shelf' AND z.reader = 'exit' AND x.tag = z.tag
  WITHIN 50;
CREATE QUERY met AS RELATE SOME a INTERSECTS SOME b FROM jams AS a, jams AS b WHERE a.road = b.road AND a.jam < b.jam;
CREATE QUERY near AS MONITOR a, b FROM cars AS a, cars AS b WHERE ABS(a.x - b.x) <= 3 AND a.car < b.car
  WITHIN 1 SEMANTICS MAY MAX DELAY 8;
CREATE QUERY close AS CONSTRAIN u, v FROM reads AS u, reads AS v WHERE v.t - u.t IN [1, 50] AND u.tag = v.tag;
"""

FILES = {
    "at": "person,place,t,p\nann,hall,1,0.5\nann,coffee,9,0.25\nbob,hall,9,1",
    "reads": "tag,reader,t\na,shelf,1\nb,exit,2\na,checkout,9",
    "jams": "road,jam,t,seq,n\n1,7,1,1,4\n1,7,3,2,4\n1,8,2,1,4",
    "cars": "Car,x,t,x_rate\nc,1,1,0\nd,500,2,0\nc,2,3,0",
}


@pytest.fixture(scope="module")
def checkpoints(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Streams of the five kinds that wait for more rows."""
    folder = tmp_path_factory.mktemp("streams")
    session = Session(spark)
    session.execute(WORKBOOK)
    for name, text in FILES.items():
        (folder / name).mkdir()
        (folder / name / "1.csv").write_text(text)
        session.bind(name, str(folder / name))
    running = [
        session.start(query, str(folder / "cp" / query), str(folder / "out" / query), trigger={"availableNow": True})
        for query in ("coffee", "unpaid", "met", "near", "close")
    ]
    for stream in running:
        stream.awaitTermination()
    return folder / "cp"


def shown(anabranch: Command, checkpoints: Path, *keys: str) -> list[dict]:
    arguments = [argument for key in keys for argument in ("--key", key)]
    outcome = anabranch("state", checkpoints, *arguments)
    assert outcome.status == 0, outcome.err
    return [json.loads(line) for line in outcome.out.splitlines()]


def rows(found: list[dict], query: str, place: str) -> list[dict]:
    return [line["row"] for line in found if (line["query"], line["place"]) == (query, place)]


def test_a_chain_of_a_pattern_has_rows_that_wait_and_weights(anabranch: Command, checkpoints: Path) -> None:
    found = shown(anabranch, checkpoints, "person=ann")
    assert rows(found, "coffee", "waiting") == [{"value": "coffee", "t": 9, "p": 0.25}]
    (weights,) = rows(found, "coffee", "weights")
    assert sorted(value for name, value in weights.items() if name.startswith("state ")) == [0.5, 0.5]
    assert {line["stream"] for line in found} == {"at"}


def test_events_of_a_sequence_and_of_constrain_are_kept_or_wait(anabranch: Command, checkpoints: Path) -> None:
    found = shown(anabranch, checkpoints, "tag=a")
    for query in ("unpaid", "close"):
        assert rows(found, query, "kept") == [{"tag": "a", "reader": "shelf", "t": 1}]
    assert rows(found, "close", "waiting") == [{"tag": "a", "reader": "checkout", "t": 9}]


def test_an_entity_of_relate_has_its_rows(anabranch: Command, checkpoints: Path) -> None:
    found = shown(anabranch, checkpoints, "road=1", "jam=7")
    assert rows(found, "met", "entity") == [{"ended": False}]
    assert [(row["seq"], row["t"]) for row in rows(found, "met", "row")] == [(1, 1), (2, 3)]


def test_predictions_of_monitor_are_in_every_bucket_that_compares_them(anabranch: Command, checkpoints: Path) -> None:
    found = shown(anabranch, checkpoints, "CAR=c")
    per_bucket = Counter(line["bucket"] for line in found)
    assert set(per_bucket.values()) == {2}
    assert {(row["t"], row["values 0"]) for row in rows(found, "near", "prediction")} == {(1, 1.0), (3, 2.0)}


def test_without_a_key_the_sizes_are_shown(anabranch: Command, checkpoints: Path) -> None:
    text = anabranch("state", checkpoints / "unpaid").out
    assert text.startswith("unpaid: 4 buckets, ")
    assert "kB in every micro-batch" in text
    assert "  kept 0\n" in text


def test_wrong_arguments_are_refused_in_one_line(anabranch: Command, checkpoints: Path, tmp_path: Path) -> None:
    for arguments, message in (
        ((checkpoints, "--key", "person"), "--key takes COLUMN=VALUE, not person"),
        ((checkpoints, "--key", "colour=red"), "no stream has the key columns colour; the key columns are"),
        ((tmp_path,), "has no checkpoint of a stream"),
    ):
        refused = anabranch("state", *arguments)
        assert refused.status == 2
        assert message in " ".join(refused.err.split())
    nothing = anabranch("state", checkpoints, "--key", "tag=nobody")
    assert (nothing.status, nothing.out) == (0, "")
    assert "nothing is kept about this key" in nothing.err
