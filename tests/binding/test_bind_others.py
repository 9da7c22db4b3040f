"""Binding of SEQUENCE, RELATE and CONSTRAIN: operands, columns and clauses."""

from __future__ import annotations

import pytest
from tests.language.workbooks import bound, declared, wrong

from anabranch.binding.typed import Constant, Reference, walk
from anabranch.catalog import Catalog
from anabranch.language.types import Type
from anabranch.relate.query import COMPOSITE, SIMPLE
from anabranch.sequence.query import BoundDelay, GivenDelay

WORKBOOK = """
    CREATE STREAM reads KEY (id) VALUE (tag STRING, reader) TIME t;
    CREATE STREAM till KEY (id) VALUE (tag) TIME t TIMESTAMP;
    CREATE STREAM maybe KEY (id) VALUE (tag) TIME t MODEL INDEPENDENT;
    CREATE STREAM chain KEY (id) VALUE (tag) TIME t MODEL MARKOV;
    CREATE STREAM iv KEY (entity) TIME t MODEL INTERVALS ORDER seq;
    CREATE STREAM e KEY (id) VALUE (kind STRING, shape) TIME t SPACE (lon, lat) GEODESIC;
    CREATE RELATION hall (x);
"""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return declared(WORKBOOK)


# ---------------------------------------------------------------- SEQUENCE


def test_a_sequence_with_all_clauses(catalog: Catalog) -> None:
    sequence = bound(
        "SEQUENCE (X, !y, z) FROM reads WHERE x.tag['none'] = Z.TAG AND y.t - x.t < 2 HOURS "
        "MISS y 0.1, x 0.05 DELAY x UNIFORM(0, 10 HOURS), y EMPIRICAL 'd.csv' WITHIN 12 HOURS THRESHOLD 0.8",
        catalog,
    )
    x, y, z = sequence.components
    assert (x.label, x.name, x.negative, x.miss) == ("X", "x", False, 0.05)
    assert x.delay == BoundDelay("UNIFORM", (0.0, 36000.0))
    assert (y.negative, y.miss, y.delay) == (True, 0.1, BoundDelay("EMPIRICAL", (), "d.csv"))
    assert (z.miss, z.delay) == (0.0, None)
    assert (sequence.within, sequence.threshold) == (43200.0, 0.8)
    references = [node for node in walk(sequence.where) if isinstance(node, Reference)]
    assert Reference("x", "tag", Type.STRING, Constant("none", Type.STRING)) in references
    assert Reference("z", "tag", Type.STRING) in references


OCCURS = "(x, !y, w, z) FROM reads MISS y 0.1, w 0.2 SCORING POSTERIOR"
DELAYS = "DELAY y EXPONENTIAL(5), w EXPONENTIAL(6), z EXPONENTIAL(7)"


def test_a_sequence_with_occurs(catalog: Catalog) -> None:
    sequence = bound(
        f"SEQUENCE {OCCURS} OCCURS Y 0.9, w 1 {DELAYS}, Z WITHOUT (Y, w) GAMMA(2, 3), z WITH y EMPIRICAL 'f'", catalog
    )
    assert sequence.has_occurs
    x, y, w, z = sequence.components
    assert [component.occurs for component in (x, y, w, z)] == [None, 0.9, 1.0, None]
    assert z.given == (
        GivenDelay(False, frozenset({"y", "w"}), BoundDelay("GAMMA", (2.0, 3.0))),
        GivenDelay(True, frozenset({"y"}), BoundDelay("EMPIRICAL", (), "f")),
    )


@pytest.mark.parametrize(
    ("clauses", "code"),
    [
        (f"OCCURS y 1.5 {DELAYS}", "out-of-range"),
        (f"OCCURS v 0.5 {DELAYS}", "unknown-component"),
        (f"OCCURS y 0.5, y 0.6 {DELAYS}", "name-twice"),
        (f"OCCURS w 0.5 {DELAYS}", "no-occurs"),
        (f"OCCURS y 0.5, z 0.6 {DELAYS}", "last-component"),
        ("OCCURS y 0.5 DELAY y EXPONENTIAL(5), w EXPONENTIAL(6)", "no-delay"),
        (f"OCCURS y 0.5 {DELAYS}, z WITHOUT v EXPONENTIAL(5)", "unknown-component"),
        (f"OCCURS y 0.5 {DELAYS}, y WITHOUT z EXPONENTIAL(5)", "given-order"),
        (f"OCCURS y 0.5 {DELAYS}, z WITHOUT w EXPONENTIAL(5)", "no-occurs"),
        (f"OCCURS y 0.5 {DELAYS}, z WITH y EXPONENTIAL(5), z WITH y EXPONENTIAL(6)", "name-twice"),
        (f"{DELAYS}, z WITH y EXPONENTIAL(5)", "no-occurs"),
        (f"OCCURS y 0.5 {DELAYS}, z WITHOUT y POISSON(5)", "unknown-law"),
    ],
)
def test_invalid_occurs(clauses: str, code: str, catalog: Catalog) -> None:
    assert wrong(f"SEQUENCE {OCCURS} {clauses}", catalog) == [code]


def test_occurs_needs_a_posterior_and_a_last_event(catalog: Catalog) -> None:
    query = f"SEQUENCE (x, y, z) FROM reads MISS y 0.1 OCCURS y 0.5 {DELAYS.replace('w EXPONENTIAL(6), ', '')} WITHIN 9"
    assert wrong(query, catalog) == ["occurs-scoring"]
    assert wrong(f"{query} SCORING POSTERIOR ENDING OPEN", catalog) == ["occurs-open"]


def test_from_has_one_stream_for_all_names_or_one_for_each(catalog: Catalog) -> None:
    sequence = bound("SEQUENCE (x, y, reads) FROM till AS x, till AS y, reads", catalog)
    assert [component.stream.name for component in sequence.components] == ["till", "till", "reads"]
    assert sequence.streams == (catalog.stream("till"), catalog.stream("reads"))


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("(x, z) FROM chain", "wrong-model"),
        ("(x, z) FROM maybe WITHIN 5 EMIT EXPIRED", "uncertain-expired"),
        ("(x, z) FROM red", "unknown-stream"),
        ("(x, z) FROM hall", "not-a-stream"),
        ("(x, x) FROM reads", "name-twice"),
        ("(x, t_start) FROM reads", "answer-column"),
        ("(x, z) FROM reads AS x", "no-stream"),
        ("(x, z) FROM reads AS x, reads AS z, till AS w", "unknown-name"),
        ("(x, z) FROM reads AS x, reads AS z, till AS x", "name-twice"),
        ("(x, z) FROM reads WHERE x.rader = 'a'", "unknown-column"),
        ("(x, z) FROM reads WHERE w.reader = 'a'", "unknown-name"),
        ("(x, z) FROM reads WHERE reader = 'a'", "unknown-name"),
        ("(x, z) FROM reads WHERE x = 'a'", "not-a-value"),
        ("(x, z) FROM reads WHERE x.tag[5] = 'a'", "type-mismatch"),
        ("(x, z) FROM reads WHERE x.tag[y.tag] = 'a'", "unknown-name"),
        ("(x, z) FROM reads WHERE x.tag[x.id] = 'a'", "default-of"),
        ("(x, y, z) FROM reads WHERE x.tag[y.tag[x.id]] = 'a'", "default-of"),
        ("(x, !y, z) FROM reads WHERE x.tag[y.tag] = 'a'", "default-of"),
        ("(x, z) FROM reads WHERE SPAN(x, z) < 5", "unknown-function"),
        ("(x, !z) FROM reads", "last-component"),
        ("(x, z) FROM reads MISS z 0.1", "last-component"),
        ("(x, y, z) FROM reads MISS y 0.1", "no-delay"),
        ("(x, !y, z) FROM reads MISS y 0.1", "no-delay"),
        ("(x, z) FROM reads MISS x 0.1 DELAY x EXPONENTIAL(5)", "no-window"),
        ("(!x, z) FROM reads", "no-window"),
        ("(x, z) FROM reads EMIT BEST, NEXT", "emit-both"),
        ("(!x, !z) FROM reads WITHIN 5 ENDING OPEN", "no-positive"),
        ("(x, z) FROM reads WITHIN 0", "out-of-range"),
        ("(x, z) FROM reads WITHIN -5 HOURS", "out-of-range"),
        ("(x, y, z) FROM reads MISS y 1.1 DELAY y EXPONENTIAL(5)", "out-of-range"),
        ("(x, z) FROM reads MISS w 0", "unknown-component"),
        ("(x, z) FROM reads MISS x 0, x 0", "name-twice"),
        ("(x, z) FROM reads DELAY w EXPONENTIAL(5)", "unknown-component"),
        ("(x, z) FROM reads DELAY x EXPONENTIAL(5), x EXPONENTIAL(6)", "name-twice"),
        ("(x, z) FROM reads DELAY x POISSON(5)", "unknown-law"),
        ("(x, z) FROM reads DELAY x EXPONENTIAL(5, 6)", "arity"),
        ("(x, z) FROM reads DELAY x EXPONENTIAL 'file'", "arity"),
        ("(x, z) FROM reads DELAY x EMPIRICAL(5)", "arity"),
        ("(x, z) FROM reads DELAY x EXPONENTIAL(0)", "out-of-range"),
        ("(x, z) FROM reads DELAY x UNIFORM(5, 5)", "out-of-range"),
        ("(x, z) FROM reads DELAY x UNIFORM(-5, 5)", "out-of-range"),
        ("(x, z) FROM reads DELAY x GAMMA(2, -3)", "out-of-range"),
        ("(x, z) FROM reads DELAY x LOGNORMAL(1, 2 HOURS)", "not-a-duration"),
    ],
)
def test_invalid_sequences(query: str, code: str, catalog: Catalog) -> None:
    assert wrong(f"SEQUENCE {query}", catalog) == [code]


def test_a_first_component_that_cannot_be_missing_needs_no_window(catalog: Catalog) -> None:
    assert wrong("SEQUENCE (x, y, z) FROM reads MISS x 0, y 0.5 DELAY y NORMAL(-1, 2)", catalog) == []


# ---------------------------------------------------------------- RELATE


def test_a_relate_with_all_clauses(catalog: Catalog) -> None:
    relate = bound(
        "RELATE AT LEAST 2 A (MET BY OR MEETS OR MEETS) ALL b FROM iv AS a, iv AS b "
        "WHERE a.entity < b.entity TIMEOUT 5 MINUTES THRESHOLD 0.5",
        catalog,
    )
    assert (relate.first.label, relate.first.name, relate.first.at_least) == ("A", "a", 2)
    assert relate.second.at_least is None
    assert relate.relations == ("MEETS", "MET BY")
    assert (relate.timeout, relate.threshold) == (300.0, 0.5)


def test_quantifiers_with_a_limit(catalog: Catalog) -> None:
    relate = bound("RELATE AT MOST 0 a MEETS EXACTLY 2 b FROM iv COUNT", catalog)
    assert [(operand.at_least, operand.at_most) for operand in relate.operands] == [(0, 0), (2, 2)]
    assert relate.count


@pytest.mark.parametrize("composite", COMPOSITE)
def test_composite_relations_agree_with_the_ends_of_intervals(composite: str, catalog: Catalog) -> None:
    """The relation equals its definition on every pair of intervals with small ends."""
    holds = {
        "INTERSECTS": lambda a, b: a[0] <= b[1] and b[0] <= a[1],
        "STARTS BEFORE": lambda a, b: a[0] < b[0],
        "STARTS AFTER": lambda a, b: a[0] > b[0],
        "ENDS BEFORE": lambda a, b: a[1] < b[1],
        "ENDS AFTER": lambda a, b: a[1] > b[1],
    }[composite]
    relations = bound(f"RELATE SOME a {composite} SOME b FROM iv", catalog).relations
    intervals = [(low, high) for low in range(5) for high in range(low + 1, 5)]
    for a in intervals:
        for b in intervals:
            assert (simple(a, b) in relations) == holds(a, b)


def simple(a: tuple[int, int], b: tuple[int, int]) -> str:
    """The one of the 13 relations that holds, by comparison of the four ends."""
    if a[1] <= b[0]:
        return "PRECEDES" if a[1] < b[0] else "MEETS"
    if b[1] <= a[0]:
        return "PRECEDED BY" if b[1] < a[0] else "MET BY"
    start, end = (a[0] > b[0]) - (a[0] < b[0]), (a[1] > b[1]) - (a[1] < b[1])
    return {
        (0, 0): "EQUALS", (0, -1): "STARTS", (0, 1): "STARTED BY", (1, 0): "FINISHES", (-1, 0): "FINISHED BY",
        (1, -1): "DURING", (-1, 1): "CONTAINS", (-1, -1): "OVERLAPS", (1, 1): "OVERLAPPED BY",
    }[start, end]  # fmt: skip


def test_there_are_thirteen_simple_relations() -> None:
    assert len(set(SIMPLE)) == 13


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("ALL a MEETS ALL b FROM reads", "wrong-model"),
        ("ALL a MEETS ALL a FROM iv", "name-twice"),
        ("ALL a MEETS ALL b FROM iv AS a", "no-stream"),
        ("AT LEAST 0 a MEETS ALL b FROM iv", "out-of-range"),
        ("ALL a MEETS ALL b FROM iv TIMEOUT 0", "out-of-range"),
        ("ALL a MEETS ALL b FROM iv WHERE a.sector = 1", "unknown-column"),
        ("ALL a MEETS ALL status FROM iv", "answer-column"),
        ("ALL a MEETS ALL distribution FROM iv", "answer-column"),
        ("ALL a MEETS ALL b FROM iv WHERE a.seq = 1", "not-a-key"),
        ("ALL a MEETS ALL b FROM iv COUNT PER KEYS", "count-per"),
    ],
)
def test_invalid_relates(query: str, code: str, catalog: Catalog) -> None:
    assert wrong(f"RELATE {query}", catalog) == [code]


# ---------------------------------------------------------------- CONSTRAIN


def test_a_constrain_with_all_clauses(catalog: Catalog) -> None:
    constrain = bound(
        "CONSTRAIN v, w FROM e AS v, reads AS w WHERE v.kind = 'A' AND w.t - v.t IN [0, 5] AND SPAN(v, w) < 3 DAYS "
        "AND WITHIN(v, 'POLYGON((0 0, 1 0, 1 1, 0 0))') AND INTERSECTS(v.shape, v) AND hall(w.tag)",
        catalog,
    )
    assert [variable.stream.name for variable in constrain.variables] == ["e", "reads"]
    assert len(constrain.conditions) == 7
    assert {condition.type for condition in constrain.conditions} == {Type.BOOLEAN}


def mentions(condition: str, catalog: Catalog) -> list[list[tuple[str | None, int]]]:
    conditions = bound(f"CONSTRAIN v*5, w FROM e WHERE {condition}", catalog).conditions
    return [
        sorted({(node.owner, node.mention) for node in walk(tree) if isinstance(node, Reference)})
        for tree in conditions
    ]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("v.kind = 'A'", [[("v", 1)]]),
        ("v.kind IN ('A', 'B', 'C')", [[("v", 1)]]),
        ("DISTANCE(v, v) < 5", [[("v", 1), ("v", 2)]]),
        ("v.t - v.t IN [0, 5]", [[("v", 1), ("v", 2)], [("v", 1), ("v", 2)]]),
        ("v.id <> v.id AND v.kind = 'A'", [[("v", 1), ("v", 2)], [("v", 1)]]),
        ("DISTANCE(v, w) < 5 AND w.t - w.t < w.t", [[("v", 1), ("w", 1)], [("w", 1)]]),
    ],
)
def test_a_counted_variable_is_each_event_or_every_pair(
    condition: str, expected: list[list[tuple[str, int]]], catalog: Catalog
) -> None:
    assert mentions(condition, catalog) == expected


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("v FROM iv", "wrong-model"),
        ("v*0 FROM e", "out-of-range"),
        ("v*257 FROM e", "out-of-range"),
        ("v*3 FROM e WHERE v.t + v.t < v.t", "counted-thrice"),
        ("v, w FROM reads AS v, e AS w WHERE DISTANCE(v, w) < 5", "no-space"),
        ("v FROM e WHERE DISTANCE(v) < 5", "arity"),
        ("v FROM e WHERE SPAN(v, 5) < 5", "type-mismatch"),
        ("v FROM e WHERE WITHIN(v, 5)", "type-mismatch"),
        ("v FROM e WHERE WITHIN(w, 'POINT(0 0)')", "unknown-name"),
        ("v FROM e WHERE DISTANCE(v, v)", "not-a-condition"),
        ("t FROM e", "answer-column"),
    ],
)
def test_invalid_constrains(query: str, code: str, catalog: Catalog) -> None:
    assert wrong(f"CONSTRAIN {query}", catalog) == [code]
