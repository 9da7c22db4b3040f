"""State as bytes: format version, fingerprint of the queries, checksum, and Arrow tables.

Nothing is pickled. State that cannot be read is refused in one line.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

import pyarrow as pa

from anabranch.errors import StateError

#: Increase it when the meaning of the bytes changes, and note it in CHANGELOG.md.
FORMAT = 6

#: The oldest format that this version reads; such state is written in the current format at the next micro-batch.
OLDEST_FORMAT = 3

_MAGIC = b"ANBR"
_HEADER = struct.Struct("<4sHI16sI")

#: Tables are small: threads that compress or decompress single columns would take longer than the work itself.
_READ_OPTIONS = pa.ipc.IpcReadOptions(use_threads=False)


def is_readable(version: int) -> bool:
    """Whether this version can go on with state of a format."""
    return OLDEST_FORMAT <= version <= FORMAT


def wrong_format(version: int) -> str:
    """What is wrong with state of a format that cannot be read."""
    return f"has format {version}, this version reads {OLDEST_FORMAT} to {FORMAT}"


def write_tables(tables: Mapping[str, pa.Table], compression: str | None = None) -> bytes:
    """Named tables as a sequence of Arrow IPC streams."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=False)
    for name, table in tables.items():
        named = table.replace_schema_metadata({"name": name})
        with pa.ipc.new_stream(sink, named.schema, options=options) as writer:
            writer.write_table(named)
    return sink.getvalue().to_pybytes()


def read_tables(data: bytes | memoryview | pa.Buffer) -> dict[str, pa.Table]:
    """The tables of `write_tables`, without copying."""
    reader = pa.BufferReader(data)
    tables = {}
    while reader.tell() < reader.size():
        table = pa.ipc.open_stream(reader, options=_READ_OPTIONS).read_all()
        tables[table.schema.metadata[b"name"].decode()] = table
    return tables


def seal(tables: Mapping[str, pa.Table], fingerprint: str) -> bytes:
    """State bytes: header and tables."""
    body = write_tables(tables, compression="lz4")
    header = _HEADER.pack(_MAGIC, FORMAT, len(body), bytes.fromhex(fingerprint)[:16], zlib.crc32(body))
    return header + struct.pack("<I", zlib.crc32(header)) + body


def unseal(data: bytes, fingerprint: str | None = None) -> dict[str, pa.Table]:
    """The tables of `seal`, after every check; without a fingerprint, of whatever query they are.

    Raises
    ------
    StateError
        If the bytes are damaged, of another format, or of another query.
    """
    start = _HEADER.size + 4
    if len(data) < start or data[:4] != _MAGIC:
        raise StateError("the saved state is not Anabranch's; start with a new checkpoint folder")
    header, body = data[: _HEADER.size], data[start:]
    _, version, length, owner, checksum = _HEADER.unpack(header)
    intact = struct.pack("<I", zlib.crc32(header)) == data[_HEADER.size : start]
    if intact and not is_readable(version):
        raise StateError(f"the saved state {wrong_format(version)}; start with a new checkpoint folder")
    if not intact or length != len(body) or checksum != zlib.crc32(body):
        raise StateError("the saved state is damaged; start with a new checkpoint folder")
    if fingerprint is not None and owner != bytes.fromhex(fingerprint)[:16]:
        raise StateError("the saved state belongs to another query; use its workbook, or a new checkpoint folder")
    return read_tables(body)
