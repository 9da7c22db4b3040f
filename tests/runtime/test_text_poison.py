"""CSV and JSON files and lines that nobody can read: a stream quarantines them and goes on, and `strict` stops."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.files.stage import process_files
from tests.local import local_job
from tests.runtime.office import ANSWERS, ROWS, SCHEMA, publish, query, same, stream
from tests.runtime.streams import Office

from anabranch import DataError, Session
from anabranch.errors import WorkbookError
from anabranch.files.csv_lines import Dialect
from anabranch.files.formats import Columns, CsvFormat
from anabranch.files.text import NOT_UTF8, TextReader
from anabranch.language.types import Type
from anabranch.runtime.failures import translate
from anabranch.transport.checks import UNREADABLE

HEADER = b"person,place,t,p\n"
NO_FIT = "the file has the columns {}, not person, place, t, p"


def csv_rows(rows: list[tuple]) -> bytes:
    return b"".join(",".join(map(str, row)).encode() + b"\n" for row in rows)


def json_rows(rows: list[tuple]) -> bytes:
    return b"".join(json.dumps(dict(zip(SCHEMA.names, row, strict=True))).encode() + b"\n" for row in rows)


#: For each file: its content, and the reasons of the rows that it adds to the quarantine.
CSV_POISON: dict[str, tuple[bytes, list[str]]] = {
    "without a column": (b"person,place,t\nann,hall,1\n", [NO_FIT.format("person, place, t")]),
    "with another column": (b"person,place,t,p,x\na,b,1,1,1\n", [NO_FIT.format("person, place, t, p, x")]),
    "in another order": (b"place,person,t,p\nhall,ann,1,1\n", [NO_FIT.format("place, person, t, p")]),
    "without a header": (csv_rows(ROWS[:1]), [NO_FIT.format("ann, hall, 1, 0.5")]),
    "cut": (HEADER + b"zoe,hall,1,0.5\nzoe,cof", [UNREADABLE]),
    "of another type": (HEADER + b"zoe,hall,noon,0.5\nzoe,hall,1.5,0.5\n", [UNREADABLE] * 2),
    "not UTF-8": (HEADER + b"z\xf6e,hall,1,0.5\n", [NOT_UTF8]),
    "with NULs": (HEADER + b"\x00\x00\x00\x00\n\x00,\x00\n", [UNREADABLE]),  # the first line is blank
    "Parquet": (b"PAR1\x15\x04\x15\x10PAR1", [NO_FIT.format(r"PAR1\x15\x04\x15\x10PAR1")]),
}  # fmt: skip
JSON_POISON: dict[str, tuple[bytes, list[str]]] = {
    "without a column": (b'{"person": "zoe", "place": "hall", "p": 0.5}\n', ["t is NULL"]),
    "with a repeated key": (b'{"person": "zoe", "t": "no", "place": "hall", "t": 1, "p": 0.5}\n', [UNREADABLE]),
    "cut": (b'{"person": "zoe", "pl', [UNREADABLE]),
    "of another type": (b'{"person": "zoe", "place": "hall", "t": "1", "p": 0.5}\n', [UNREADABLE]),
    "not UTF-8": (b'{"person": "z\xf6e", "place": "hall", "t": 1, "p": 0.5}\n', [NOT_UTF8]),
    "CSV": (HEADER, [UNREADABLE]),
}


class TextOffice(Office):
    """The office as a stream of CSV or JSON files."""

    def __init__(self, spark: SparkSession, folder: Path, extension: str) -> None:
        self.extension = extension
        (folder / "in").mkdir(exist_ok=True)
        declaration = stream("at", f"'{folder}/in/*.{extension}*'", time="t INTEGER", more="WATERMARK 2")
        super().__init__(spark, folder, declaration)

    def write(self, name: str, content: bytes, suffix: str = "") -> None:
        """Write a file; it appears complete."""
        draft = self.folder / "in" / ".draft"
        draft.write_bytes(content)
        publish(draft, self.folder / "in" / f"{name} + 50%20.{self.extension}{suffix}")

    def add(self, name: str, *rows: tuple) -> None:
        content = HEADER + csv_rows(list(rows)) if self.extension == "csv" else json_rows(list(rows))
        self.write(name, content)


@pytest.mark.parametrize(("extension", "poison"), [("csv", CSV_POISON), ("json", JSON_POISON)])
def test_a_stream_goes_on_after_files_and_lines_that_cannot_be_read(
    extension: str, poison: dict[str, tuple[bytes, list[str]]], spark: SparkSession, tmp_path: Path
) -> None:
    office = TextOffice(spark, tmp_path, extension)
    office.add("0", *ROWS[:3])
    office.process_files()
    for name, (content, _) in poison.items():
        office.write(f"1 {name}", content)
    office.write("1 empty", b"")  # Spark skips files without bytes, which have no rows
    office.write("1 damaged", gzip.compress(json_rows(ROWS) * 100)[:-30], ".gz")
    office.process_files()
    office.stop()
    resumed = TextOffice(spark, tmp_path, extension)
    resumed.add("2", *ROWS[3:])
    resumed.process_files()
    resumed.end()
    resumed.stop()
    answers = {key: p for key, p in resumed.answers.items() if key[1] != "zoe"}
    assert same(answers, ANSWERS)
    found = resumed.quarantined()
    (damaged,) = [row for row in found if "1 damaged" in row["row"]]
    assert damaged["reason"].startswith("the file cannot be read: ")
    expected = Counter(reason for _, reasons in poison.values() for reason in reasons)
    assert Counter(row["reason"] for row in found if row is not damaged) == expected
    files = [row for row in found if row["reason"].startswith("the file ")]
    assert all(f".{extension}" in json.loads(row["row"])["file"] for row in files)


@pytest.mark.parametrize("name", ["without a column", "of another type"])
def test_a_strict_stream_stops(name: str, spark: SparkSession, tmp_path: Path) -> None:
    office = TextOffice(spark, tmp_path, "csv")
    office.add("0", *ROWS[:3])
    office.write("1", CSV_POISON[name][0])
    with pytest.raises(Exception, match="invalid row of at") as failed:
        office.process_files(strict=True)
    error = translate(failed.value)
    assert isinstance(error, DataError)
    assert str(error).startswith(f"invalid row of at: {CSV_POISON[name][1][0]}: ")


def test_a_batch_run_names_a_file_that_does_not_fit(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(HEADER + csv_rows(ROWS))
    (tmp_path / "b.csv").write_bytes(CSV_POISON["without a column"][0])
    session = Session(spark)
    session.execute(stream("at", f"'{tmp_path}/*.csv'", time="t INTEGER") + query())
    with pytest.raises(DataError, match=r"b\.csv has the columns person, place, t, not person, place, t, p"):
        session.run("coffee").collect()


def test_a_batch_run_quarantines_lines(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(HEADER + csv_rows(ROWS) + b"zoe,hall,noon,0.5\n")
    session = Session(spark)
    types = "CREATE STREAM at KEY (person) VALUE (place) TIME t INTEGER MODEL INDEPENDENT"
    session.execute(f"{types} FROM '{tmp_path}/a.csv';" + query())
    assert session.run("coffee").count() == len(ANSWERS)
    (row,) = session.quarantine("coffee").collect()
    assert (row["reason"], json.loads(row["row"])) == (UNREADABLE, {"text": "zoe,hall,noon,0.5"})


def test_a_file_that_has_vanished(tmp_path: Path) -> None:
    job = local_job(
        stream("at", person="person STRING", time="t INTEGER").replace("place", "place STRING") + query(), "coffee"
    )
    columns = Columns(SCHEMA.names, [Type.STRING, Type.STRING, Type.INTEGER, Type.DOUBLE])
    reader = TextReader(CsvFormat(columns, SCHEMA.names, Dialect()))
    (tmp_path / "b.csv").write_bytes(HEADER + csv_rows(ROWS))
    tasks = [{"path": f"{tmp_path}/a.csv"}, {"path": f"{tmp_path}/b.csv"}]
    counts, (rejected,) = process_files(job, reader, tasks)
    assert (counts.read, counts.quarantined) == (len(ROWS) + 1, 1)
    assert rejected["reason"].startswith("the file cannot be read: [Errno 2] No such file or directory")
    assert json.loads(rejected["row"]) == {"file": f"{tmp_path}/a.csv"}
    with pytest.raises(DataError, match=r"a\.csv cannot be read: "):
        process_files(job, reader, tasks, live=False)


def test_a_stream_starts_with_a_damaged_file_and_a_repeated_key(spark: SparkSession, tmp_path: Path) -> None:
    """Types cannot be inferred from such files; stated ones are enough."""
    office = TextOffice(spark, tmp_path, "json")
    office.add("0", *ROWS)
    office.write("1", b'{"person": "zoe", "t": 1, "place": "hall", "T": 2, "p": 0.5}\n')
    office.write("2", gzip.compress(json_rows(ROWS) * 100)[:-30], ".gz")
    with pytest.raises(WorkbookError, match="has a key twice, .*; state the types of all columns"):
        office.process_files()
    types = "CREATE OR REPLACE STREAM at KEY (person STRING) VALUE (place STRING) TIME t INTEGER MODEL INDEPENDENT"
    office.session.execute(f"{types} WATERMARK 2 FROM '{tmp_path}/in/*.json*';")
    office.process_files()
    office.end()
    office.stop()
    assert same({key: p for key, p in office.answers.items() if key[1] != "zoe"}, ANSWERS)
    (row,) = office.quarantined()
    assert row["reason"].startswith("the file cannot be read: ")
