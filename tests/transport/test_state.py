"""State as bytes: sealed state can be read, and damaged state or that of another query is refused in one line."""

from __future__ import annotations

import struct
import zlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import StateError
from anabranch.transport import state
from anabranch.transport.state import FORMAT, read_tables, seal, unseal, write_tables

OURS = "0123456789abcdef" * 4
THEIRS = "f" + OURS[1:]
TABLES = {"rows": pa.table({"t": [1, 2, 3], "v": ["a", None, "b"]}), "watermark": pa.table({"watermark": [7]})}


def plain(tables: dict[str, pa.Table]) -> dict[str, tuple]:
    return {name: (table.column_names, table.to_pylist()) for name, table in tables.items()}


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.none() | st.text(), st.floats(allow_nan=False))))
def test_what_is_sealed_is_opened(rows: list[tuple]) -> None:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    kinds = (pa.int64(), pa.string(), pa.float64())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    tables = {"a table": pa.table(arrays, names=["i", "s", "d"]), "none": pa.table({"x": pa.array([], pa.int8())})}
    opened = unseal(seal(tables, OURS), OURS)
    assert plain(opened) == plain(tables)
    assert opened["none"].schema.types == [pa.int8()]


def test_a_state_without_tables_can_be_read() -> None:
    assert unseal(seal({}, OURS), OURS) == {}
    assert read_tables(write_tables({})) == {}


def test_every_damaged_byte_is_detected() -> None:
    sealed = seal({"t": pa.table({"t": [1]})}, OURS)
    for index in range(len(sealed)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(sealed)
            damaged[index] ^= flip
            with pytest.raises(StateError) as refused:
                unseal(bytes(damaged), OURS)
            assert "\n" not in str(refused.value)


def test_every_truncation_is_detected() -> None:
    sealed = seal(TABLES, OURS)
    for length in range(len(sealed)):
        with pytest.raises(StateError):
            unseal(sealed[:length], OURS)
    with pytest.raises(StateError):
        unseal(sealed + b"\0", OURS)


def test_state_of_another_query_is_refused() -> None:
    with pytest.raises(StateError, match="belongs to another query; use its workbook, or a new checkpoint folder$"):
        unseal(seal(TABLES, THEIRS), OURS)


def test_state_of_another_format_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "FORMAT", FORMAT + 1)
    newer = seal(TABLES, OURS)
    monkeypatch.undo()
    with pytest.raises(
        StateError, match=f"has format {FORMAT + 1}, this version reads 3 to {FORMAT}; start with a new"
    ):
        unseal(newer, OURS)


def test_the_error_names_an_unknown_format_even_if_the_content_is_unreadable() -> None:
    header = state._HEADER.pack(b"ANBR", 99, 3, bytes(16), 0)
    with pytest.raises(StateError, match="has format 99"):
        unseal(header + struct.pack("<I", zlib.crc32(header)) + b"new", OURS)


def test_bytes_that_are_not_state_are_refused() -> None:
    for data in (b"", b"ANB", b"PAR1" * 100):
        with pytest.raises(StateError, match="not Anabranch's"):
            unseal(data, OURS)
