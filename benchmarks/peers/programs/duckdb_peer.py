"""DuckDB: SQL over a view of the file."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
from protocol import answer


def make(request: dict) -> Callable[[], list[float]]:
    """Return a function that runs the SQL of a request."""
    connection = duckdb.connect()
    connection.execute(f"SET threads = {request['cores']}")
    reader = "read_csv" if request["path"].endswith(".csv") else "read_parquet"
    connection.execute(f"CREATE VIEW events AS SELECT * FROM {reader}('{request['path']}')")
    return lambda: list(connection.execute(request["sql"]).fetchone())


answer(make)
