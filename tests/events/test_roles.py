"""Roles of rows by coded columns, compared with each condition evaluated for all rows."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.local import bound_query

from anabranch.constrain.analysis import analyse
from anabranch.constrain.functions import holds_of_events
from anabranch.events.roles import roles_of

STREAM = """
    CREATE STREAM e
      KEY (id STRING) VALUE (kind STRING, temp DOUBLE, n INTEGER, good BOOLEAN) TIME t INTEGER SPACE (x, y);
    CREATE RELATION known (kind STRING);
"""

CONDITIONS = (
    "{v}.temp > 1",
    "{v}.temp <= 1.5 OR {v}.temp = 3",
    "NOT ({v}.temp < 2)",
    "{v}.temp <> 1",
    "{v}.temp IN (1, 2.5)",
    "{v}.temp IS NULL",
    "{v}.temp * 2 > 3",
    "{v}.n >= 2",
    "{v}.n BETWEEN 1 AND 2",
    "{v}.n < 9007199254740993",
    "{v}.n = 9007199254740992",
    "{v}.kind = 'A'",
    "{v}.kind > 'A' OR {v}.kind IS NULL",
    "known({v}.kind)",
    "{v}.good",
    "NOT {v}.good",
    "{v}.temp > {v}.n",
    "{v}.t < 3",
    "WITHIN({v}, 'POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))')",
    "1 = 1",
)

LARGE = [1, 2, 3, None, 2**53 + 1, 2**53]
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.just("k"),
            "kind": st.sampled_from(["A", "B", "C", None]),
            "temp": st.sampled_from([1.0, 1.5, 2.0, 3.0, None, math.nan, -math.inf, math.inf]),
            "n": st.sampled_from(LARGE[:4]) | st.sampled_from(LARGE),
            "good": st.sampled_from([True, False, None]),
            "t": st.integers(0, 5),
            "x": st.sampled_from([0.0, 1.0, 3.0, None]),
            "y": st.sampled_from([0.0, 2.0]),
        }
    ),
    min_size=1,
    max_size=12,
)
TYPES = {
    "id": pa.string(), "kind": pa.string(), "temp": pa.float64(), "n": pa.int64(), "good": pa.bool_(), "t": pa.int64(),
    "x": pa.float64(), "y": pa.float64(),
}  # fmt: skip


@given(ROWS, st.lists(st.lists(st.sampled_from(CONDITIONS), max_size=3), min_size=1, max_size=70))
def test_each_row_can_be_the_variables_whose_conditions_it_satisfies(
    rows: list[dict], templates: list[list[str]]
) -> None:
    names = [f"v{number}" for number in range(len(templates))]
    written = [template.format(v=name) for name, of_one in zip(names, templates, strict=True) for template in of_one]
    where = " WHERE " + " AND ".join(f"({condition})" for condition in written) if written else ""
    query = bound_query(f"{STREAM} CREATE QUERY q AS CONSTRAIN {', '.join(names)} FROM e{where};", "q")
    conditions = list(enumerate(analyse(query).unary))
    columns = {name: pa.array([row[name] for row in rows], kind) for name, kind in TYPES.items()}
    relations = {"known": pa.table({"kind": ["A", "C"]})}

    def evaluate(condition, values, n):
        return holds_of_events(condition, values, {"": query.streams[0]}, relations, n)

    first, variables = roles_of(columns, conditions, evaluate)
    can_be = np.zeros((len(rows), len(conditions)), np.bool_)
    can_be[np.repeat(np.arange(len(rows)), np.diff(first)), variables] = True
    for number, condition in conditions:
        truth = evaluate(condition, columns, len(rows))
        assert can_be[:, number].tolist() == truth.tolist()
    assert all((np.diff(variables[start:end]) > 0).all() for start, end in zip(first[:-1], first[1:], strict=True))
