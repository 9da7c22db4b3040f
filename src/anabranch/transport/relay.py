"""Final answers of a stream as the rows of another stream (FROM QUERY), with a promise: no earlier row will follow.

An answer is passed on when no later one can have its time: only then it is known which of several answers with one key
and time is the most probable. So what is passed on does not depend on the split into micro-batches. The *promise* is
the time before which all rows have been passed on. It moves with the watermark of the query, also where there are no
answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import BEGINNING, I64
from anabranch.columns.dictionary import encode_tuples
from anabranch.columns.statuses import FINAL
from anabranch.columns.times import TimeKind, decode_times, encode_known_times, encode_times
from anabranch.transport.frontier import Frontier
from anabranch.transport.per import Moment
from anabranch.transport.preparation import Preparation
from anabranch.transport.preparing import satisfies
from anabranch.transport.state import seal, unseal


@dataclass(frozen=True, slots=True)
class RelayRule:
    """How the answers of a query become the rows of a stream of them.

    Attributes
    ----------
    frontier : which answers can still be given
    time : the column with the time of the stream; the field `t` of a struct `a` is the column `a.t`
    event : the columns of the key and the time, if of several answers with the same ones the most probable is a row;
        empty if every answer is a row
    probability : the column of the probability
    selection : its condition selects among answers with one key and time; None if all can be the most probable
    """

    frontier: Frontier
    time: str
    event: tuple[str, ...] = ()
    probability: str = "probability"
    selection: Preparation | None = None


class Relayed(NamedTuple):
    """One micro-batch: the rows that are passed on, those that wait, and the promise as a code."""

    rows: pa.Table
    held: pa.Table
    promise: int


def plain_columns(answers: pa.Table) -> pa.Table:
    """The answers with a column `a.car` for each field of a struct `a`."""
    return answers.flatten()


def relay(rule: RelayRule, before: Relayed | None, answers: pa.Table, now: Moment) -> Relayed:
    """Take the answers of a micro-batch; at the end of the input, no row waits any longer."""
    if "status" in answers.column_names:
        answers = answers.filter(pc.is_in(answers["status"], value_set=pa.array(FINAL)))
    rows = plain_columns(answers)
    promise = rule.frontier.at(now.watermark)
    if before is not None:
        rows, promise = pa.concat_tables([before.held, rows]), max(before.promise, promise)
    times = encode_known_times(rows[rule.time], rule.frontier.time_kind)
    if now.ended:
        promise = max(promise, int(times.max()) + 1) if len(times) else promise
    passed = times < promise
    return Relayed(_events(rule, rows.filter(pa.array(passed))), rows.filter(pa.array(~passed)), promise)


def _events(rule: RelayRule, rows: pa.Table) -> pa.Table:
    """The most probable answer of each event; of equally probable ones, the first in the order of columns."""
    if not rule.event or not rows.num_rows:
        return rows
    if rule.selection is not None:
        rows = rows.filter(pa.array(satisfies(rows, rule.selection)))
    codes, _ = encode_tuples([rows[name] for name in rule.event], rows.num_rows)
    p = rows[rule.probability].to_numpy()
    highest = np.full(len(p), -np.inf)
    np.maximum.at(highest, codes, p)
    chosen = np.flatnonzero(p == highest[codes])
    return rows.take(pa.array(_first_of_each(rows, codes, chosen)))


def _first_of_each(rows: pa.Table, codes: np.ndarray, chosen: I64) -> I64:
    """Of the chosen rows, the first one of each code, in the order of columns."""
    several = np.bincount(codes[chosen], minlength=len(codes)) > 1
    tied = chosen[several[codes[chosen]]]
    order = {row: _sortable(values) for row, values in zip(tied, rows.take(pa.array(tied)).to_pylist(), strict=True)}
    first: dict[int, int] = {}
    for row in sorted(order, key=lambda row: order[row]):
        first.setdefault(int(codes[row]), row)
    return np.sort(np.concatenate([chosen[~several[codes[chosen]]], np.array([*first.values()], np.int64)]))


def _sortable(value: Any) -> Any:
    """A value of a row as Spark orders it: NULL first, structs and arrays element by element."""
    if value is None:
        return (0,)
    if isinstance(value, dict):
        return 1, tuple(map(_sortable, value.values()))
    return 1, tuple(map(_sortable, value)) if isinstance(value, list) else value


# ---------------------------------------------------------------- as bytes


def write_held(relayed: Relayed, fingerprint: str) -> bytes:
    """What the next micro-batch needs."""
    return seal({"held": relayed.held, "promise": pa.table({"promise": [relayed.promise]})}, fingerprint)


def read_held(data: bytes, fingerprint: str) -> Relayed:
    """What `write_held` has written."""
    tables = unseal(data, fingerprint)
    held = tables["held"].replace_schema_metadata(None)
    return Relayed(held.schema.empty_table(), held, tables["promise"]["promise"][0].as_py())


def write_rows(relayed: Relayed, kind: TimeKind, ended: bool, fingerprint: str) -> bytes:
    """The rows of a micro-batch with the promise, for the stream that reads them; the promise is NULL if there is none.

    The promise is a time and not a code, because the query that reads it may have times of another type.
    """
    code = np.array([relayed.promise])
    promise = pa.nulls(1, kind.arrow_type) if relayed.promise == BEGINNING else decode_times(code, kind)
    return seal({"rows": relayed.rows, "progress": pa.table({"promise": promise, "ended": [ended]})}, fingerprint)


class RelayedRows(NamedTuple):
    """The rows that a stream reads, the promise as a code of its own times, and whether the input has ended."""

    rows: pa.Table
    promise: int
    ended: bool


def read_rows(data: bytes, kind: TimeKind) -> RelayedRows:
    """What `write_rows` has written; `kind` is that of the stream that reads it."""
    tables = unseal(data)
    promise, ended = (tables["progress"][name] for name in ("promise", "ended"))
    if kind is TimeKind.INTEGER and pa.types.is_floating(promise.type):
        promise = pc.floor(promise)
    code = BEGINNING if promise.null_count else int(encode_times(promise, kind)[0])
    return RelayedRows(tables["rows"].replace_schema_metadata(None), code, ended[0].as_py())
