"""The oracle of SEQUENCE compared with cases worked out by hand and closed forms; the strategies of its cases."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from scipy import integrate

from anabranch.sequence.query import BoundDelay, BoundSequence
from tests.drawn import drawn, examples
from tests.local import bound_query
from tests.oracles.events import Row, frozen
from tests.oracles.sequence import Match, candidates, matches
from tests.sequence.strategies import Case, bound_case, sequence_cases

STREAMS = """
    CREATE STREAM e KEY (id STRING) VALUE (reader STRING, tag STRING, temp DOUBLE) TIME t DOUBLE;
    CREATE STREAM f KEY (id STRING) VALUE (tag STRING) TIME t DOUBLE;
    CREATE STREAM i KEY (id STRING) VALUE (reader STRING) TIME t INTEGER;
    CREATE STREAM g KEY (id STRING) VALUE (reader STRING) TIME t TIMESTAMP;
    CREATE RELATION hall (reader STRING);
    CREATE RELATION rates (reader STRING, p DOUBLE);
"""
RELATIONS = {"hall": {("x",), ("z",)}, "rates": {("x", 0.25), ("y", 0.5), ("w", 0.5)}}

#: Conditions on the components of most queries.
READERS = "x.reader = 'x' AND y.reader = 'y' AND z.reader = 'z'"
XZ = "x.reader = 'x' AND z.reader = 'z'"


def bound(query: str) -> BoundSequence:
    """A query over the streams above."""
    return bound_query(f"{STREAMS} CREATE QUERY q AS SEQUENCE {query};", "q")


def event(id_: str, t: float, tag: str | None = "g", temp: float | None = None) -> Row:
    """An event; its reader is the first letter of its key."""
    return {"id": id_, "t": t, "reader": id_[0], "tag": tag, "temp": temp}


def named(query: BoundSequence, answer_rows: Sequence[Match]) -> dict[str, float]:
    """Probabilities by the keys of the events: `-` is a missing event, `!` marks an expired sequence."""
    labels = [component.label for component in query.components if not component.negative]
    answers = {}
    for match in answer_rows:
        key = " ".join(match[label]["id"] if match[label] else "-" for label in labels)
        answers[key + ("!" if match.get("status") == "expired" else "")] = match["probability"]
    assert len(answers) == len(answer_rows)
    return answers


def answers_to(text: str, *events: Row, **others: Sequence[Row]) -> dict[str, Any]:
    """The matches over the stream e; `others` are the rows of other streams."""
    query = bound(text)
    return named(query, matches(query, {"e": events, **others}, RELATIONS))


def about(expected: Mapping[str, float]) -> Any:
    return pytest.approx(dict(expected), abs=1e-11)


# ---------------------------------------------------------------- events and windows


def test_every_choice_of_events_is_a_match() -> None:
    events = [event("x1", 0), event("x2", 1), event("y1", 2), event("z1", 3), event("z2", 4)]
    assert answers_to(f"(x, y, z) FROM e WHERE {READERS}", *events) == {
        f"{x} y1 {z}": 1.0 for x in ("x1", "x2") for z in ("z1", "z2")
    }


def test_the_columns_of_an_answer() -> None:
    rows = [{**event("x1", 1), "note": 7}, event("z1", 5)]
    (match,) = matches(bound(f"(X, Z) FROM e WHERE {XZ}"), {"E": rows})
    assert match == {"t": 5, "t_start": 1, "probability": 1.0, "X": event("x1", 1), "Z": event("z1", 5)}
    assert list(match) == ["t", "t_start", "probability", "X", "Z"]


def test_times_strictly_increase_and_within_is_inclusive() -> None:
    query = f"(x, z) FROM e WHERE {XZ} WITHIN 2"
    assert answers_to(query, event("x1", 0), event("z1", 0), event("z2", 2), event("z3", 2.25)) == {"x1 z2": 1.0}
    # As doubles, 0.3 - 0.1 is a little less than 0.2, and 0.4 - 0.1 a little more than 0.3.
    assert answers_to(f"(x, z) FROM e WHERE {XZ} WITHIN 0.2", event("x", 0.1), event("z", 0.3)) == {"x z": 1.0}
    assert answers_to(f"(x, z) FROM e WHERE {XZ} WITHIN 0.3", event("x", 0.1), event("z", 0.4)) == {"x z": 1.0}


def test_duplicate_rows_are_one_event() -> None:
    rows = [event("x1", 0), event("x1", 0), event("x1", 0, temp=1), event("z1", 1)]
    rows += [{**event("z2", 1), "id": None}, {**event("z2", 1), "t": None}]
    query = bound(f"(x, z) FROM e WHERE {XZ}")
    assert [match["x"]["temp"] for match in matches(query, {"e": rows})] == [None, 1]


def test_components_with_their_own_stream_need_no_condition() -> None:
    rows = [{"id": "a", "t": 3, "tag": "g"}, {"id": "b", "t": 4, "tag": "h"}]
    query = "(x, z) FROM e AS x, f AS z WHERE x.tag = z.tag"
    assert answers_to(query, event("x1", 0), f=rows) == {"x1 a": 1.0}


def test_integers_and_timestamps() -> None:
    text = "(x, !y, z) FROM {} WHERE x.reader = 'x' AND y.reader = 'y' AND z.reader = 'z' MISS x 0.25, y 0.5"
    text += " DELAY x UNIFORM(0, 8), y EXPONENTIAL(1 {}) WITHIN 4"
    rows = [{"id": id_, "t": t, "reader": id_[0]} for id_, t in (("x1", 0), ("z1", 3), ("y1", 4), ("z2", 4))]

    def not_happened(d: float) -> float:
        return math.exp(-d) / (0.5 + 0.5 * math.exp(-d))

    # If only z was read, the window opened 4 before it: 0.25 times the integral over the delay of x, which is uniform.
    head = 0.25 * integrate.quad(not_happened, 0, 4, epsabs=1e-13)[0] / 8
    expected = {"x1 z1": not_happened(3), "x1 z2": not_happened(4), "- z1": head, "- z2": head}
    query = bound(text.format("i", ""))
    assert named(query, matches(query, {"i": rows})) == about(expected)
    query = bound(text.format("g", "SECONDS"))
    start = datetime(2026, 1, 31, 23, 59, 58, tzinfo=UTC)
    moved = [{**row, "t": start + timedelta(seconds=row["t"])} for row in rows]
    answers = matches(query, {"g": moved})
    assert named(query, answers) == about(expected)
    assert {match["t_start"] for match in answers} == {moved[0]["t"], moved[1]["t"], moved[3]["t"]}


# ---------------------------------------------------------------- missing components


def test_one_missing_component_has_the_probability_that_its_delay_had_passed() -> None:
    events = [event("x", 0), event("z", 3)]
    query = f"(x, y, z) FROM e WHERE {READERS} MISS y 0.25 DELAY y UNIFORM(1, 5)"
    assert answers_to(query, *events) == {"x - z": 0.25 * 0.5}
    assert answers_to(f"{query} THRESHOLD 0.125", *events) == {"x - z": 0.125}
    assert answers_to(f"{query} THRESHOLD 0.126", *events) == {}
    # If the delay cannot have passed, there is no match, even without a threshold.
    assert answers_to(query, event("x", 0), event("z", 1)) == {}
    # Matches with and without the event.
    assert answers_to(query, *events, event("y", 2)) == {"x y z": 1.0, "x - z": 0.125}


def test_delays_before_the_first_event_start_with_the_window() -> None:
    query = f"(x, y, z) FROM e WHERE {READERS} MISS x 0.25, y 0.5 DELAY x UNIFORM(0, 8), y UNIFORM(0, 4) WITHIN 4"
    # y is 1 before z, so the window had opened 3 before y.
    assert answers_to(query, event("y", 9), event("z", 10)) == about(
        {"- y z": 0.25 * 3 / 8, "- - z": 0.125 * 4**2 / 2 / 32}
    )
    # The window opened with y: no event can be before it.
    assert answers_to(query, event("y", 6), event("z", 10)) == about({"- - z": 0.125 * 4**2 / 2 / 32})


def test_a_component_without_miss_is_never_missing() -> None:
    assert answers_to(f"(x, y, z) FROM e WHERE {READERS} DELAY y UNIFORM(0, 1)", event("x", 0), event("z", 3)) == {}


def test_loss_rates_by_reader() -> None:
    events = [event("x", 0), event("z", 3)]
    tail = "MISS BY reader FROM rates{} DELAY x UNIFORM(0, 2), y UNIFORM(0, 2) WITHIN 9"
    for readers, miss, expected in (
        ("= 'y'", "", {"x - z": 0.5, "- - z": 0.125}),
        ("IN ('w', 'y')", "", {"x - z": 0.5, "- - z": 0.125}),
        # MISS for a component takes precedence.
        ("= 'y'", ", y 0.75", {"x - z": 0.75, "- - z": 0.1875}),
        # A reader that is not listed loses nothing.
        ("= 'v'", "", {}),
    ):
        where = f"x.reader = 'x' AND y.reader {readers} AND z.reader = 'z'"
        assert answers_to(f"(x, y, z) FROM e WHERE {where} {tail.format(miss)}", *events) == about(expected)


# ---------------------------------------------------------------- negatives


def test_a_negative_between_its_neighbours_excludes_the_match() -> None:
    query = f"(x, !y, z) FROM e WHERE {READERS}"
    assert answers_to(query, event("x", 0), event("z", 3), event("y", 2)) == {}
    # Strictly between.
    assert answers_to(query, event("x", 0), event("z", 3), event("y1", 0), event("y2", 3)) == {"x z": 1.0}
    # If it cannot be lost, its delay has no effect.
    assert answers_to(f"{query} DELAY y EXPONENTIAL(1)", event("x", 0), event("z", 3)) == {"x z": 1.0}
    likely = math.exp(-3) / (0.25 * (1 - math.exp(-3)) + math.exp(-3))
    assert answers_to(f"{query} MISS y 0.25 DELAY y EXPONENTIAL(1)", event("x", 0), event("z", 3)) == about(
        {"x z": likely}
    )


def test_a_negative_lies_between_the_observed_events_around_it() -> None:
    query = """(x, !n, y, z) FROM e WHERE x.reader = 'x' AND n.reader = 'n' AND y.reader = 'y' AND z.reader = 'z'
        MISS y 0.25 DELAY y UNIFORM(0, 1)"""
    assert answers_to(query, event("x", 0), event("n", 2), event("y", 1), event("z", 3)) == {"x y z": 1.0}
    assert answers_to(query, event("x", 0), event("n", 2), event("z", 3)) == {}


def test_a_negative_before_the_first_event() -> None:
    query = "(!y, x, z) FROM e WHERE x.reader = 'x' AND y.reader = 'y' AND z.reader = 'z' WITHIN 4"
    events = [event("x", 8), event("z", 10)]
    assert answers_to(query, *events, event("y", 5.75), event("y1", 8), event("y2", 9)) == {"x z": 1.0}
    assert answers_to(query, *events, event("y", 6)) == {}
    assert answers_to(query, *events, event("y", 7.75)) == {}
    # The window had opened 2 before x.
    half = (1 - 2 / 8) / (0.5 * 2 / 8 + 1 - 2 / 8)
    assert answers_to(f"{query} MISS y 0.5 DELAY y UNIFORM(0, 8)", *events) == about({"x z": half})


def test_several_negatives_in_a_row() -> None:
    query = """(x, !y, !w, z) FROM e WHERE x.reader = 'x' AND y.reader = 'y' AND w.reader = 'w' AND z.reader = 'z'
        MISS y 0.5, w 0.25 DELAY y UNIFORM(0, 8), w UNIFORM(0, 16)"""
    events = [event("x", 0), event("z", 4)]
    assert answers_to(query, *events) == about({"x z": (0.5 / 0.75) * (0.75 / (0.0625 + 0.75))})
    assert answers_to(query, *events, event("w", 1)) == answers_to(query, *events, event("y", 1)) == {}


def test_an_event_of_a_negative_must_satisfy_its_conditions() -> None:
    query = f"(x, !y, z) FROM e WHERE {READERS} AND x.tag = y.tag AND y.temp > z.temp AND y.temp > 1"
    events = [event("x", 0), event("z", 3, temp=2)]
    for fitting, tag, temp in ((True, "g", 3), (False, "h", 3), (False, None, 3), (False, "g", 2), (False, "g", None)):
        assert answers_to(query, *events, event("y", 1, tag, temp)) == ({} if fitting else {"x z": 1.0})


# ---------------------------------------------------------------- equalities


def test_equalities_are_transitive_across_missing_and_negative_components() -> None:
    equal = "x.tag = y.tag AND y.tag = z.tag"
    events = [event("x1", 0, "g"), event("x2", 1, "h"), event("x3", 1, None), event("z1", 2, "g"), event("z2", 3, None)]
    for query in (
        f"(x, !y, z) FROM e WHERE {READERS} AND {equal}",
        f"(x, y, z) FROM e WHERE {READERS} AND {equal} MISS y 0.5 DELAY y UNIFORM(0, 1)",
    ):
        # NULL equals nothing, not even NULL.
        assert [key.split()[0] + key.split()[-1] for key in answers_to(query, *events)] == ["x1z1"]


def test_an_equality_with_a_missing_component_has_no_effect() -> None:
    query = f"(x, z) FROM e WHERE {XZ} AND x.tag = z.tag MISS x 0.5 DELAY x UNIFORM(0, 1) WITHIN 4"
    assert answers_to(query, event("z1", 2, None), event("x1", 0, None)) == {"- z1": 0.5}


def test_classes_of_different_columns() -> None:
    query = """(x, y, z) FROM e WHERE x.reader = 'x' AND y.temp > 0 AND z.reader = 'z' AND x.tag = y.reader
        AND NOT (y.reader <> z.tag) MISS y 0.5 DELAY y UNIFORM(0, 1)"""
    assert answers_to(query, event("x", 0, "g"), event("z", 2, "g"), event("z2", 2, "h")) == {"x - z": 0.5}
    # Two columns of one event must be equal if both equal a column of a missing component.
    query = f"(x, y, z) FROM e WHERE {READERS} AND x.tag = y.tag AND y.tag = x.id MISS y 0.5 DELAY y UNIFORM(0, 1)"
    assert answers_to(query, event("x", 0, "x"), event("x1", 0, "g"), event("z", 2)) == {"x - z": 0.5}


def test_equalities_of_expressions_are_not_transitive() -> None:
    query = f"(x, y, z) FROM e WHERE {READERS} AND x.temp + 0 = y.temp AND y.temp = z.temp + 0"
    query += " MISS y 0.5 DELAY y UNIFORM(0, 1)"
    events = [event("x", 0, temp=1), event("y", 1, temp=1), event("z", 2, temp=2)]
    assert answers_to(query, *events) == {"x - z": 0.5}


# ---------------------------------------------------------------- conditions


def test_a_condition_on_a_missing_component_is_skipped() -> None:
    query = f"(x, y, z) FROM e WHERE {READERS} AND {{}} MISS y 0.5 DELAY y UNIFORM(0, 1)"
    events = [event("x", 0, temp=1), event("y", 1, temp=3), event("z", 2, temp=2)]
    both = {"x y z": 1.0, "x - z": 0.5}
    for condition, expected in (
        ("x.temp < y.temp", both), ("y.temp < z.temp", {"x - z": 0.5}), ("x.temp > z.temp", {}),
        ("y.temp > 5", {"x - z": 0.5}), ("y.temp IS NULL", {"x - z": 0.5}), ("z.t - x.t <= 2", both),
        ("z.t - x.t < 2", {}), ("z.t - y.t >= 2", {"x - z": 0.5}), ("x.temp + y.temp > z.temp", both),
        ("hall(x.reader)", both), ("NOT hall(y.reader)", both), ("hall(y.reader)", {"x - z": 0.5}), ("TRUE", both),
        ("NULL", {}), ("1 = 2", {}),
    ):  # fmt: skip
        assert answers_to(query.format(condition), *events) == expected, condition


def test_defaults_replace_the_columns_of_missing_components() -> None:
    query = f"(x, y, z) FROM e WHERE {READERS} AND {{}} MISS x 0.5, y 0.5 DELAY x UNIFORM(0, 1), y UNIFORM(0, 1)"
    query += " WITHIN 9"
    events = [event("x", 0, "g", 1), event("z", 2, "g", 2)]
    both = {"x - z": 0.5, "- - z": 0.25}
    for condition, expected in (
        ("y.temp[0] < z.temp", both), ("y.temp[2] < z.temp", {}), ("y.temp[NULL] < z.temp", {}),
        # x has no default, so the condition is skipped if x is missing.
        ("y.temp[1] < x.temp", {"- - z": 0.25}), ("y.temp[1] < x.temp[0]", {}),
        ("y.temp[1] < x.temp[3]", {"- - z": 0.25}),
        # One of the references has no default.
        ("y.temp[9] < y.temp + z.temp", both), ("y.temp[9] < y.temp[1] + z.temp", {}),
        # Conditions on one component.
        ("y.temp[1] > 0", both), ("y.temp[0] > 0", {}), ("x.temp[0] > 0", {"x - z": 0.5}),
        ("y.temp[0] > y.t", both),
        # An equality with a default applies to observed events, and to the default.
        ("y.tag['g'] = z.tag", both), ("y.tag['h'] = z.tag", {}), ("x.tag = y.tag['h']", {"- - z": 0.25}),
        ("x.tag = y.tag['g'] AND y.tag = z.tag", both),
    ):  # fmt: skip
        assert answers_to(query.format(condition), *events) == about(expected), condition
    other = event("z", 2, "h", 2)
    condition = "y.tag['h'] = z.tag AND x.tag = y.tag"
    assert answers_to(query.format(condition), events[0], other) == about({"- - z": 0.25})


def test_a_default_in_a_condition_on_a_negative() -> None:
    query = f"""(x, y, !n, z) FROM e WHERE {READERS} AND n.reader = 'n' AND n.temp > y.temp[{{}}]
        MISS y 0.5 DELAY y UNIFORM(0, 1)"""
    events = [event("x", 0), event("n", 2, temp=1), event("z", 3)]
    assert answers_to(query.format(0), *events) == {}
    assert answers_to(query.format(1), *events) == {"x - z": 0.5}
    # Without a default the condition is skipped, and the event of the negative excludes the match.
    assert answers_to(query.replace("[{}]", ""), *events) == {}


def test_alternatives_are_independent() -> None:
    events = [event("x", 0, temp=1), event("w", 0, temp=5), event("z", 2, temp=2)]
    query = "(x, z) FROM e WHERE z.reader = 'z' AND {}"
    assert answers_to(query.format("(x.reader = 'x' OR x.reader = 'w')"), *events) == {"x z": 1.0, "w z": 1.0}
    assert answers_to(query.format("x.reader IN ('x', 'w') AND (x.temp < z.temp OR x.t < z.t)"), *events) == {
        "x z": 1.0, "w z": 1.0,
    }  # fmt: skip
    negated = "NOT (x.reader <> 'x' AND x.reader <> 'w') AND NOT (x.temp < z.temp OR hall(x.reader))"
    assert answers_to(query.format(negated), *events) == {"w z": 1.0}
    # The equality belongs to one disjunct: in the other, tags are not transitively equal.
    query = f"(x, y, z) FROM e WHERE {READERS} AND x.tag = y.tag AND (y.tag = z.tag OR z.temp > 3)"
    query += " MISS y 0.5 DELAY y UNIFORM(0, 1)"
    events = [event("x", 0, "g"), event("z1", 2, "g", 1), event("z2", 2, "h", 1), event("z3", 2, "h", 4)]
    assert answers_to(query, *events) == {"x - z1": 0.5, "x - z3": 0.5}
    # A condition on one component is not split: none of these events must happen.
    query = "(x, !y, z) FROM e WHERE x.reader = 'x' AND z.reader = 'z' AND {}"
    for condition in ("y.reader IN ('y', 'w')", "NOT (y.reader <> 'y' AND y.reader <> 'w')"):
        assert answers_to(query.format(condition), event("x", 0), event("w", 1), event("z", 3)) == {}
    # The conditions on a negative are those of the disjunct.
    query = f"(x, !y, z) FROM e WHERE {READERS} AND (x.temp = 1 OR y.temp = 1)"
    assert answers_to(query, event("x", 0, temp=1), event("y", 1, temp=2), event("z", 3)) == {"x z": 1.0}
    assert answers_to(query, event("x", 0, temp=2), event("y", 1, temp=1), event("z", 3)) == {}


# ---------------------------------------------------------------- SCORING POSTERIOR


def test_the_posterior_of_one_missing_component() -> None:
    query = f"(x, y, z) FROM e WHERE {READERS} MISS y 0.25 DELAY y UNIFORM(0, 4) SCORING POSTERIOR"
    assert answers_to(query, event("x", 0), event("z", 2)) == about({"x - z": 0.125 / (0.125 + 0.5)})
    assert answers_to(query, event("x", 0), event("z", 9)) == about({"x - z": 1.0})
    # If it was read, it is not missing.
    assert answers_to(query, event("x", 0), event("y", 1), event("z", 9)) == {"x y z": 1.0}
    assert answers_to(query, event("x", 0), event("y", 9), event("z", 9)) == about({"x - z": 1.0})


def test_a_reading_excludes_a_missing_component_by_its_conditions_and_the_window() -> None:
    query = """(x, z) FROM e WHERE x.reader = 'x' AND z.reader = 'z' AND x.tag = z.tag AND x.temp < z.temp
        MISS x 0.25 DELAY x UNIFORM(0, 4) WITHIN 4 SCORING POSTERIOR"""
    z = event("z", 9, "g", 2)
    for x, expected in (
        (event("x", 5, "g", 1), {"x z": 1.0}), (event("x", 4.75, "g", 1), {"- z": 1.0}),
        (event("x", 5, "h", 1), {"- z": 1.0}), (event("x", 5, "g", 3), {"- z": 1.0}),
    ):  # fmt: skip
        assert answers_to(query, x, z) == about(expected)


def test_the_posterior_of_negatives_alone_is_the_joint_score() -> None:
    query = f"(x, !y, z) FROM e WHERE {READERS} MISS y 0.5 DELAY y UNIFORM(0, 8)"
    events = [event("x", 0), event("z", 4)]
    assert answers_to(f"{query} SCORING POSTERIOR", *events) == answers_to(query, *events) == about({"x z": 0.5 / 0.75})


# ---------------------------------------------------------------- ENDING OPEN

OPEN = "ENDING OPEN WITHIN 4"


def test_a_negative_at_the_end() -> None:
    query = f"(x, !y) FROM e WHERE x.reader = 'x' AND y.reader = 'y' {OPEN}"
    (match,) = matches(bound(query), {"e": [event("x", 3)]})
    assert match == {"t": 7, "t_start": 3, "probability": 1.0, "x": event("x", 3)}
    assert answers_to(query, event("x", 3), event("y", 3), event("y1", 7.25)) == {"x": 1.0}
    assert answers_to(query, event("x", 3), event("y", 7)) == {}
    lost = f"{query} MISS y 0.5 DELAY y UNIFORM(0, 8)"
    assert answers_to(lost, event("x", 3)) == about({"x": 0.5 / 0.75})


def test_a_tail_that_may_be_missing() -> None:
    query = f"(x, y, !n, z) FROM e WHERE {READERS} AND n.reader = 'n' {OPEN} MISS y 0.5, z 0.25"
    query += " DELAY y UNIFORM(0, 1), z UNIFORM(0, 8)"
    # y and z within 4: y within 1, z in the rest of 4.
    both = 0.125 * integrate.quad(lambda s: (4 - s) / 8, 0, 1)[0]
    assert answers_to(query, event("x", 3)) == about({"x - -": both})
    assert answers_to(query, event("x", 3), event("y", 4)) == about({"x - -": both, "x y -": 0.25 * 3 / 8})
    assert answers_to(query, event("x", 3), event("z", 7), event("z1", 7.25)) == about({"x - -": both, "x - z": 0.5})
    # A reading of n excludes matches in which it is between the events around it.
    assert answers_to(query, event("x", 3), event("y", 6), event("z", 6.5), event("n", 5)) == {
        "x y z": 1.0, "x y -": pytest.approx(0.25 / 8),
    }  # fmt: skip
    posterior = f"{query} SCORING POSTERIOR"
    assert answers_to(posterior, event("x", 3), event("y", 4)) == about(
        {"x y -": 0.25 * 3 / 8 / (0.25 * 3 / 8 + 5 / 8)}
    )
    assert answers_to(posterior, event("x", 3), event("y", 4), event("z", 7)) == {"x y z": 1.0}


def test_the_time_of_an_open_ending_is_the_close() -> None:
    query = bound("(x, !y) FROM g WHERE x.reader = 'x' AND y.reader = 'y' ENDING OPEN WITHIN 2.5 SECONDS")
    start = datetime(2026, 1, 31, 23, 59, 58, tzinfo=UTC)
    rows = [{"id": "x", "reader": "x", "t": start}]
    assert [match["t"] for match in matches(query, {"g": rows})] == [start + timedelta(seconds=2.5)]
    late = {"id": "y", "reader": "y", "t": start + timedelta(seconds=2.5)}
    assert matches(query, {"g": [*rows, late]}) == []


# ---------------------------------------------------------------- EMIT


def test_expired_sequences() -> None:
    query = f"(x, y, z) FROM e WHERE {READERS} WITHIN 4 EMIT EXPIRED"
    assert answers_to(query, event("x", 0)) == {"x - -!": 1.0}
    # y continues x, and nothing continues y.
    assert answers_to(query, event("x", 0), event("y", 1)) == {"x y -!": 1.0}
    assert answers_to(query, event("x", 0), event("y", 1), event("z", 5)) == {"x y -!": 1.0}
    assert answers_to(query, event("x", 0), event("y", 5)) == {"x - -!": 1.0}
    assert answers_to(query, event("x", 0), event("y", 1), event("z", 4)) == {"x y z": 1.0}
    # Two continuations, one of which expires.
    assert answers_to(query, event("x", 0), event("y1", 1), event("y2", 4), event("z", 3)) == {
        "x y1 z": 1.0, "x y2 -!": 1.0,
    }  # fmt: skip
    (expired,) = matches(bound(query), {"e": [event("x", 3)]})
    assert expired == {
        "t": 7, "t_start": 3, "probability": 1.0, "x": event("x", 3), "y": None, "z": None, "status": "expired",
    }  # fmt: skip
    assert answers_to(query, event("y", 1), event("z", 2)) == {}


def test_expired_sequences_with_missing_components() -> None:
    query = f"(x, y, z) FROM e WHERE {READERS} MISS y 0.5 DELAY y UNIFORM(0, 1) WITHIN 4 EMIT EXPIRED"
    assert answers_to(query, event("x", 0), event("z", 2)) == {"x - z": 0.5}
    # The match is below the threshold, so the sequence expires.
    assert answers_to(f"{query} THRESHOLD 0.6", event("x", 0), event("z", 2)) == {"x - -!": 1.0}
    # Only the first component opens a window.
    query = f"(x, y, z) FROM e WHERE {READERS} MISS x 0.5 DELAY x UNIFORM(0, 1) WITHIN 4 EMIT EXPIRED"
    assert answers_to(query, event("y", 1)) == {}
    assert answers_to(query, event("y", 1), event("z", 2)) == {"- y z": 0.5}


def test_a_negative_before_the_close_prevents_expiry() -> None:
    query = f"(x, !n, z) FROM e WHERE {XZ} AND n.reader = 'n' WITHIN 4 EMIT EXPIRED"
    assert answers_to(query, event("x", 0)) == {"x -!": 1.0}
    assert answers_to(query, event("x", 0), event("n", 4)) == {}
    assert answers_to(query, event("x", 0), event("n", 4.25), event("z", 4.25)) == {"x -!": 1.0}
    lost = f"{query} MISS n 0.5 DELAY n UNIFORM(0, 8)"
    assert answers_to(lost, event("x", 0)) == about({"x -!": 0.5 / 0.75})
    assert answers_to(f"{lost} THRESHOLD 0.7", event("x", 0)) == {}


def test_a_complete_match_excluded_by_a_negative_does_not_expire() -> None:
    query = f"(!n, x, z) FROM e WHERE {XZ} AND n.reader = 'n' WITHIN 4 EMIT EXPIRED"
    events = [event("n", 0), event("x", 1), event("z", 3)]
    assert answers_to(query, *events) == {}
    assert answers_to(query, *events[:2]) == {"x -!": 1.0}


def test_conditions_on_undecided_components_do_not_apply_to_partial_matches() -> None:
    query = f"(x, z) FROM e WHERE {XZ} AND z.temp[0] > 5 AND x.temp < z.temp[0] WITHIN 4 EMIT EXPIRED"
    assert answers_to(query, event("x", 0, temp=1)) == {"x -!": 1.0}


def test_the_best_of_a_trigger() -> None:
    query = f"(x, y, z) FROM e WHERE {READERS} MISS y 0.5 DELAY y UNIFORM(0, 8) EMIT BEST"
    events = [event("x1", 0), event("x2", 1), event("y1", 2), event("y2", 2), event("z1", 5), event("z2", 5)]
    # The latest one, from the last component to the first; events at the same time are ordered by their keys.
    assert answers_to(query, *events) == {"x2 y2 z1": 1.0, "x2 y2 z2": 1.0}
    # Both gaps have the probability of the loss: the latest x is best. Then, the longest gap is the most probable.
    short = query.replace("UNIFORM(0, 8)", "UNIFORM(0, 4)")
    assert answers_to(short, *events[:2], *events[4:5]) == {"x2 - z1": 0.5}
    assert answers_to(query, *events[:2], *events[4:5]) == {"x1 - z1": 0.5 * 5 / 8}
    posterior = f"{short} SCORING POSTERIOR"
    assert answers_to(posterior, *events[:2], event("y", 0.5), event("z", 6)) == {"x1 y z": 1.0}


def test_the_best_of_expired_sequences_and_open_endings() -> None:
    query = f"(x, y, z) FROM e WHERE {READERS} {{}} MISS y 0.5 DELAY y UNIFORM(0, 8) EMIT BEST"
    events = [event("x1", 0), event("y1", 1), event("y2", 2), event("x2", 3), event("z1", 3.5)]
    assert answers_to(f"{query.format('WITHIN 4')}, EXPIRED", *events) == {"x1 y2 z1": 1.0}
    assert answers_to(f"{query.format('WITHIN 3')}, EXPIRED", *events[:-1]) == {"x1 y2 -!": 1.0, "x2 - -!": 1.0}
    assert answers_to(query.format("ENDING OPEN WITHIN 4"), *events) == {"x1 y2 z1": 1.0, "x2 - z1": 0.5 / 16}


def test_candidates_include_those_below_the_threshold() -> None:
    query = bound(f"(x, y, z) FROM e WHERE {READERS} MISS y 0.5 DELAY y UNIFORM(0, 8) THRESHOLD 0.9")
    below_threshold = candidates(query, {"e": [event("x", 0), event("z", 8)]})
    assert [candidate.probability for candidate in below_threshold] == [0.5]


# ---------------------------------------------------------------- empirical delays


def test_an_empirical_delay_in_a_query() -> None:
    query = bound(f"(x, y, z) FROM e WHERE {READERS} MISS y 0.5 DELAY y EMPIRICAL 'delays.csv'")
    delay = BoundDelay("EMPIRICAL", path="delays.csv", atoms=(2.0, 4.0))
    components = [replace(component, delay=component.delay and delay) for component in query.components]
    query = replace(query, components=tuple(components))
    rows = [event("x", 0), event("z1", 1.75), event("z2", 2), event("z3", 4)]
    assert named(query, matches(query, {"e": rows})) == {"x - z2": 0.25, "x - z3": 0.5}


# ---------------------------------------------------------------- the strategies

CLAUSES: dict[str, Any] = {
    "plain": {},
    "open": {"endings": ["OPEN"], "scorings": ["JOINT", "POSTERIOR"], "emits": ["", "BEST"]},
    "expired": {"emits": ["EXPIRED", "BEST, EXPIRED"], "scorings": ["", "POSTERIOR"]},
}


@pytest.mark.parametrize("clauses", CLAUSES)
def test_drawn_cases_cover_all_features_and_have_answers(clauses: str) -> None:
    cases = drawn(sequence_cases(**CLAUSES[clauses]), 60)
    seen = Counter[str]()
    for case in cases:
        query = bound_case(case)
        rows = list(itertools.chain.from_iterable(case.rows.values()))
        assert len(rows) <= 12
        answers = matches(query, case.rows, case.relations)
        times = [row["t"] for row in rows]
        seen.update(
            {
                "answered": bool(answers),
                "several": len(answers) > 1,
                "uncertain": any(match["probability"] < 1 for match in answers),
                "missing": any(None in match.values() for match in answers),
                "negative": "!" in case.workbook,
                "tied": len(set(times)) < len(times),
                "two streams": len(case.rows) == 2,
                "OR or NOT": " OR " in case.workbook or "NOT (" in case.workbook,
                "default": "[" in case.workbook,
                "hall": "hall(" in case.workbook,
                "touching": any(match["t"] == _close(match["t_start"], query.within) for match in answers),
                "EXPIRED": clauses != "expired" or any(match["status"] == "expired" for match in answers),
                **{kind: f" t {kind}" in case.workbook for kind in ("INTEGER", "DOUBLE", "TIMESTAMP")},
            }
        )
    assert seen["answered"] > len(cases) / 3
    assert min(seen.values()) > 0, seen


def _close(start: Any, within: float | None) -> Any:
    if within is None:
        return None
    return start + (timedelta(seconds=within) if isinstance(start, datetime) else within)


@examples(40)
@given(case=sequence_cases(emits=["", "BEST"], endings=["", "OPEN"], scorings=["", "POSTERIOR"]))
def test_answers_satisfy_the_definition(case: Case) -> None:
    query = bound_case(case)
    answers = matches(query, case.rows, case.relations)
    assert len(set(map(frozen, answers))) == len(answers)
    labels = [component.label for component in query.components if not component.negative]
    for match in answers:
        times = [match[label]["t"] for label in labels if match[label]]
        assert sorted(set(times)) == times
        assert match["t_start"] == times[0]
        assert 0 < match["probability"] <= 1 + 1e-12
        assert match["probability"] >= query.threshold * (1 - 1e-12)
        # A match without missing and negative components is certain.
        if len(times) == len(query.components):
            assert match["probability"] == 1


@given(case=sequence_cases())
def test_no_match_is_better_than_the_best(case: Case) -> None:
    query = bound_case(case)
    every = matches(query, case.rows, case.relations)
    best = matches(replace(query, emit=frozenset({"best"})), case.rows, case.relations)
    assert {frozen(match) for match in best} <= {frozen(match) for match in every}
    last = query.components[-1].label
    triggers = Counter(frozenset(match[last].items()) for match in best)
    assert triggers.keys() == {frozenset(match[last].items()) for match in every}
    assert set(triggers.values()) <= {1}
    for one, other in itertools.product(best, every):
        assert one[last] != other[last] or one["probability"] >= other["probability"] * (1 - 1e-12)
