"""Queries over the answers of live queries: the answers of every split into micro-batches are those of an archive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.composed.chained import Link, Rows
from tests.drawn import examples
from tests.local import declared, local_job, prepared_query, to_table
from tests.splits import splits

from anabranch.binding.binder import bind
from anabranch.catalog import Model
from anabranch.language import nodes
from anabranch.planning.in_process import answers_in_process
from anabranch.planning.prepared import prepare

STREAMS = """
CREATE STREAM r KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE STREAM s KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE STREAM c KEY (k STRING) VALUE (v STRING) TIME t INTEGER;
CREATE STREAM cars KEY (k STRING) VALUE (x DOUBLE) TIME t INTEGER MODEL PREDICTED ERROR 2 PERIOD 2;
CREATE STREAM first {declared} FROM QUERY one;
CREATE QUERY one AS {one};
CREATE STREAM second {other} FROM QUERY two;
CREATE QUERY two AS {two};
"""
PAIR = "KEY (u.k, w.k)"
#: Queries that are read, and the clauses of the stream of their answers.
READ = [
    ("PATTERN r(x, 'a') THEN r(x, 'b') GROUP BY x", "KEY (x)"),
    ("PATTERN r(x, 'a') GROUP BY x THRESHOLD 0.3", "KEY (x)"),
    ("PATTERN r(x, 'a') GROUP BY x PER 2", "KEY (x) MODEL CERTAIN"),
    ("SEQUENCE (u, w) FROM r AS u, s AS w WHERE u.k = w.k WITHIN 2", PAIR),
    ("SEQUENCE (u, w) FROM r AS u, s AS w WHERE u.v = 'a' WITHIN 2 ENDING OPEN", "KEY (u.k)"),
    ("CONSTRAIN u, w FROM r AS u, s AS w WHERE u.k = w.k AND w.t - u.t IN [0, 1]", PAIR),
    ("CONSTRAIN u, w FROM r AS u, s AS w WHERE w.t - u.t IN [0, 2] AND u.v = 'a'", "KEY (u.k)"),
    ("CONSTRAIN u, NOT w FROM r AS u, s AS w WHERE w.t - u.t IN [0, 2] AND u.k = w.k", "KEY (u.k)"),
    ("MONITOR u, w FROM cars AS u, cars AS w WHERE ABS(u.x - w.x) <= 3 AND u.k < w.k SEMANTICS MAY", PAIR),
]
#: Queries over one of these streams, alone or with another one; {k} stands for their keys.
READERS = [
    "PATTERN first({k}) GROUP BY {k}",
    "SEQUENCE (f, g) FROM first AS f, first AS g WHERE f.{c} = g.{c} WITHIN 3",
    "CONSTRAIN f, g FROM first AS f, r AS g WHERE g.t - f.{t} IN [-1, 2]",
    "CONSTRAIN f, g FROM first AS f, second AS g WHERE g.{u} - f.{t} IN [-2, 2]",
    "SEQUENCE (f, !g) FROM first AS f, c AS g WHERE g.v = 'a' WITHIN 2 ENDING OPEN",
]


def batch(workbook: str, name: str, rows: Rows) -> list[dict[str, Any]]:
    """The answers over an archive, after those of the queries that are read: of each event, the most probable."""
    job = local_job(workbook, name)
    by_name: dict[str, Sequence[Any]] = {}
    for stream in prepared_query(workbook, name).bound.streams:
        source = stream.source
        read = batch(workbook, source.name, rows) if isinstance(source, nodes.QuerySource) else None
        if read is not None:
            read = [plain(row) for row in read]
            event = [column.name for column in (*stream.keys, stream.time)]
            ordered = sorted(read, key=lambda row: (-row["probability"], str(row)))
            best = {tuple(row[name] for name in event): row for row in reversed(ordered)}
            read = list(best.values()) if stream.model is Model.INDEPENDENT else read
        by_name[stream.name.lower()] = rows.get(stream.name, ()) if read is None else read
    tables = [to_table(job, index, by_name[layout.name.lower()]) for index, layout in enumerate(job.layouts)]
    return answers_in_process(job, tables)[0].to_pylist()


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """The fields of structs as columns."""
    fields = {f"{name}.{field}": part for name, value in row.items() if isinstance(value, dict)
              for field, part in value.items()}  # fmt: skip
    return row | fields


def comparable(rows: Sequence[dict[str, Any]]) -> list[str]:
    return sorted(str(rounded({name: value for name, value in row.items() if name != "status"})) for row in rows)


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return round(value, 9) + 0.0 if isinstance(value, float) else value


def streams_of(workbook: str, name: str) -> str:
    """Whether a query can stream, with all queries that it reads."""
    catalog = declared(workbook)
    query = catalog.query(name)
    return prepare(query, bind(query, catalog), catalog).plan.streams


@st.composite
def all_rows(draw: st.DrawFn) -> Rows:
    """Rows of all streams at up to four instants, so many that most queries have answers."""
    events = st.sets(st.tuples(st.sampled_from("jk"), st.integers(1, 4)), min_size=3, max_size=6)
    places = st.sets(st.tuples(st.sampled_from("jkl"), st.integers(1, 4)), min_size=2, max_size=6)
    calls = st.sets(st.tuples(st.sampled_from("ab"), st.integers(1, 5)), max_size=2)
    at = st.sampled_from([0.0, 2.0, 3.5, 9.0])
    rows: dict[str, list[dict[str, Any]]] = {
        name: [
            {"k": k, "v": v, "t": t, "p": draw(st.sampled_from([0.25, 0.3, 0.5]))}
            for k, t in sorted(draw(events))
            for v in draw(st.sampled_from(["a", "b", "ab"]))
        ]
        for name in ("r", "s")
    }
    rows["cars"] = [{"k": k, "t": t, "x": draw(at), "x_rate": draw(at) / 2} for k, t in sorted(draw(places))]
    rows["c"] = [{"k": "j", "v": v, "t": t} for v, t in sorted(draw(calls))]
    return rows


def time_of(query: str) -> str:
    """The time of the answers of a query that is read."""
    if query.startswith("MONITOR"):
        return "valid_from"
    return "t_to" if " PER " in query else "t"


@st.composite
def workbooks(draw: st.DrawFn) -> str:
    (one, clauses), (two, other) = draw(st.sampled_from(READ)), draw(st.sampled_from(READ))
    keys = [name.strip() for name in clauses[clauses.index("(") + 1 : clauses.index(")")].split(",")]
    variables = ", ".join(f"x{number}" for number in range(len(keys)))
    times = {"t": time_of(one), "u": time_of(two)}
    outer = draw(st.sampled_from(READERS)).format(k=variables, c=f"`{keys[0]}`", **times)
    return STREAMS.format(one=one, declared=clauses, two=two, other=other) + f"CREATE QUERY q AS {outer};"


def assert_same_in_split(workbook: str, name: str, rows: Rows, batches: Sequence[Rows], waits: Any) -> None:
    link = Link(workbook, name)
    for part in batches:
        link.step(part, False, [waits() for _ in range(4)])
    # The last one reads what is left of all.
    link.step({}, True, [False] * 4)
    final = [row for row in link.answers if row.get("status", "final") in ("final", "validated", "matched", "expired")]
    assert comparable(final) == comparable(batch(workbook, name, rows))
    assert link.run.counts.late == 0


@examples(200, least=40)
@given(workbooks(), all_rows(), st.data())
def test_answers_of_a_chain_are_those_of_an_archive(workbook: str, rows: Rows, data: st.DataObject) -> None:
    if streams_of(workbook, "q") != "yes":
        return
    batches = data.draw(splits({name: list(part) for name, part in rows.items()}))
    assert_same_in_split(workbook, "q", rows, batches, lambda: data.draw(st.booleans()))


THREE = (
    STREAMS.format(one=READ[0][0], declared="", two=READ[5][0], other=PAIR)
    + """
CREATE QUERY middle AS CONSTRAIN f, g FROM first AS f, second AS g WHERE g.t - f.t IN [-2, 2];
CREATE STREAM third KEY (f.x) VALUE (upper) MODEL CERTAIN FROM QUERY middle;
CREATE QUERY q AS SEQUENCE (h, i) FROM third AS h, first AS i WHERE h.`f.x` = i.x WITHIN 3;
"""
)


@examples(60, least=10)
@given(all_rows(), st.data())
def test_answers_of_three_levels_are_those_of_an_archive(rows: Rows, data: st.DataObject) -> None:
    batches = data.draw(splits({name: list(part) for name, part in rows.items()}))
    assert_same_in_split(THREE, "q", rows, batches, lambda: data.draw(st.booleans()))


def test_a_reader_does_not_wait_where_there_are_no_answers() -> None:
    """No car is near another: the promise of the query that is read lets the other streams go on."""
    one, clauses = READ[8]
    workbook = STREAMS.format(one=one, declared=f"{clauses} MODEL CERTAIN", two=READ[0][0], other="")
    workbook += "CREATE QUERY q AS SEQUENCE (g, !f) FROM r AS g, first AS f WHERE g.t > 0 WITHIN 2 ENDING OPEN;"
    link = Link(workbook, "q")
    for t in range(1, 20):
        rows = {"cars": [{"k": "j", "t": t, "x": 0.0, "x_rate": 0.0}], "r": [{"k": "j", "v": "a", "t": t, "p": 0.5}]}
        link.step(rows, False, [False] * 3)
    # The period of a prediction is 2, and so is the window.
    assert max(row["t"] for row in link.answers) >= 15


ONE_GOAL = "PATTERN first(x) GROUP BY x"


@pytest.mark.parametrize(
    ("one", "clauses", "outer", "reason"),
    [
        (READ[3][0], "KEY (u.k) TIME t_start", ONE_GOAL, "'t_start' is not the time by which one is complete"),
        (f"{READ[0][0]} PER KEYS", "KEY (x) MODEL CERTAIN", ONE_GOAL, "the rows of PER KEYS in one are known late"),
        (READ[0][0], "", "PATTERN first(x) THEN r(x, 'b') GROUP BY x", "bounds of a PATTERN need all its rows"),
        (READ[3][0].replace("WITHIN 2", ""), "KEY (u.k)", ONE_GOAL, "one cannot stream: without WITHIN"),
    ],
)
def test_what_cannot_stream_is_refused_in_one_line(one: str, clauses: str, outer: str, reason: str) -> None:
    workbook = STREAMS.format(one=one, declared=clauses, two=READ[0][0], other="") + f"CREATE QUERY q AS {outer};"
    streams = streams_of(workbook, "q")
    assert reason in streams
    assert "\n" not in streams
