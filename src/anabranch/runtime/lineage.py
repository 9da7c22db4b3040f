"""The lineage of answers as a column: the rows that each answer depends on."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
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
    kind = answers.selectExpr(times[0]).schema.fields[0].dataType if times else spark_types.DoubleType()
    entries = ", ".join(_entry(origin, columns, kind) for origin in origins)
    return answers.selectExpr("*", f"filter(array({entries}), origin -> origin IS NOT NULL) AS {LINEAGE}")


def _entry(origin: Origin, columns: dict[str, str], kind: spark_types.DataType) -> str:
    """One origin as a struct; NULL if its event is missing."""
    keys = [None if key is None else _column(key, columns) for key in origin.keys]
    known = [key for key in keys if key is not None]
    parts = ", ".join("'*'" if key is None else f"CAST({key} AS STRING)" for key in keys)
    key_text = f"concat_ws(', ', {parts})" if known else "CAST(NULL AS STRING)"
    until = "NULL" if origin.until is None else _column(origin.until, columns)
    fields = (
        f"'stream', '{origin.stream}', 'key', {key_text}, "
        f"'since', CAST({_since(origin, columns, kind)} AS {kind.simpleString()}), "
        f"'until', CAST({until} AS {kind.simpleString()})"
    )
    missing = " OR ".join(f"{key} IS NULL" for key in known) or "FALSE"
    return f"IF({missing}, NULL, named_struct({fields}))"


def _since(origin: Origin, columns: dict[str, str], kind: spark_types.DataType) -> str:
    if origin.since is None:
        return "NULL"
    since = _column(origin.since, columns)
    if not origin.before:
        return since
    if isinstance(kind, spark_types.TimestampType | spark_types.TimestampNTZType):
        return f"{since} - make_dt_interval(0, 0, 0, {origin.before!r})"
    return f"{since} - {origin.before!r}D"


def _column(name: str, columns: dict[str, str]) -> str:
    """A column of answers, or a field of a struct, as text."""
    if name in columns:
        return quoted(columns[name])
    struct, _, field = name.partition(".")
    return f"{quoted(columns[struct])}.{quoted(field)}"
