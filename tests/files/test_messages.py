"""Messages: each has the rows that its value has, or is quarantined once; compared with the modules json and csv."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import DataError
from anabranch.files.avro import AvroValues, avro_types, check_schema
from anabranch.files.csv_lines import Dialect
from anabranch.files.formats import Columns, CsvFormat, JsonFormat
from anabranch.files.kafka import limited, tasks_of
from anabranch.files.messages import LineValues, Messages, ValueFormat, read_messages
from anabranch.language.types import Type

COLUMNS = Columns(["name", "x"], [Type.STRING, Type.INTEGER])
PLACES = {"offset": "message_offset"}


def read(values: Sequence[bytes | None], value_format: ValueFormat) -> tuple[list[dict], dict[int, str]]:
    """The rows of messages, and the reason of each that is quarantined, by offset."""
    messages = Messages(values, {"message_offset": pa.array(range(len(values)), pa.int64())}, PLACES)
    rows, rejected = read_messages(messages, value_format, ["name", "x", "message_offset"], "s")
    reasons = {json.loads(row["row"])["offset"]: row["reason"] for row in rejected.to_pylist()}
    assert len(reasons) == rejected.num_rows
    return sorted(rows.to_pylist(), key=lambda row: row["message_offset"]), reasons


names = st.one_of(st.none(), st.text('ab"\\,\n\r é\U0001f600', max_size=4))
numbers = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))
objects = st.fixed_dictionaries({"name": names, "x": numbers})
documents = st.tuples(st.one_of(objects, st.lists(objects, max_size=3)), st.sampled_from([None, 1]), st.booleans())
damaged = st.sampled_from([None, b"", b" ", b"\n", b"{", b"nope", b"\xff", b'{"x": "a"}', b'{"x": 1.5}', b"3"])


@given(st.lists(st.one_of(documents, damaged), max_size=8))
def test_json_messages_have_the_rows_of_their_documents(items: list) -> None:
    values, expected, bad = [], [], set()
    for offset, item in enumerate(items):
        if item is None or isinstance(item, bytes):
            values.append(item)
            bad.add(offset)
            continue
        document, indent, ascii_only = item
        values.append(json.dumps(document, indent=indent, ensure_ascii=ascii_only).encode())
        rows = document if isinstance(document, list) else [document]
        expected += [{**row, "message_offset": offset} for row in rows]
    found, reasons = read(values, LineValues(JsonFormat(COLUMNS)))
    assert found == expected
    assert reasons.keys() == bad


@given(st.lists(st.tuples(st.text('ab" é', max_size=4), numbers), max_size=8), st.sampled_from(",;|"))
def test_csv_messages_have_the_cells_of_their_line(rows: list[tuple], separator: str) -> None:
    values, expected = [], []
    for offset, (name, x) in enumerate(rows):
        line = io.StringIO()
        csv.writer(line, delimiter=separator, quoting=csv.QUOTE_ALL).writerow([name, "" if x is None else x])
        values.append(line.getvalue().encode())
        expected.append({"name": name or None, "x": x, "message_offset": offset})
    lines = CsvFormat(COLUMNS, COLUMNS.names, Dialect(separator, '"'))
    assert read(values, LineValues(lines)) == (expected, {})


def test_csv_messages_have_one_line_with_all_cells() -> None:
    values = [b"a,1\n", b"a,1\nb,2", b"a", b"a,1,2", b"a,b", b"a,1"]
    found, reasons = read(values, LineValues(CsvFormat(COLUMNS, COLUMNS.names, Dialect())))
    assert [row["message_offset"] for row in found] == [0, 5]
    unreadable = "a cell does not fit its column's type"
    assert reasons == {1: "the message has several lines", 2: unreadable, 3: unreadable, 4: unreadable}


AVRO = json.dumps(
    {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "name", "type": ["null", "string"]},
            {"name": "x", "type": "int"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}},
            {"name": "data", "type": "bytes"},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "either", "type": ["int", "string"]},
        ],
    }
)


def test_avro_messages_have_the_values_of_their_records() -> None:
    fastavro = pytest.importorskip("fastavro")
    assert avro_types(AVRO) == {
        "name": Type.STRING, "x": Type.INTEGER, "at": Type.TIMESTAMP, "local": Type.TIMESTAMP, "day": Type.DATE,
        "price": Type.DOUBLE, "data": Type.BINARY,
    }  # fmt: skip
    moment = datetime(2026, 1, 2, 3, 4, 5, 6000, UTC)
    record = {
        "name": None, "x": 7, "at": moment, "local": moment.replace(tzinfo=None), "day": date(2026, 1, 2),
        "price": Decimal("1.25"), "data": b"\xff", "tags": ["a"], "either": "b",
    }  # fmt: skip
    value = io.BytesIO()
    fastavro.schemaless_writer(value, fastavro.parse_schema(json.loads(AVRO)), record)
    decoded = AvroValues(AVRO, avro_types(AVRO)).decode([b"?", value.getvalue(), value.getvalue() + b"?"])
    expected = {name: record[name] for name in avro_types(AVRO)} | {"local": moment, "price": 1.25}
    assert decoded.rows.to_pylist() == [expected]
    assert decoded.numbers.tolist() == [1]
    assert decoded.faults.keys() == {0, 2}


@pytest.mark.parametrize("schema", ["{", "[]", '"string"', '{"type": "record", "name": "r"}'])
def test_a_file_that_is_no_record_schema_is_one_line(schema: str) -> None:
    with pytest.raises(DataError, match="the Avro schema is not a record in JSON"):
        avro_types(schema)


def test_a_schema_that_avro_does_not_allow_is_one_line() -> None:
    pytest.importorskip("fastavro")
    with pytest.raises(DataError, match="the Avro schema cannot be used: "):
        check_schema('{"type": "record", "name": "r", "fields": [{"name": "x", "type": "nope"}]}')


offsets = st.dictionaries(st.integers(0, 4), st.integers(0, 2_000_000), max_size=4)


@given(offsets, offsets, st.one_of(st.none(), st.integers(1, 10_000)))
def test_micro_batches_read_every_offset_once(starts: dict, more: dict, most: int | None) -> None:
    stops = {partition: starts.get(partition, 0) + number for partition, number in more.items()}
    reached = dict(starts)
    for _ in range(5):
        ends = limited(reached, stops, most)
        for partition, stop in stops.items():
            assert reached.get(partition, 0) <= ends[partition] <= stop
            # Every partition moves on.
            assert ends[partition] > reached.get(partition, 0) or ends[partition] == stop
        if most is not None:
            assert sum(ends[key] - reached.get(key, 0) for key in stops) <= most + len(stops)
        for partition in stops:
            tasks = [task for task in tasks_of("t", reached, ends) if task["partition"] == partition]
            covered = [(task["start"], task["stop"]) for task in tasks]
            bounds = [reached.get(partition, 0), *(stop for _, stop in covered)]
            assert bounds == [*(start for start, _ in covered), ends[partition]] or not covered
            assert bounds[-1] == ends[partition]
        reached |= ends
    assert most is not None or reached == {**starts, **stops}
