"""Answers as rows of a PostgreSQL table, exactly once.

A micro-batch is one transaction, which also stores its number. If a micro-batch is repeated after a failure, its number
is there, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from anabranch.binding.targets import target_options
from anabranch.clients.extras import optional_module
from anabranch.columns.json_rows import json_rows, json_text
from anabranch.errors import AnabranchError, DataError
from anabranch.language import nodes
from anabranch.runtime.sinks.target import BATCH_RUN, AnswerWriter, answer_ids, without_secrets

#: The table with the last micro-batch of every stream, in the schema of the answers.
BATCHES = "anabranch_batches"

#: The columns that every table of answers has: the id of the answer, and who has written it.
_OWN_COLUMNS = {
    "_id": "text PRIMARY KEY",
    "_query": "text NOT NULL",
    "_run": "text NOT NULL",
    "_batch": "bigint NOT NULL",
}


class PostgresTarget:
    """A table, which is created if it does not exist."""

    takes_frames: ClassVar[bool] = False

    def __init__(self, query: str, target: nodes.Target, base: str) -> None:
        self._query, self._target = query, target

    def open(self, owner: str) -> AnswerWriter:
        """The writer of a stream."""
        with self._connection():
            pass
        return _PostgresWriter(self, owner)

    def write_whole(self, answers: DataFrame) -> None:
        """Replace the answers of an earlier batch run of the query, in one transaction."""
        table = answers.toArrow()
        with self._connection() as connection, connection.transaction():
            self._create(connection, table.schema)
            sql = optional_module("psycopg").sql
            earlier = sql.SQL("DELETE FROM {} WHERE _query = %s AND _run = %s").format(self._name(sql))
            connection.execute(earlier, (self._query, BATCH_RUN))
            self._insert(connection, BATCH_RUN, table, 0)

    def write(self, owner: str, answers: pa.Table, batch: int) -> None:
        """Write the answers of a micro-batch, unless they are there."""
        with self._connection() as connection, connection.transaction():
            self._create(connection, answers.schema)
            if self._advance(connection, owner, batch, answers.num_rows):
                self._insert(connection, owner, answers, batch)

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        with without_secrets(self._target):
            psycopg = optional_module("psycopg")
            try:
                with psycopg.connect(**target_options(self._target)) as connection:
                    yield connection
            except psycopg.Error as error:
                lines = str(error).splitlines() or [type(error).__name__]
                raise AnabranchError(lines[0]) from None

    def _name(self, sql: Any, table: str | None = None) -> Any:
        """The table of the answers, or another one of its schema."""
        *schema, own = self._target.name.split(".")
        return sql.Identifier(*schema, table or own)

    def _create(self, connection: Any, schema: pa.Schema) -> None:
        sql = optional_module("psycopg").sql
        # Two queries that create the same table at the same time would fail.
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('anabranch'))")
        columns = {**_OWN_COLUMNS, **{field.name: _type(field.type) for field in schema}}
        defined = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind)) for name, kind in columns.items()
        )
        connection.execute(sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(self._name(sql), defined))
        batches = (
            "CREATE TABLE IF NOT EXISTS {} (target text, query text, run text, batch bigint NOT NULL, answers bigint, "
            "written timestamptz DEFAULT now(), PRIMARY KEY (target, query, run))"
        )
        connection.execute(sql.SQL(batches).format(self._name(sql, BATCHES)))
        there = connection.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(self._name(sql))).description
        missing = columns.keys() - {column.name for column in there}
        if missing:
            raise DataError(f"the table has no column {min(missing)}; write to another table, or add the column")

    def _advance(self, connection: Any, owner: str, batch: int, n_answers: int) -> bool:
        """Store the number of a micro-batch; returns whether it is a new one."""
        sql = optional_module("psycopg").sql
        statement = sql.SQL(
            "INSERT INTO {} AS earlier (target, query, run, batch, answers) VALUES (%s, %s, %s, %s, %s) "
            "ON CONFLICT (target, query, run) DO UPDATE SET batch = excluded.batch, answers = excluded.answers, "
            "written = now() WHERE earlier.batch < excluded.batch"
        ).format(self._name(sql, BATCHES))
        values = (self._target.name, self._query, owner, batch, n_answers)
        return connection.execute(statement, values).rowcount == 1

    def _insert(self, connection: Any, run: str, answers: pa.Table, batch: int) -> None:
        """Insert answers; one that has the id of another replaces it."""
        sql = optional_module("psycopg").sql
        names = [*_OWN_COLUMNS, *answers.column_names]
        identifiers = [sql.Identifier(name) for name in names]
        statement = sql.SQL("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT (_id) DO UPDATE SET {}").format(
            self._name(sql),
            sql.SQL(", ").join(identifiers),
            sql.SQL(", ").join([sql.Placeholder()] * len(names)),
            sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(name) for name in identifiers),
        )
        ids = answer_ids(self._query, run, batch, json_rows(answers))
        rows = answers.to_pylist()
        with connection.cursor() as cursor:
            cursor.executemany(
                statement,
                [
                    (id_, self._query, run, batch, *map(_value, row.values()))
                    for id_, row in zip(ids, rows, strict=True)
                ],
            )


class _PostgresWriter:
    """Connects for each micro-batch that has answers."""

    def __init__(self, target: PostgresTarget, owner: str) -> None:
        self._target, self._owner = target, owner

    def __call__(self, spark: SparkSession, answers: pa.Table, batch: int) -> int:
        if answers.num_rows:
            self._target.write(self._owner, answers, batch)
        return answers.num_rows


def _type(kind: pa.DataType) -> str:
    """The type of PostgreSQL for a column; structs and arrays are jsonb."""
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind):
        return "bigint"
    if pa.types.is_floating(kind):
        return "double precision"
    if pa.types.is_decimal(kind):
        return "numeric"
    if pa.types.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    if pa.types.is_date(kind):
        return "date"
    return "jsonb" if pa.types.is_nested(kind) else "text"


def _value(value: Any) -> Any:
    """A value as psycopg takes it."""
    value = _without_nul(value)
    return json_text(value) if isinstance(value, dict | list) else value


def _without_nul(value: Any) -> Any:
    """A value with U+FFFD for the character NUL, which PostgreSQL refuses in text and in jsonb."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, dict):
        return {name: _without_nul(inner) for name, inner in value.items()}
    return [_without_nul(inner) for inner in value] if isinstance(value, list) else value
