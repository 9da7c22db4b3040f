"""Layouts of streams that are not declared: from the names, types and order of their columns."""

from __future__ import annotations

import pytest

from anabranch.binding.undeclared_streams import declaration_of
from anabranch.errors import AnabranchError
from anabranch.language import nodes
from anabranch.language.parser import parse
from anabranch.language.types import Type

PATTERN = "PATTERN s(x, y)[hall(y)]"
SEQUENCE = "SEQUENCE (a, b) FROM s"
CONSTRAIN = "CONSTRAIN a, b FROM s"
RELATE = "RELATE SOME a MEETS SOME b FROM s AS a, s AS b"
MONITOR = "MONITOR a, b FROM s AS a, s AS b"


def entry(query: str, columns: str, name: str = "S") -> str:
    """The declaration for columns such as `k t=INTEGER`; a column without a type is a STRING."""
    typed = (column.partition("=") for column in columns.split())
    types = {column: Type[kind] if kind else Type.STRING for column, _, kind in typed}
    (statement,) = parse(query, bare=True).statements
    assert isinstance(statement, nodes.CreateQuery)
    return declaration_of(name, types, statement.body)


@pytest.mark.parametrize(
    ("query", "columns", "declaration"),
    [
        (PATTERN, "t k v", "KEY (k) VALUE (v) TIME t"),
        (PATTERN, "k T", "KEY (k) TIME T"),
        (PATTERN, "person P place T", "KEY (person) VALUE (place) TIME T MODEL INDEPENDENT"),
        (PATTERN, "k v seen=TIMESTAMP", "KEY (k) VALUE (v) TIME seen"),
        (PATTERN, "k v day=DATE p=DOUBLE", "KEY (k) VALUE (v) TIME day MODEL INDEPENDENT"),
        (PATTERN, "prev_w v k Prev_V w m t p", "KEY (k, m) VALUE (v, w) TIME t MODEL MARKOV"),
        (SEQUENCE, "tag reader cost p t", "KEY (tag) VALUE (reader, cost, p) TIME t"),
        (CONSTRAIN, "id X kind y t", "KEY (id) VALUE (kind) TIME t SPACE (X, y)"),
        (CONSTRAIN, "id lat lon t", "KEY (id) TIME t SPACE (lon, lat) GEODESIC"),
        (CONSTRAIN, "id x t", "KEY (id) VALUE (x) TIME t"),
        (RELATE, "a b seq t", "KEY (a, b) TIME t MODEL INTERVALS ORDER seq"),
    ],
)  # fmt: skip
def test_layouts_follow_from_columns(query: str, columns: str, declaration: str) -> None:
    assert entry(query, columns) == f"CREATE STREAM S {declaration}"


def test_a_name_that_is_no_stream_of_the_query_is_a_relation() -> None:
    assert entry(PATTERN, "a b", name="hall") == "CREATE RELATION hall (a, b)"


@pytest.mark.parametrize(
    ("query", "columns", "reason", "example"),
    [
        (PATTERN, "k v", "it has no column t, and not exactly one TIMESTAMP or DATE", "KEY (k) VALUE (v) TIME t"),
        (PATTERN, "k a=DATE b=DATE", "it has no column t, and not", "KEY (k) VALUE (a, b) TIME t"),
        (PATTERN, "a b c t", "any of a, b, c can be a key or a value", "KEY (a) VALUE (b, c) TIME t"),
        (PATTERN, "t p", "no column is left for its key", "KEY (id) TIME t MODEL INDEPENDENT"),
        (RELATE, "k t", "it has no column seq with the positions", "KEY (k) TIME t MODEL INTERVALS ORDER seq"),
        (MONITOR, "car x x_rate x_accel y y_rate t", "no column has the ERROR and the PERIOD of its predictions",
         "KEY (car) VALUE (x, y) TIME t MODEL PREDICTED ERROR 10 PERIOD 60"),
    ],
)  # fmt: skip
def test_a_layout_that_is_not_clear_is_one_line_with_an_example(
    query: str, columns: str, reason: str, example: str
) -> None:
    with pytest.raises(AnabranchError) as refused:
        entry(query, columns)
    (line,) = str(refused.value).splitlines()
    assert line.startswith(f"the layout of S is not clear from its columns: {reason}")
    assert line.endswith(f"; declare it first, such as CREATE STREAM S {example};")
