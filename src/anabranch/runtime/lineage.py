"""The lineage of answers as a column: the rows that each answer depends on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from anabranch.binding.lineage import Origin
from anabranch.catalog import Query
from anabranch.errors import AnabranchError
from anabranch.runtime.per import quoted

#: The name of the column.
LINEAGE = "lineage"


def check_lineage(query: Query) -> None:
    """Refuse a query whose rows have no lineage."""
    if query.declaration.per is not None:
        raise AnabranchError(f"{query.name} has PER, so its rows have no lineage; run it without PER")


def with_lineage(answers: DataFrame, origins: Sequence[Origin]) -> DataFrame:
    """The answers with the column `lineage`: a list of (stream, key, since, until), where NULL means any.

    An event that is missing in an answer has no entry.
    """
    columns = {name.lower(): name for name in answers.columns}
    times = [_column(time, columns) for origin in origins for time in (origin.since, origin.until) if time is not None]
    kind = answers.select(times[0]).schema.fields[0].dataType if times else spark_types.DoubleType()
    entries = F.array(*[_entry(origin, columns, kind) for origin in origins])
    # The lineage of answers that depend on certain rows alone is empty; without the cast, it would have no type.
    lineage = F.filter(entries, Column.isNotNull).cast(_type(kind))
    return answers.withColumn(LINEAGE, lineage)


def _type(kind: spark_types.DataType) -> spark_types.ArrayType:
    """The type of the column, for answers with times of this type."""
    fields = {"stream": spark_types.StringType(), "key": spark_types.StringType(), "since": kind, "until": kind}
    return spark_types.ArrayType(
        spark_types.StructType([spark_types.StructField(name, field) for name, field in fields.items()])
    )


def _entry(origin: Origin, columns: dict[str, str], kind: spark_types.DataType) -> Column:
    """One origin as a struct; NULL if its event is missing."""
    keys = [None if key is None else _column(key, columns) for key in origin.keys]
    known = [key for key in keys if key is not None]
    parts = [F.lit("*") if key is None else key.cast("string") for key in keys]
    entry = F.struct(
        F.lit(origin.stream).alias("stream"),
        (F.concat_ws(", ", *parts) if known else F.lit(None).cast("string")).alias("key"),
        _since(origin, columns, kind).cast(kind).alias("since"),
        (F.lit(None) if origin.until is None else _column(origin.until, columns)).cast(kind).alias("until"),
    )
    return F.when(reduce(and_, [key.isNotNull() for key in known], F.lit(True)), entry)


def _since(origin: Origin, columns: dict[str, str], kind: spark_types.DataType) -> Column:
    if origin.since is None:
        return F.lit(None)
    since = _column(origin.since, columns)
    if not origin.before:
        return since
    if isinstance(kind, spark_types.TimestampType | spark_types.TimestampNTZType):
        return since - F.make_dt_interval(secs=F.lit(origin.before))
    return since - F.lit(float(origin.before))


def _column(name: str, columns: dict[str, str]) -> Column:
    """A column of answers, or a field of a struct."""
    if name in columns:
        return F.col(quoted(columns[name]))
    struct, _, field = name.partition(".")
    return F.col(f"{quoted(columns[struct])}.{quoted(field)}")
