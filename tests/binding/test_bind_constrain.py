"""CONSTRAIN with events that have a duration, geometries, and functions whose arguments must be compatible."""

from __future__ import annotations

import pytest
from tests.language.workbooks import bound, codes, declaration, declared, findings, wrong

from anabranch.binding.typed import Operation, Reference, Typed, walk
from anabranch.catalog import Catalog, Column, Stream
from anabranch.constrain.query import BoundConstrain
from anabranch.errors import WorkbookError
from anabranch.language import nodes
from anabranch.language.parser import parse
from anabranch.language.types import Type
from anabranch.language.unparse import unparse

WORKBOOK = """
    CREATE STREAM e KEY (id) VALUE (kind STRING, temp DOUBLE, shape) TIME t TIMESTAMP SPACE (x, y);
    CREATE STREAM globe KEY (id) VALUE (shape STRING) TIME t SPACE (lon, lat) GEODESIC;
    CREATE STREAM ticks KEY (id) TIME t INTEGER SPACE (x, y);
    CREATE STREAM nowhere KEY (id) TIME t DOUBLE;
    CREATE STREAM stays KEY (id) VALUE (kind STRING) TIME (Since, Until) TIMESTAMP SPACE (Area);
    CREATE STREAM odd KEY (id) VALUE (t_from) TIME (t, t_to);
"""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return declared(WORKBOOK)


def stream(clauses: str) -> Stream:
    entry = declared(f"CREATE STREAM s {clauses}").stream("s")
    assert entry is not None
    return entry


def only(query: str, catalog: Catalog) -> Typed:
    """The one condition of a query."""
    (condition,) = bound(f"CONSTRAIN {query}", catalog).conditions
    return condition


def named(condition: Typed) -> list[tuple[str | None, str, Type]]:
    """The references of a condition, in order."""
    return [(node.owner, node.name, node.type) for node in walk(condition) if isinstance(node, Reference)]


# ---------------------------------------------------------------- events with a duration


def test_time_may_have_a_start_and_an_end() -> None:
    stays = stream("KEY (k) VALUE (v) TIME (a, b)")
    assert (stays.start, stays.time) == (Column("a"), Column("b"))
    assert stays.has_duration
    assert [column.name for column in stays.columns] == ["k", "v", "a", "b"]
    typed = stays.with_types({"a": Type.INTEGER, "b": Type.INTEGER})
    assert (typed.start, typed.time) == (Column("a", Type.INTEGER), Column("b", Type.INTEGER))
    assert stream("KEY (k) TIME b").start is None
    assert not stream("KEY (k) TIME b").has_duration


@pytest.mark.parametrize(
    ("clause", "start", "end"),
    [
        ("TIME (a, b) TIMESTAMP", Type.TIMESTAMP, Type.TIMESTAMP),
        ("TIME (a INT, b BIGINT)", Type.INTEGER, Type.INTEGER),
        ("TIME (a, b DOUBLE)", Type.UNKNOWN, Type.DOUBLE),
        ("TIME (timestamp, string)", Type.UNKNOWN, Type.UNKNOWN),
    ],
)
def test_a_type_may_follow_each_column_of_time_or_both(clause: str, start: Type, end: Type) -> None:
    stays = stream(f"KEY (k) {clause}")
    assert stays.start is not None
    assert (stays.start.type, stays.time.type) == (start, end)


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("KEY (k) TIME (a INTEGER, b DOUBLE)", ["time-type"]),
        ("KEY (k) TIME (a STRING, b)", ["time-type"]),
        ("KEY (k) TIME (a, A)", ["name-twice"]),
        ("KEY (a) TIME (a, b)", ["name-twice"]),
        ("KEY (k) VALUE (v) TIME (a, b) MODEL CERTAIN", []),
        ("KEY (k) VALUE (v) TIME (a, b) MODEL INDEPENDENT", ["event-duration"]),
        ("KEY (k) VALUE (v) TIME (a, b) MODEL MARKOV", ["event-duration"]),
        ("KEY (k) TIME (a, b) MODEL INTERVALS", []),
        ("KEY (k) VALUE (v) TIME (a, b) MODEL PREDICTED ERROR 1 PERIOD 1", ["event-duration"]),
    ],
)
def test_invalid_times_with_two_columns(clauses: str, expected: list[str]) -> None:
    assert codes(f"CREATE STREAM s {clauses}") == expected


def test_a_type_is_stated_once() -> None:
    with pytest.raises(WorkbookError, match=r"1:41: TIME has types both inside and after its parentheses"):
        parse("CREATE STREAM s KEY (k) TIME (a INT, b) INT")


def test_an_inferred_stream_has_point_events_but_its_readings_may_last() -> None:
    inferred = "CREATE STREAM at KEY (tag) VALUE (l) TIME {} INFERRED FROM reads USING HMM 'm/' METHOD MLE;"
    readings = "CREATE STREAM reads KEY (tag) VALUE (reader) TIME {};"
    assert codes(inferred.format("(a, b)") + readings.format("t")) == ["event-duration"]
    assert codes(inferred.format("t") + readings.format("(a, b)")) == []


@pytest.mark.parametrize(
    "query",
    [
        "SEQUENCE (x, y) FROM stays",
        "PATTERN stays(k, v)",
        "CONSTRAIN v FROM stays",
    ],
)
def test_only_constrain_takes_events_with_a_duration(query: str, catalog: Catalog) -> None:
    expected = [] if query.startswith("CONSTRAIN") else ["event-duration"]
    assert wrong(query, catalog) == expected


@pytest.mark.parametrize("query", ["RELATE ALL a MEETS ALL b FROM stays", "MONITOR a FROM stays WHERE a.kind = 'x'"])
def test_relate_and_monitor_refuse_its_model(query: str, catalog: Catalog) -> None:
    assert wrong(query, catalog) == ["wrong-model"]


def test_t_and_t_from_always_name_the_end_and_the_start(catalog: Catalog) -> None:
    condition = only("v, w FROM stays WHERE v.T - w.t_from < 5", catalog)
    assert named(condition) == [("v", "until", Type.TIMESTAMP), ("w", "since", Type.TIMESTAMP)]
    condition = only("v, w FROM stays WHERE v.until - w.SINCE < 5", catalog)
    assert named(condition) == [("v", "until", Type.TIMESTAMP), ("w", "since", Type.TIMESTAMP)]


def test_a_column_named_t_from_takes_precedence(catalog: Catalog) -> None:
    condition = only("v FROM odd WHERE v.t + v.t_to < v.t_from", catalog)
    assert [name for _, name, _ in named(condition)] == ["t", "t_to", "t_from"]


def test_point_events_have_no_t_from(catalog: Catalog) -> None:
    assert wrong("CONSTRAIN v FROM e WHERE v.t_from < v.t", catalog) == ["unknown-column"]


def test_an_unknown_column_is_compared_with_all_columns(catalog: Catalog) -> None:
    (near,) = findings("CREATE QUERY q AS CONSTRAIN v FROM stays WHERE v.untill > v.t_from", catalog)
    assert near.hint == "did you mean 'Until'?"
    (far,) = findings("CREATE QUERY q AS CONSTRAIN v FROM stays WHERE v.nosuch = 1", catalog)
    assert far.hint == "its columns are id, kind, Since, Until, Area, t and t_from"
    (coordinates,) = findings("CREATE QUERY q AS CONSTRAIN v FROM globe WHERE v.lom = 1", catalog)
    assert coordinates.hint == "did you mean 'lon'?"


def test_the_time_columns_of_a_source_must_have_the_same_type() -> None:
    stays = stream("KEY (k) TIME (a, b)")
    catalog = Catalog()
    for kind, expected in ((Type.INTEGER, []), (Type.DOUBLE, ["time-type"]), (Type.TIMESTAMP, ["time-type"])):
        catalog.add(stays.with_types({"a": Type.INTEGER, "b": kind}))
        assert wrong("CONSTRAIN v, w FROM s", catalog) == expected


# ---------------------------------------------------------------- geometries


def test_space_may_be_a_geometry_column() -> None:
    areas = stream("KEY (k) TIME t SPACE (Area)")
    assert areas.declaration.space == ("Area",)
    assert areas.columns[-1] == areas.shape == Column("Area")
    typed = areas.with_types({"area": Type.BINARY})
    assert typed.columns[-1] == typed.shape == Column("Area", Type.BINARY)


def test_a_geometry_column_may_be_a_value_column() -> None:
    valued = stream("KEY (k) VALUE (area STRING) TIME t SPACE (AREA)")
    assert valued.shape == Column("area", Type.STRING, declared=True)
    assert [column.name for column in valued.columns] == ["k", "t", "area"]


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("SPACE (shape) GEODESIC", ["geodesic-shape"]),
        ("VALUE (shape BINARY) SPACE (shape)", []),
        ("VALUE (shape DOUBLE) SPACE (SHAPE)", ["space-type"]),
        ("SPACE (t)", ["space-type"]),
        ("VALUE (x INT, y DOUBLE) SPACE (x, y)", []),
        ("VALUE (x STRING, y BOOLEAN) SPACE (x, y)", ["space-type", "space-type"]),
        ("SPACE (x, t) GEODESIC", ["space-type"]),
    ],
)
def test_columns_of_space(clauses: str, expected: list[str]) -> None:
    assert codes(f"CREATE STREAM s KEY (k) TIME t TIMESTAMP {clauses}") == expected


@pytest.mark.parametrize(
    ("clauses", "found", "expected"),
    [
        ("SPACE (shape)", Type.STRING, []),
        ("SPACE (shape)", Type.BINARY, []),
        ("SPACE (shape)", Type.INTEGER, ["space-type"]),
        ("VALUE (shape) SPACE (shape)", Type.INTEGER, ["space-type"]),
        ("VALUE (shape) SPACE (shape, y)", Type.INTEGER, []),
        ("VALUE (shape) SPACE (shape, y)", Type.STRING, ["space-type"]),
    ],
)
def test_types_of_the_source_are_checked_when_a_query_is_bound(clauses: str, found: Type, expected: list[str]) -> None:
    catalog = Catalog()
    catalog.add(stream(f"KEY (k) TIME t {clauses}").with_types({"shape": found}))
    assert wrong("CONSTRAIN v, w FROM s WHERE DISTANCE(v, w) < 5", catalog) == expected


@pytest.mark.parametrize("function", ["DISTANCE({}, {}) < 5", "WITHIN({}, {})", "INTERSECTS({}, {})"])
def test_an_event_with_a_geometry_is_a_reference_to_its_geometry_column(function: str, catalog: Catalog) -> None:
    condition = only(f"v, w FROM stays AS v, e AS w WHERE {function.format('v', 'w')}", catalog)
    assert named(condition) == [("v", "area", Type.UNKNOWN), ("w", "*", Type.UNKNOWN)]


def test_two_mentions_of_a_counted_variable_are_two_geometries(catalog: Catalog) -> None:
    condition = only("v*3 FROM stays WHERE INTERSECTS(v, v)", catalog)
    assert [node.mention for node in walk(condition) if isinstance(node, Reference)] == [1, 2]


def test_a_span_is_between_whole_events(catalog: Catalog) -> None:
    assert named(only("v, w FROM stays WHERE SPAN(v, w) < 5", catalog))[0] == ("v", "*", Type.UNKNOWN)


# ---------------------------------------------------------------- compatible arguments


@pytest.mark.parametrize(
    "condition",
    [
        "DISTANCE(e, k) < 5", "DISTANCE(g, g) < 5", "DISTANCE(g, 'POINT(1 2)') < 5",
        "DISTANCE(' point z (1 2 3)', g) < 5", "DISTANCE(e, 'LINESTRING(0 0, 1 1)') < 5", "DISTANCE(e, s) < 5",
        "DISTANCE(e, e.shape) < 5",
        "DISTANCE(e.shape, g.shape) < 5", "WITHIN(g, 'POLYGON((0 0, 1 0, 1 1, 0 0))')", "INTERSECTS(g, s)",
        "WITHIN(g, e)", "SPAN(e, s) < 5", "SPAN(e, g) < 5", "SPAN(k, n) < 5", "SPAN(g, n) < 5",
    ],
)  # fmt: skip
def test_compatible_arguments(condition: str, catalog: Catalog) -> None:
    """The arguments fit; the clocks of the streams, which are all in FROM, do not."""
    assert wrong(over_all(condition), catalog) == ["time-type"]


@pytest.mark.parametrize(
    ("condition", "code", "column"),
    [
        ("DISTANCE(e, g) < 5", "different-space", 0),
        ("DISTANCE(g, k) < 5", "different-space", 0),
        ("1 + DISTANCE(g, s) < 5", "planar-geometry", 16),
        ("DISTANCE(g.shape, g) < 5", "planar-geometry", 9),
        ("DISTANCE(g, 'POLYGON((0 0, 1 0, 1 1, 0 0))') < 5", "planar-geometry", 12),
        ("DISTANCE(g, 'POINT EMPTY') < 5", "planar-geometry", 12),
        ("SPAN(e, k) < 5", "type-mismatch", 0),
        ("SPAN(n, s) < 5", "type-mismatch", 0),
        ("DISTANCE(e, g) IN [1, 5]", "different-space", 0),
        ("DISTANCE(e, n) < 5", "no-space", 12),
        ("WITHIN(n, e)", "no-space", 7),
        ("INTERSECTS(e, n)", "no-space", 14),
    ],
)
def test_incompatible_arguments(condition: str, code: str, column: int, catalog: Catalog) -> None:
    beginning = f"CREATE QUERY q AS {over_all('')}"
    (finding,) = findings(beginning + condition, catalog)
    assert finding.code == code
    assert finding.hint
    assert finding.span is not None
    assert finding.span.column == len(beginning) + 1 + column


def over_all(condition: str) -> str:
    return f"CONSTRAIN e, g, k, n, s FROM e AS e, globe AS g, ticks AS k, nowhere AS n, stays AS s WHERE {condition}"


@pytest.mark.parametrize(
    "text",
    [
        "POINT(1 2)", "point (1 2)", " POINT Z (1 2 3) ", "POINTZ(1 2 3)", "POINT EMPTY", "LINESTRING(0 0, 1 1)",
        "LINEARRING(0 0, 1 0, 1 1, 0 0)", "POLYGON\n((0 0, 1 0, 1 1, 0 0), (0 0, 1 0, 1 1, 0 0))", "MULTIPOINT((1 2))",
        "MULTILINESTRING EMPTY", "MultiPolygon(((0 0, 1 0, 1 1, 0 0)))", "GEOMETRYCOLLECTION(POINT(1 2), POINT(3 4))",
    ],
)  # fmt: skip
def test_strings_that_may_be_geometries(text: str, catalog: Catalog) -> None:
    for condition in (f"WITHIN(v, '{text}')", f"INTERSECTS('{text}', v)", f"DISTANCE(v, '{text}') < 5"):
        assert wrong(f"CONSTRAIN v FROM e WHERE {condition}", catalog) == []


@pytest.mark.parametrize(
    "text",
    [
        "", "HERE", "CIRCLE(1 2)", "POINT", "POINT 1 2", "POINTS(1 2)", "SRID=4326;POINT(1 2)", "POINT EMPTY(1 2)",
        "POINT(1 2", "POINT(1 2))", "POLYGON((0 0, 1 0, 1 1, 0 0)", "POINT(1 2) POINT(3 4)", "POINT(1 2) here",
        "POINT)(", "POINT[1 2]",
    ],
)  # fmt: skip
def test_strings_that_are_no_geometries(text: str, catalog: Catalog) -> None:
    for condition in (f"WITHIN(v, '{text}')", f"INTERSECTS('{text}', v)", f"DISTANCE(v, '{text}') < 5"):
        (finding,) = findings(f"CREATE QUERY q AS CONSTRAIN v FROM e WHERE {condition}", catalog)
        assert (finding.code, bool(finding.hint)) == ("not-a-geometry", True)


# ---------------------------------------------------------------- strategies


@pytest.mark.parametrize("strategy", ["LOOSE", "TIGHT", "NOINDEX"])
def test_strategies(strategy: str, catalog: Catalog) -> None:
    for clauses in (
        f"WHERE v.kind = 'A' THRESHOLD 0.5 STRATEGY {strategy}",
        f"STRATEGY {strategy.lower()} THRESHOLD 0.5 WHERE v.kind = 'A'",
    ):
        constrain = bound(f"CONSTRAIN v FROM e {clauses}", catalog)
        assert isinstance(constrain, BoundConstrain)
        assert (constrain.strategy, constrain.threshold, len(constrain.conditions)) == (strategy, 0.5, 1)


def test_without_a_strategy_there_is_none(catalog: Catalog) -> None:
    assert bound("CONSTRAIN strategy FROM e", catalog).strategy is None


def test_an_unknown_strategy_is_reported(catalog: Catalog) -> None:
    (finding,) = findings("CREATE QUERY q AS CONSTRAIN v FROM e\n  STRATEGY LOSE", catalog)
    assert finding.line("f") == "f:2:3: there is no STRATEGY option 'LOSE'; did you mean 'LOOSE'?"
    (finding,) = findings("CREATE QUERY q AS CONSTRAIN v FROM e STRATEGY HURRY", catalog)
    assert finding.hint == "use LOOSE, TIGHT or NOINDEX"


def test_only_constrain_has_strategies() -> None:
    with pytest.raises(WorkbookError, match="expected .*, found 'STRATEGY'"):
        declaration("SEQUENCE (x, y) FROM e STRATEGY LOOSE")


# ---------------------------------------------------------------- mentions and shifted times


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("3 BETWEEN v.temp AND v.x", [[1], [1]]),
        ("v.kind = 'A' OR v.temp > 5", [[1, 2]]),
        ("v.temp IN [v.x, 5]", [[1, 2], [1]]),
        ("NOT (v.kind = 'A' OR v.temp > 5)", [[1, 2]]),
        ("w.temp BETWEEN v.temp AND v.x", [[1], [1]]),
    ],
)
def test_no_condition_has_only_a_second_mention(condition: str, expected: list[list[int]], catalog: Catalog) -> None:
    conditions = bound(f"CONSTRAIN v*3, w FROM e WHERE {condition}", catalog).conditions
    mentions = [
        sorted({node.mention for node in walk(tree) if isinstance(node, Reference) and node.owner == "v"})
        for tree in conditions
    ]
    assert mentions == expected


@pytest.mark.parametrize("kind", ["CONSTRAIN v, w FROM e", "SEQUENCE (v, w) FROM e"])
def test_a_time_plus_a_duration_becomes_a_difference_of_times(kind: str, catalog: Catalog) -> None:
    query = bound(f"{kind} WHERE v.t <= w.t + 2 MINUTES", catalog)
    (condition,) = query.conditions
    assert isinstance(condition, Operation)
    difference, seconds = condition.arguments
    assert isinstance(difference, Operation)
    assert (condition.op, difference.op, difference.type) == ("<=", "-", Type.DOUBLE)
    assert named(difference) == [("v", "t", Type.TIMESTAMP), ("w", "t", Type.TIMESTAMP)]
    assert seconds.value == 120.0  # type: ignore[union-attr]


# ---------------------------------------------------------------- round trip


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("CREATE STREAM s KEY (k) TIME (a, b)", None),
        ("CREATE STREAM s KEY (k) TIME (a INT, b)", None),
        ("CREATE STREAM s KEY (k) TIME (a, b) INT", "CREATE STREAM s KEY (k) TIME (a INT, b INT)"),
        ("CREATE STREAM s KEY (k) TIME t INT SPACE (shape)", None),
        ("CREATE STREAM s KEY (k) TIME t SPACE (lon, lat) GEODESIC", None),
        ("CREATE QUERY q AS CONSTRAIN v FROM e WHERE v.x = 1 STRATEGY TIGHT THRESHOLD 0.5", None),
        ("CREATE QUERY q AS CONSTRAIN v FROM e STRATEGY loose", "CREATE QUERY q AS CONSTRAIN v FROM e STRATEGY LOOSE"),
    ],
)
def test_unparse_writes_the_text_that_was_parsed(text: str, written: str | None) -> None:
    (statement,) = parse(text).statements
    assert unparse(statement) == (written or text)
    assert parse(unparse(statement)) == nodes.Workbook((statement,))
