"""The columns of answers that are known without data are those that a run gives."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.local import bound_query, in_context, local_job

from anabranch.binding.answers import result_columns
from anabranch.columns.conditions import ARROW_TYPES
from anabranch.transport.finishing import finish_table
from anabranch.transport.per import partial_rows, result_rows

STREAMS = """
CREATE STREAM at KEY (person STRING) VALUE (place STRING) TIME t INTEGER MODEL MARKOV;
CREATE STREAM level KEY (tank INTEGER) VALUE (place STRING, full DOUBLE) TIME t DOUBLE MODEL INDEPENDENT;
CREATE STREAM reads KEY (tag STRING) VALUE (reader STRING) TIME at TIMESTAMP;
CREATE STREAM jams KEY (sector STRING, lane INTEGER) TIME t DOUBLE MODEL INTERVALS ORDER seq;
CREATE STREAM cars KEY (car STRING) VALUE (x DOUBLE) TIME t INTEGER MODEL PREDICTED ERROR 5 PERIOD 9;
CREATE STREAM spots KEY (buoy STRING) VALUE (kind STRING) TIME t TIMESTAMP SPACE (lon, lat) ERROR 5;
"""
SEQUENCE = "SEQUENCE (x, !y, z) FROM reads WHERE x.reader = 'a' AND y.reader = 'b' AND z.reader = 'c' AND x.tag = z.tag"
NEAR = "MONITOR a, b FROM cars AS a, cars AS b WHERE ABS(a.x - b.x) < 3 AND a.car < b.car"
PAIR = "CONSTRAIN u, v FROM spots WHERE DISTANCE(u, v) < 20 AND v.t - u.t IN [0, 5]"

QUERIES = [
    "PATTERN at(x, 'hall') THEN at(x, y) GROUP BY x",
    "PATTERN at(x, 'hall') THEN at(x, y) GROUP BY x, y EMIT EARLY",
    "PATTERN level(x, 'a', v) GROUP BY x, v",
    "PATTERN at(x, 'hall') THEN at(x, 'coffee') GROUP BY x PER 5",
    "PATTERN at(x, 'hall') THEN at(x, 'coffee') GROUP BY x PER EPISODE",
    "PATTERN at(x, 'hall') THEN at(x, 'coffee') GROUP BY x PER KEYS",
    f"{SEQUENCE} MISS x 0.1 DELAY x UNIFORM(0, 5) WITHIN 9",
    f"{SEQUENCE} EMIT EARLY",
    f"{SEQUENCE} PER 5",
    "SEQUENCE (x, y+, z) FROM reads WHERE x.reader = 'a' AND y.reader = 'b' AND z.reader = 'c' AND x.tag = z.tag",
    "SEQUENCE (x, z) FROM level WHERE x.place = 'a' AND z.place = 'b'",
    "RELATE SOME a INTERSECTS SOME b FROM jams AS a, jams AS b COMPLEMENT COUNT",
    "RELATE SOME a INTERSECTS SOME b FROM jams AS a, jams AS b PER KEYS",
    NEAR,
    f"{NEAR} PER EPISODE",
    f"{NEAR} PER KEYS",
    f"{PAIR} SEMANTICS MAY",
    f"{PAIR} SEMANTICS EXPECTED",
    "CONSTRAIN u, AT LEAST 2 v FROM spots WHERE u.kind = 'A' AND v.kind = 'B' AND v.t - u.t IN [0, 5] SEMANTICS MAY",
    f"{PAIR} SEMANTICS MAY PER 5 AT LEAST 2 TIMES",
]


@pytest.mark.parametrize("query", QUERIES)
def test_the_columns_are_those_of_a_run(query: str) -> None:
    """Of a run for a stream of answers, where operands of RELATE have their ends."""
    workbook = f"{STREAMS} CREATE QUERY q AS {query};"
    known = {column.name: column.type for column in result_columns(bound_query(workbook, "q")).all}
    expected = dict(_plain_columns(_result_schema(in_context(local_job(workbook, "q"), ends=True))))
    assert {name: ARROW_TYPES[kind] for name, kind in known.items()} == expected


def _result_schema(job: Any) -> pa.Schema:
    """The schema of the result of a run over an archive."""
    rules = job.finishing()
    if rules.pairing is not None:
        schema = rules.pairing.schema
        if rules.columns is None:
            return schema
        types = [pa.int64() if column.source is None else schema.field(column.source).type for column in rules.columns]
        return pa.schema([pa.field(column.name, kind) for column, kind in zip(rules.columns, types, strict=True)])
    answers = finish_table(rules.of_answers(), job.answer_schema.empty_table())
    return answers.schema if rules.per is None else result_rows(rules.per, partial_rows(rules.per, answers)).schema


def _plain_columns(schema: pa.Schema) -> Any:
    """The columns with plain values; the fields of a struct with the name of the struct."""
    for field in schema:
        if pa.types.is_struct(field.type):
            yield from ((f"{field.name}.{part.name}", part.type) for part in field.type if _is_plain(part.type))
        elif _is_plain(field.type):
            yield field.name, field.type


def _is_plain(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind)
