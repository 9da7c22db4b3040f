"""The rows of messages as Arrow tables, and the messages that hold none.

The values of JSON and CSV messages are read as the lines of files are. A message that cannot be read is quarantined
with its place in the topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64
from anabranch.files.formats import CsvFormat, LineFormat, Row, Unreadable
from anabranch.files.text import NOT_UTF8, plain_rows, table_of
from anabranch.transport.checks import QUARANTINE, UNREADABLE, quarantine

#: Why a message is quarantined.
NO_VALUE = "the message has no value"
SEVERAL_LINES = "the message has several lines"

#: A quarantined value is shown up to this many bytes.
_SHOWN_BYTES = 10_000


@dataclass(frozen=True, slots=True)
class Messages:
    """Some messages: their values, and a column for each name of `METADATA` (`binding/message_columns.py`).

    `places` are those of the metadata that say where a message is found again, by their names in the quarantine.
    """

    values: Sequence[bytes | None]
    metadata: Mapping[str, pa.Array]
    places: Mapping[str, str]


@dataclass(slots=True)
class Decoded:
    """The rows of some values: for each row the number of its value, and why other values hold no rows."""

    rows: pa.Table
    numbers: I64
    faults: dict[int, str] = field(default_factory=dict)


class ValueFormat(Protocol):
    """How values hold rows."""

    def decode(self, values: Sequence[bytes]) -> Decoded:
        """The rows of values that are not empty."""


def read_messages(
    messages: Messages, values: ValueFormat, columns: Sequence[str], stream: str
) -> tuple[pa.Table, pa.Table]:
    """These columns of the rows of messages, and a QUARANTINE table of the messages that cannot be read."""
    filled = [(number, value) for number, value in enumerate(messages.values) if value]
    decoded = values.decode([value for _, value in filled])
    place = np.array([number for number, _ in filled], np.int64)
    faults = {number: NO_VALUE for number, value in enumerate(messages.values) if not value}
    faults |= {int(place[index]): reason for index, reason in decoded.faults.items()}
    numbers = pa.array(place[decoded.numbers])
    known = {name.lower(): decoded.rows[name] for name in decoded.rows.column_names}
    found = [
        known[name.lower()] if name.lower() in known else messages.metadata[name.lower()].take(numbers)
        for name in columns
    ]
    return pa.table(found, names=list(columns)), _quarantined(messages, faults, stream)


def _quarantined(messages: Messages, faults: Mapping[int, str], stream: str) -> pa.Table:
    parts = [QUARANTINE.empty_table()]
    for number, reason in sorted(faults.items()):
        row: dict[str, object] = {
            name: messages.metadata[column][number].as_py() for name, column in messages.places.items()
        }
        value = messages.values[number]
        if value:
            row["text"] = value[:_SHOWN_BYTES].decode(errors="replace")
        parts.append(quarantine(stream, reason, [row]))
    return pa.concat_tables(parts)


class _OddRows(NamedTuple):
    """Rows that were read one by one, with the numbers of their values."""

    rows: list[Row]
    numbers: list[int]


@dataclass(frozen=True, slots=True)
class LineValues:
    """Values that are lines of JSON or CSV (a `ValueFormat`)."""

    lines: LineFormat

    def decode(self, values: Sequence[bytes]) -> Decoded:
        """The rows of values; an array of JSON has several."""
        values = [value.rstrip(b"\r\n") for value in values]
        # A value of several lines would be taken for several values.
        inline = [b"" if b"\n" in value or b"\r" in value else value for value in values]
        starts = np.cumsum([0, *(len(value) + 1 for value in inline)])
        data = b"\n".join(inline) + b"\n"
        table, split, undecided = plain_rows(data, self.lines)
        numbers = np.searchsorted(starts, split.lines[0, : split.n_lines], side="right") - 1
        faults = dict.fromkeys(np.setdiff1d(np.arange(len(values)), numbers).tolist(), NO_VALUE)
        several = [number for number, value in enumerate(values) if value and not inline[number]]
        odd = _OddRows([], [])
        for number in [*numbers[undecided].tolist(), *several]:
            fault = self._read(number, values[number], odd)
            faults.pop(number, None)
            if fault:
                faults[number] = fault
        rows = pa.concat_tables([table.filter(pa.array(~undecided)), table_of(odd.rows, table.schema)])
        return Decoded(rows, np.concatenate([numbers[~undecided], np.array(odd.numbers, np.int64)]), faults)

    def _read(self, number: int, value: bytes, odd: _OddRows) -> str:
        """Add the rows of one value; returns the reason if it has none."""
        if isinstance(self.lines, CsvFormat) and (b"\n" in value or b"\r" in value):
            return SEVERAL_LINES
        try:
            rows = self.lines.rows(value.decode())
        except UnicodeDecodeError:
            return NOT_UTF8
        except Unreadable:
            return UNREADABLE
        odd.rows.extend(rows)
        odd.numbers.extend([number] * len(rows))
        return ""
