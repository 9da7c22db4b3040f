"""Rows of several answers (PER) of an archive, on Spark.

Windows and sets of keys are the rules of `transport/per.py` as expressions over a DataFrame; episodes are merged by the
functions of that module, on the workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StructField, StructType

from anabranch.binding.per import PerEpisode, PerWindow
from anabranch.columns.times import TimeKind, restore_doubles, step_times
from anabranch.thresholds import least_reaching
from anabranch.transport.per import (
    BOUNDS,
    PREVIOUS,
    KeyColumn,
    PerRule,
    merged,
    partial_rows,
    result_rows,
)

#: Columns between the answers and the rows. No operand has such a name: scanners do not allow it without backticks.
_FIRST, _LAST, _NUMBER, _LAST_NUMBER = (f"`(per) {name}`" for name in ("first", "last", "number", "last number"))
_INSTANT, _PREVIOUS, _COUNT, _HIGHEST = (f"`(per) {name}`" for name in ("instant", "previous", "count", "highest"))

#: The types of times as numbers.
_TYPES = {TimeKind.INTEGER: "BIGINT", TimeKind.DOUBLE: "DOUBLE", TimeKind.TIMESTAMP: "BIGINT"}

#: Relative differences of doubles that are rounding errors, as in `columns/times.py`.
_EPS = 4 * float(np.finfo(np.float64).eps)


def quoted(name: str) -> str:
    """The name of a column in an expression."""
    return "`" + name.replace("`", "``") + "`"


def rows_of_frame(rule: PerRule, answers: DataFrame, instants: DataFrame | None) -> DataFrame:
    """The rows of all answers of a query; `instants` are those of the streams (column `instant`), for episodes."""
    per, kind = rule.per, rule.time_kind
    first, last = (_number(quoted(name), kind) for name in rule.span)
    spans = answers.where(f"probability > {rule.excluded!r}D").selectExpr(
        *map(_keys, rule.keys), f"{first} AS {_FIRST}", f"{last} AS {_LAST}", "probability"
    )
    keys = [quoted(key.name) for key in rule.keys]
    if isinstance(per, PerWindow):
        rows = _window_rows(rule, per, spans, keys)
    elif isinstance(per, PerEpisode):
        rows = _episode_rows(rule, _with_previous(rule, spans, instants), keys)
    else:
        span = (f"min({_FIRST}) AS {_FIRST}", f"max({_LAST}) AS {_LAST}")
        groups = _grouped(spans, keys, *span, "count(1) AS count", "max(probability) AS probability")
        ends = (f"{_time(_FIRST, kind)} AS t_from", f"{_time(_LAST, kind)} AS t_to")
        rows = groups.selectExpr(*ends, *keys, "count", "probability", "expected")
    return rows.where(f"probability >= {least_reaching(per.threshold)!r}D")


def _grouped(rows: DataFrame, by: list[str], *aggregates: str) -> DataFrame:
    """Grouped rows, with the sum of their probabilities; without keys, all rows are one group, if there are any."""
    columns: list[Column] = [F.expr(text) for text in (*aggregates, "sum(probability) AS expected")]
    grouped = rows.groupBy(*by).agg(*columns)
    return grouped if by else grouped.where("expected IS NOT NULL")


def _keys(key: KeyColumn) -> str:
    """The key columns of an operand: a struct, NULL for a missing event, or a sorted array of structs."""
    column = quoted(key.name)
    if not key.fields:
        return column
    if key.several:
        fields = ", ".join(f"event.{quoted(field)} AS {quoted(field)}" for field in key.fields)
        return f"array_sort(transform({column}, event -> struct({fields}))) AS {column}"
    event = column if key.event is None else f"{column}.{quoted(key.event)}"
    fields = ", ".join(f"{event}.{quoted(field)} AS {quoted(field)}" for field in key.fields)
    return f"IF({column} IS NULL, NULL, struct({fields})) AS {column}"


def _number(column: str, kind: TimeKind) -> str:
    """A time as a number to calculate with: microseconds for a TIMESTAMP."""
    return f"unix_micros({column})" if kind is TimeKind.TIMESTAMP else column


def _time(number: str, kind: TimeKind) -> str:
    """The time of a number, in the type of answers."""
    return f"timestamp_micros({number})" if kind is TimeKind.TIMESTAMP else number


def instants_of(packets: DataFrame, kind: TimeKind) -> DataFrame:
    """The instants of the rows of packets, as numbers, in a column `instant`; some may be repeated."""
    codes = packets.where("instants IS NOT NULL").select("instants")
    return codes.mapInArrow(partial(_open_instants, kind), f"instant {_TYPES[kind]}")


def _open_instants(kind: TimeKind, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for blob in batch.column(0).to_pylist():
            codes = np.frombuffer(blob, "<i8")
            numbers = restore_doubles(codes) if kind is TimeKind.DOUBLE else codes
            yield pa.record_batch([pa.array(numbers)], names=["instant"])


# ---------------------------------------------------------------- windows


def _window_rows(rule: PerRule, per: PerWindow, spans: DataFrame, keys: list[str]) -> DataFrame:
    first, last = (_window(per, rule.time_kind, _local(per, column)) for column in (_FIRST, _LAST))
    if rule.is_of_instants:
        numbered = spans.selectExpr(f"{first} AS {_NUMBER}", *keys, "probability")
    else:
        windows = spans.selectExpr("*", f"{first} AS {_NUMBER}", f"{last} AS {_LAST_NUMBER}")
        # The end of an interval is exclusive: one that ends where a window begins does not overlap it.
        begin = _begin(per, rule.time_kind, _LAST_NUMBER)
        until = f"{begin} + {_EPS!r}D * abs({begin})" if rule.time_kind is TimeKind.DOUBLE else begin
        touches = f"{_LAST_NUMBER} > {_NUMBER} AND {_local(per, _LAST)} <= {until}"
        numbers = f"sequence({_NUMBER}, greatest({_NUMBER}, {_LAST_NUMBER} - IF({touches}, 1, 0)))"
        numbered = windows.selectExpr(f"explode({numbers}) AS {_NUMBER}", *keys, "probability")
    groups = _grouped(numbered, [_NUMBER, *keys], f"count(1) AS {_COUNT}", f"max(probability) AS {_HIGHEST}")
    n = per.at_least
    bound = _HIGHEST if n == 1 else f"greatest(0D, (expected - {n - 1}) / ({_COUNT} - {n - 1}))"
    ends = (
        f"{_instant(per, _time(_begin(per, rule.time_kind, number), rule.time_kind))} AS {name}"
        for name, number in (("t_from", _NUMBER), ("t_to", f"({_NUMBER} + 1)"))
    )
    return groups.where(f"{_COUNT} >= {n}").selectExpr(
        *ends, *keys, f"{bound} AS probability", "expected", f"{bound} AS lower",
        f"greatest({bound}, least(1D, expected / {n})) AS upper", f"'{BOUNDS}' AS method",
    )  # fmt: skip


def _local(per: PerWindow, instant: str) -> str:
    """The local time of an instant, both as numbers; without a zone, the instant."""
    return f"unix_micros(from_utc_timestamp(timestamp_micros({instant}), '{per.zone}'))" if per.zone else instant


def _instant(per: PerWindow, local: str) -> str:
    """The instant of a local time; the earlier one, if it occurs twice."""
    return f"to_utc_timestamp({local}, '{per.zone}')" if per.zone else local


def _window(per: PerWindow, kind: TimeKind, instant: str) -> str:
    """The number of the window of an instant, as `steps_of`."""
    if kind is TimeKind.DOUBLE:
        steps = f"({instant} / {per.length!r}D)"
        return f"CAST(floor({steps} + {_EPS!r}D * abs({steps})) AS BIGINT)"
    length = _length(per, kind)
    return f"(({instant} - pmod({instant}, {length}L)) DIV {length}L)"


def _begin(per: PerWindow, kind: TimeKind, number: str) -> str:
    """The begin of a window, as `step_times`."""
    if kind is TimeKind.DOUBLE:
        return f"CAST({number} AS DOUBLE) * {per.length!r}D"
    return f"{number} * {_length(per, kind)}L"


def _length(per: PerWindow, kind: TimeKind) -> int:
    """The length of a window, as a difference of numbers."""
    return int(step_times(np.array([1]), per.length, kind)[0])


# ---------------------------------------------------------------- episodes


def _with_previous(rule: PerRule, spans: DataFrame, instants: DataFrame | None) -> DataFrame:
    """The answers with the instant of the streams before theirs, where it is needed; NULL if there is none."""
    if not rule.needs_instants:
        return spans
    if instants is None:
        raise ValueError("episodes of instants need the instants of the streams")
    # One task sorts all distinct instants: they are numbers, and few compared with the rows of the streams.
    previous = instants.distinct().selectExpr(
        f"instant AS {_INSTANT}", f"lag(instant) OVER (ORDER BY instant) AS {_PREVIOUS}"
    )
    return spans.join(previous, F.expr(f"{_FIRST} = {_INSTANT}"), "left").drop(_INSTANT.strip("`"))


def _episode_rows(rule: PerRule, spans: DataFrame, keys: list[str]) -> DataFrame:
    """The episodes of all answers. Workers merge the answers of a partition: Spark's windows take ten times as long."""
    numbers = dict(zip(rule.span, (_FIRST, _LAST), strict=True))
    if rule.needs_instants:
        numbers[PREVIOUS] = _PREVIOUS
    columns = (f"{_time(number, rule.time_kind)} AS {quoted(name)}" for name, number in numbers.items())
    answers = spans.selectExpr(*keys, *columns, "probability")
    together = answers.repartition(*keys) if keys else answers.coalesce(1)
    fields = answers.schema
    schema = StructType(
        [
            *(StructField(name, fields[rule.span[0]].dataType) for name in ("t_from", "t_to")),
            *(fields[key.name] for key in rule.keys),
            StructField("count", LongType()),
            StructField("probability", DoubleType()),
            StructField("expected", DoubleType()),
        ]
    )
    return together.mapInArrow(partial(_merge, rule), schema)


def _merge(rule: PerRule, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of the answers of a partition, which has all answers with the same keys."""
    answers = list(batches)
    if answers:
        partial_table = partial_rows(rule, pa.Table.from_batches(answers))
        yield from result_rows(rule, merged(rule, partial_table)).to_batches()
