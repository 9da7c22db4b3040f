"""SEQUENCE examples with known answers: boundaries, ties, endings and refused queries."""

from __future__ import annotations

import itertools
from math import exp
from typing import Any

import pytest
from tests.local import FINGERPRINT, bound_query, declared, in_context, local_job, make_job, prepared_query
from tests.sequence.local import SequenceRun

from anabranch.binding.binder import bind
from anabranch.errors import DataError, StateError
from anabranch.planning.layouts import layouts_for
from anabranch.planning.planner import Planner
from anabranch.transport.checks import LATE
from anabranch.transport.finishing import finish_table
from anabranch.transport.job import JobContext

STREAM = "CREATE STREAM r KEY (tag STRING) VALUE (reader STRING) TIME t INTEGER;"
XYZ = "x.reader = 'x' AND y.reader = 'y' AND z.reader = 'z' AND x.tag = y.tag AND y.tag = z.tag"


def rows_of(*events: tuple[str, int], tag: str = "a") -> list[dict[str, Any]]:
    return [{"tag": tag, "reader": reader, "t": t} for reader, t in events]


def answers_to(query: str, rows: list[dict[str, Any]], relations: Any = None, n_buckets: int = 2) -> list[tuple]:
    """The answers as (t_start, t, time of each component, probability)."""
    workbook = f"{STREAM} CREATE RELATION rates (reader STRING, p DOUBLE); CREATE QUERY q AS SEQUENCE {query};"
    run = SequenceRun(local_job(workbook, "q", relations or {}), n_buckets)
    run.step({"r": rows}, end=True)
    tuples = []
    for answer in run.answers():
        events = [answer[name] and answer[name]["t"] for name in answer if name in "xyz"]
        tuples.append((answer["t_start"], answer["t"], *events, round(answer["probability"], 9)))
    return sorted(tuples, key=str)


def test_the_window_includes_its_end() -> None:
    query = "(x, z) FROM r WHERE x.reader = 'x' AND z.reader = 'z' AND x.tag = z.tag WITHIN 5"
    assert answers_to(query, rows_of(("x", 0), ("z", 5))) == [(0, 5, 0, 5, 1.0)]
    assert answers_to(query, rows_of(("x", 0), ("z", 6))) == []


def test_a_default_in_a_condition_on_a_negative_alone_has_no_effect() -> None:
    rows = rows_of(("x", 0), ("y", 1), ("z", 2), ("x", 10), ("y", 11), ("z", 12), tag="a")
    rows[1]["tag"] = "b"
    xz = "x.reader = 'x' AND z.reader = 'z' AND x.tag = z.tag"
    for tag in ("y.tag", "y.tag['c']"):
        query = f"(x, !y, z) FROM r WHERE {xz} AND y.reader = 'y' AND {tag} = 'b' WITHIN 5"
        assert answers_to(query, rows) == [(10, 12, 10, 12, 1.0)]


def test_events_at_one_time_do_not_follow_each_other() -> None:
    query = f"(x, !y, z) FROM r WHERE {XYZ} WITHIN 5"
    assert answers_to(query, rows_of(("x", 1), ("z", 1))) == []
    # A negative at the time of a neighbour is not between them.
    assert answers_to(query, rows_of(("x", 1), ("y", 1), ("z", 3))) == [(1, 3, 1, 3, 1.0)]
    assert answers_to(query, rows_of(("x", 1), ("y", 3), ("z", 3))) == [(1, 3, 1, 3, 1.0)]
    assert answers_to(query, rows_of(("x", 1), ("y", 2), ("z", 3))) == []


def test_a_negative_at_the_head_applies_from_the_beginning_of_the_window() -> None:
    query = "(!y, z) FROM r WHERE y.reader = 'y' AND z.reader = 'z' AND y.tag = z.tag WITHIN 5"
    assert answers_to(query, rows_of(("y", 0), ("z", 5))) == []
    assert answers_to(query, rows_of(("y", 0), ("z", 6))) == [(6, 6, 6, 1.0)]


def test_single_gaps_can_be_limited() -> None:
    query = f"(x, y, z) FROM r WHERE {XYZ} AND y.t - x.t <= 2 AND z.t - y.t <= 3 WITHIN 10"
    assert answers_to(query, rows_of(("x", 0), ("y", 2), ("z", 5))) == [(0, 5, 0, 2, 5, 1.0)]
    assert answers_to(query, rows_of(("x", 0), ("y", 3), ("z", 5))) == []
    assert answers_to(query, rows_of(("x", 0), ("y", 2), ("z", 6))) == []


def test_equalities_hold_across_a_missing_component() -> None:
    query = f"(x, y, z) FROM r WHERE {XYZ} MISS y 0.5 DELAY y UNIFORM(0, 1) WITHIN 9"
    rows = [*rows_of(("x", 0), tag="a"), *rows_of(("z", 5), tag="b")]
    assert answers_to(query, rows) == []
    assert answers_to(query, rows_of(("x", 0), ("z", 5))) == [(0, 5, 0, None, 5, 0.5)]


def test_a_default_may_be_a_column_of_another_component() -> None:
    xyz = "x.reader = 'x' AND y.reader = 'y' AND z.reader = 'z'"
    losses = "MISS x 0.5, y 0.5 DELAY x UNIFORM(0, 1), y UNIFORM(0, 1) WITHIN 9"
    rows = [*rows_of(("y", 2), tag="a"), *rows_of(("z", 5), tag="b")]
    # The tag of y is used if x is missing; if both are missing, the condition is skipped, or 'c' is used.
    assert answers_to(f"(x, y, z) FROM r WHERE {xyz} AND x.tag[y.tag] = z.tag {losses}", rows) == [
        (5, 5, None, None, 5, 0.25)
    ]
    assert answers_to(f"(x, y, z) FROM r WHERE {xyz} AND x.tag[y.tag['c']] <> z.tag {losses}", rows) == [
        (2, 5, None, 2, 5, 0.5), (5, 5, None, None, 5, 0.25),
    ]  # fmt: skip
    assert answers_to(f"(x, y, z) FROM r WHERE {xyz} AND x.tag[y.tag['b']] <> z.tag {losses}", rows) == [
        (2, 5, None, 2, 5, 0.5)
    ]


def test_columns_that_are_equal_and_defaults_of_each_other_need_no_defaults() -> None:
    """The query of the paper: without combined equalities, x and z could have different tags."""
    equal = "x.tag[y.tag] = y.tag[x.tag] AND y.tag[z.tag] = z.tag[y.tag]"
    query = f"(x, !y, z) FROM r WHERE x.reader = 'x' AND y.reader = 'y' AND z.reader = 'z' AND {equal} WITHIN 9"
    assert answers_to(query, [*rows_of(("x", 0), tag="a"), *rows_of(("z", 5), tag="b")]) == []
    assert answers_to(query, rows_of(("x", 0), ("z", 5))) == [(0, 5, 0, 5, 1.0)]
    assert answers_to(query, rows_of(("x", 0), ("y", 2), ("z", 5))) == []


def test_both_ends_may_be_open() -> None:
    query = (
        "(!x, y, !z) FROM r WHERE x.reader = 'x' AND y.reader = 'y' AND z.reader = 'z' AND x.tag = y.tag AND "
        "y.tag = z.tag WITHIN 4 ENDING OPEN"
    )
    rows = rows_of(("x", 0), ("y", 4), ("x", 10), ("y", 15), ("y", 20), ("z", 24), ("y", 30), ("z", 35), ("u", 99))
    for batches, emit in itertools.product(([rows], [[row] for row in rows]), ("ALL", "BEST", "NEXT")):
        run = SequenceRun(local_job(f"{STREAM} CREATE QUERY q AS SEQUENCE {query} EMIT {emit};", "q"), 2)
        run.run([{"r": batch} for batch in batches])
        # 4 is within the window after x, and 20 before z; both ends are inclusive.
        assert sorted((answer["y"]["t"], answer["t"]) for answer in run.answers()) == [(15, 19), (30, 34)]


def test_probabilities_of_excluding_alternatives_are_summed() -> None:
    workbook = """
      CREATE STREAM r KEY (tag STRING) VALUE (reader STRING) TIME t INTEGER MODEL INDEPENDENT;
      CREATE QUERY q AS SEQUENCE (x, !y, !w, z) FROM r
        WHERE x.reader = 'x' AND y.reader IN ('y', 'v') AND w.reader IN ('y', 'w') AND z.reader = 'z' WITHIN 9;"""
    events = [("a", "x", 0, 0.5), ("a", "y", 1, 0.3), ("a", "v", 1, 0.2), ("b", "w", 1, 0.1), ("a", "z", 2, 0.8)]
    rows = [dict(zip(("tag", "reader", "t", "p"), event, strict=True)) for event in events]
    run = SequenceRun(local_job(workbook, "q"), 2)
    run.step({"r": rows}, end=True)
    (answer,) = run.answers()
    assert answer["probability"] == pytest.approx(0.5 * 0.8 * (1 - 0.3 - 0.2) * (1 - 0.1), abs=1e-12)
    assert answer["x"] == rows[0]


def test_alternatives_of_or_that_exclude_events_with_probabilities_are_refused() -> None:
    workbook = """
      CREATE STREAM r KEY (tag STRING) VALUE (reader STRING) TIME t INTEGER MODEL INDEPENDENT;
      CREATE QUERY q AS SEQUENCE (x, !y, z) FROM r
        WHERE x.reader = 'x' AND y.reader = 'y' AND z.reader = 'z' AND (x.tag = y.tag OR y.tag = z.tag) WITHIN 9;"""
    assert prepared_query(workbook, "q").plan.refused.code == "uncertain-or"


def test_an_open_ending_is_decided_when_the_window_closes() -> None:
    query = (
        "(x, !y) FROM r WHERE x.reader = 'x' AND y.reader = 'y' AND x.tag = y.tag "
        "MISS y 0.5 DELAY y EXPONENTIAL(4) WITHIN 4 ENDING OPEN"
    )
    not_happened = exp(-1) / (0.5 * (1 - exp(-1)) + exp(-1))
    assert answers_to(query, rows_of(("x", 1))) == [(1, 5, 1, round(not_happened, 9))]
    assert answers_to(query, rows_of(("x", 1), ("y", 5))) == []
    assert answers_to(query, rows_of(("x", 1), ("y", 6))) == [(1, 5, 1, round(not_happened, 9))]


def test_a_missing_ending_has_the_probability_that_it_happened_and_was_lost() -> None:
    query = (
        "(x, z) FROM r WHERE x.reader = 'x' AND z.reader = 'z' AND x.tag = z.tag "
        "MISS z 0.1 DELAY z UNIFORM(0, 8) WITHIN 4 ENDING OPEN"
    )
    assert answers_to(query, rows_of(("x", 0), ("z", 3))) == [(0, 4, 0, 3, 1.0), (0, 4, 0, None, 0.05)]


def test_a_stream_reports_an_open_ending_when_the_watermark_has_passed_it() -> None:
    workbook = f"""{STREAM} CREATE QUERY q AS SEQUENCE (x, !y) FROM r
      WHERE x.reader = 'x' AND y.reader = 'y' AND x.tag = y.tag WITHIN 4 ENDING OPEN;"""
    run = SequenceRun(local_job(workbook, "q"), 1)
    n_answers = []
    for rows in (rows_of(("x", 1)), rows_of(("u", 5)), rows_of(("u", 6))):
        run.step({"r": rows})
        n_answers.append(len(run.answers()))
    # At 5, a reading of y within the window can still arrive.
    assert n_answers == [0, 0, 1]


def test_expired_sequences_are_reported_with_emit_expired() -> None:
    query = f"(x, y, z) FROM r WHERE {XYZ} WITHIN 5 EMIT EXPIRED"
    workbook = f"{STREAM} CREATE QUERY q AS SEQUENCE {query};"
    run = SequenceRun(local_job(workbook, "q"), 2)
    run.step({"r": [*rows_of(("x", 0), ("y", 2), ("x", 10), ("y", 11), ("z", 12), ("x", 20))]}, end=True)
    result = finish_table(run.job.finishing(), run.outcomes[-1].answers)
    assert result.column_names == ["t", "t_start", "probability", "x", "y", "z", "status"]
    statuses = sorted((answer["status"], answer["t"], answer["y"] and answer["y"]["t"]) for answer in run.answers())
    assert statuses == [("expired", 5, 2), ("expired", 25, None), ("matched", 12, 11)]


def test_emit_best_gives_the_best_match_of_each_last_event() -> None:
    query = f"(x, y, z) FROM r WHERE {XYZ} MISS x 0.5, y 0.5 DELAY x UNIFORM(0, 1), y UNIFORM(0, 1) WITHIN 9"
    rows = rows_of(("x", 0), ("x", 1), ("y", 2), ("z", 4), ("z", 5))
    assert len(answers_to(query, rows)) > 2
    assert answers_to(f"{query} EMIT BEST", rows) == [(1, 4, 1, 2, 4, 1.0), (1, 5, 1, 2, 5, 1.0)]


def test_emit_next_gives_the_first_match_of_each_first_event() -> None:
    query = f"(x, y, z) FROM r WHERE {XYZ} WITHIN 9 EMIT NEXT"
    rows = rows_of(("x", 0), ("y", 1), ("x", 2), ("y", 3), ("y", 4), ("z", 5), ("z", 6), ("x", 7), ("z", 8))
    # One match per first event, with the next event for every component; none for the last x, which has no y.
    assert answers_to(query, rows) == [(0, 5, 0, 1, 5, 1.0), (2, 5, 2, 3, 5, 1.0)]


def test_emit_next_prefers_observed_events_and_ignores_matches_below_the_threshold() -> None:
    query = f"(x, y, z) FROM r WHERE {XYZ} MISS y 0.5 DELAY y UNIFORM(0, 1) WITHIN 9 EMIT NEXT"
    rows = rows_of(("x", 0), ("z", 2), ("y", 3), ("z", 4), ("z", 5))
    # The first match ends at 2; without y, its probability is 0.5. The event y at 3 begins matches of its own only if
    # x may be missing.
    assert answers_to(query, rows) == [(0, 2, 0, None, 2, 0.5)]
    assert answers_to(f"{query} THRESHOLD 0.6", rows) == [(0, 4, 0, 3, 4, 1.0)]
    # Of matches that end together, the one without missing events.
    assert answers_to(query, rows[:1] + rows[2:]) == [(0, 4, 0, 3, 4, 1.0)]


def test_a_first_event_with_a_match_does_not_expire_with_emit_next() -> None:
    workbook = f"{STREAM} CREATE QUERY q AS SEQUENCE (x, y, z) FROM r WHERE {XYZ} WITHIN 5 EMIT NEXT, EXPIRED;"
    events = rows_of(("x", 0), ("y", 1), ("z", 2), ("y", 3), ("x", 10), ("y", 11), ("y", 12), ("u", 20), ("u", 21))
    for batches in ([events], [[event] for event in events]):
        run = SequenceRun(local_job(workbook, "q"), 2)
        run.run([{"r": batch} for batch in batches])
        found = sorted((answer["status"], answer["t"], answer["y"]["t"]) for answer in run.answers())
        # Without NEXT, the sequences (0, 3) and (10, 12) would expire too.
        assert found == [("expired", 15, 11), ("matched", 2, 1)]


def test_an_older_event_may_match_if_a_newer_one_does_not() -> None:
    """After the newer event, there was not enough time for the missing event."""
    query = f"(x, y, z) FROM r WHERE {XYZ} MISS y 0.5 DELAY y UNIFORM(2, 4) WITHIN 20 THRESHOLD 0.3"
    assert answers_to(query, rows_of(("x", 0), ("x", 9), ("z", 10))) == [(0, 10, 0, None, 10, 0.5)]


@pytest.mark.parametrize(
    ("condition", "answers"),
    [
        ("x.warmth + z.warmth IN (2, 5, 7, 11)", [2, 7]), ("NOT (x.warmth + z.warmth IN (2, 5, 7, 11))", [3, 6, 9]),
        ("NOT (x.warmth > z.warmth AND x.t = 0)", [6, 7, 9]),
    ],
)  # fmt: skip
def test_conditions_on_two_events_are_programs(condition: str, answers: list[int]) -> None:
    """Evaluated for pairs with a total warmth of 2, 3, 6, 7 and 9; the first event always has warmth 2."""
    workbook = (
        "CREATE STREAM r KEY (tag STRING) VALUE (reader STRING, warmth INTEGER) TIME t INTEGER;\nCREATE QUERY q AS "
        f"SEQUENCE (x, z) FROM r WHERE x.reader = 'x' AND z.reader = 'z' AND x.tag = z.tag AND {condition} WITHIN 9;"
    )
    rows = [{"tag": "a", "reader": "x", "warmth": 2, "t": 0}]
    rows += [{"tag": "a", "reader": "z", "warmth": warmth, "t": t} for t, warmth in enumerate((0, 1, 4, 5, 7), 1)]
    run = SequenceRun(local_job(workbook, "q"), 1)
    run.step({"r": rows}, end=True)
    assert sorted(2 + answer["z"]["warmth"] for answer in run.answers()) == answers


def test_the_best_path_to_an_event_may_go_through_an_older_one() -> None:
    """The older y is much nearer to x, and hardly further from z: only the match with it reaches the threshold."""
    query = (
        f"(x, !n, y, !m, z) FROM r WHERE {XYZ} AND n.reader = 'n' AND n.tag = x.tag AND m.reader = 'm' "
        "AND m.tag = x.tag MISS n 0.5, m 0.5 DELAY n UNIFORM(0, 10), m UNIFORM(0, 100) WITHIN 20 THRESHOLD 0.665"
    )
    likely = 0.9 / (0.5 * 0.1 + 0.9) * 0.95 / (0.5 * 0.05 + 0.95)
    assert answers_to(query, rows_of(("x", 0), ("y", 1), ("y", 5), ("z", 6))) == [(0, 6, 0, 1, 6, round(likely, 9))]


@pytest.mark.parametrize(("condition", "answers"), [("goes", [1, 3, 4]), ("NOT goes", [2])])
def test_a_relation_may_be_looked_up_with_two_events(condition: str, answers: list[int]) -> None:
    workbook = (
        f"{STREAM} CREATE RELATION goes (one STRING, other STRING); CREATE QUERY q AS SEQUENCE (x, z) FROM r "
        f"WHERE x.reader = 'x' AND z.reader <> 'x' AND {condition}(x.reader, z.reader) WITHIN 9;"
    )
    goes = [("x", "a"), ("x", "c"), ("x", "d"), ("q", "b")]
    run = SequenceRun(local_job(workbook, "q", {"goes": goes}), 1)
    run.step({"r": rows_of(("x", 0), ("a", 1), ("b", 2), ("c", 3), ("d", 4))}, end=True)
    assert sorted(answer["t"] for answer in run.answers()) == answers


def test_a_null_is_in_no_relation() -> None:
    workbook = (
        f"{STREAM} CREATE RELATION by (one STRING, other STRING, way STRING); CREATE QUERY q AS SEQUENCE (x, z) FROM r "
        "WHERE x.reader = 'x' AND z.reader = 'z' AND {}by(x.reader, z.reader, NULL) WITHIN 9;"
    )
    for negated in ("", "NOT "):
        run = SequenceRun(local_job(workbook.format(negated), "q", {"by": [("x", "z", "foot")]}), 1)
        run.step({"r": rows_of(("x", 0), ("z", 1))}, end=True)
        assert run.answers() == []


def test_conditions_on_two_events_are_explained() -> None:
    query = "(x, z) FROM r WHERE x.reader = 'x' AND z.reader = 'z' AND x.tag < z.tag WITHIN 9"
    catalog = declared(f"{STREAM} CREATE QUERY q AS SEQUENCE {query};")
    steps = [step.does for step in Planner(catalog).prepare(catalog.query("q")).plan.steps if step.id == "filter"]
    assert steps == ["x.tag < z.tag: tested as soon as its events are found"]


def test_loss_rates_by_reader() -> None:
    where = "x.reader = 'x' AND y.reader IN ('y', 'w') AND z.reader = 'z' AND x.tag = y.tag AND y.tag = z.tag"
    query = f"(x, y, z) FROM r WHERE {where} MISS BY reader FROM rates, x 0 DELAY y UNIFORM(0, 1), x UNIFORM(0, 1)"
    rows = rows_of(("x", 0), ("z", 5))
    equal_rates = {"rates": [("y", 0.25), ("w", 0.25), ("z", 0.9)]}
    assert answers_to(f"{query} WITHIN 9", rows, equal_rates) == [(0, 5, 0, None, 5, 0.25)]
    for rates, reason in (
        ([("y", 0.25), ("w", 0.5)], r"rates has 2 rates \(w and y\) for the reader of y; add MISS y"),
        ([("x", 0.25)], r"rates has no rate for the reader of y; add MISS y with a number, or a row to rates"),
        ([("y", 1.0)], r"rates: the probability that y loses a reading is 1; it must be 0 or more and below 1"),
    ):
        with pytest.raises(DataError, match=reason):
            answers_to(f"{query} WITHIN 9", rows, {"rates": rates})


def test_a_negative_without_a_key_applies_to_all_keys() -> None:
    query = "(x, !y, z) FROM r WHERE x.reader = 'x' AND y.reader = 'y' AND z.reader = 'z' AND x.tag = z.tag WITHIN 9"
    rows = [row for tag in "abcd" for row in rows_of(("x", 0), ("z", 4), tag=tag)]
    assert len(answers_to(query, rows, n_buckets=7)) == 4
    assert answers_to(query, [*rows, *rows_of(("y", 2), tag="other")], n_buckets=7) == []


def test_a_null_key_equals_no_other() -> None:
    workbook = """CREATE STREAM r KEY (id INTEGER) VALUE (tag STRING, reader STRING) TIME t INTEGER;
      CREATE QUERY q AS SEQUENCE (x, z) FROM r WHERE x.reader = 'x' AND z.reader = 'z' AND x.tag = z.tag
        MISS x 0.5 DELAY x UNIFORM(0, 1) WITHIN 5;"""
    run = SequenceRun(local_job(workbook, "q"), 2)
    rows = [{"id": t, "tag": None, "reader": reader, "t": t} for reader, t in (("x", 1), ("z", 3))]
    run.step({"r": rows}, end=True)
    assert [(answer["x"], answer["z"]["t"]) for answer in run.answers()] == [(None, 3)]


@pytest.mark.parametrize("n_buckets", [1, 3])
def test_queries_in_a_group_give_the_same_answers_as_alone(n_buckets: int) -> None:
    texts = [
        f"(x, !y, z) FROM r WHERE {XYZ} MISS x 0.1, y 0.1 DELAY x UNIFORM(0, 9), y EXPONENTIAL(3) WITHIN 9",
        "(x, z) FROM r WHERE x.reader = 'x' AND z.reader = 'z' WITHIN 3",
        "(x, !y) FROM r WHERE x.reader = 'x' AND y.reader = 'y' AND x.tag = y.tag WITHIN 3 ENDING OPEN",
        "(z, x) FROM r WHERE (x.reader = 'x' OR x.reader = 'y') AND z.reader = 'z' AND x.tag = z.tag",
    ]
    rows = [row for tag in "abc" for row in rows_of(("x", 0), ("y", 2), ("x", 4), ("z", 6), ("y", 8), tag=tag)]
    catalog = declared(STREAM + "".join(f"CREATE QUERY q{n} AS SEQUENCE {text};" for n, text in enumerate(texts)))
    assert [[query.name for query in group] for group in Planner(catalog).groups(catalog.queries())] == [
        ["q0", "q1", "q2", "q3"]
    ]
    bounds = [bind(query, catalog) for query in catalog.queries()]
    together = SequenceRun(
        make_job(bounds, JobContext(layouts_for(bounds[0].streams), {}, FINGERPRINT, folders=(".",) * len(bounds))),
        n_buckets,
    )
    together.step({"r": rows}, end=True)
    for number, text in enumerate(texts):
        alone = SequenceRun(local_job(f"{STREAM} CREATE QUERY q AS SEQUENCE {text};", "q"), n_buckets)
        alone.step({"r": rows}, end=True)
        assert alone.answers()
        assert sorted(map(repr, together.answers(number))) == sorted(map(repr, alone.answers()))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("(x, z) FROM r WHERE x.reader = 'x'", "'z' has no condition of its own, so it could be any event"),
        ("(x, z) FROM r WHERE (x.reader = 'x' AND z.reader = 'z') OR x.tag = z.tag", "'x' has no condition of its own"),
    ],
)
def test_every_component_needs_a_condition_of_its_own(query: str, message: str) -> None:
    catalog = declared(f"{STREAM} CREATE QUERY q AS SEQUENCE {query};")
    refused = Planner(catalog).prepare(catalog.query("q")).plan.refused
    assert refused is not None
    assert message in refused.message


def test_a_component_with_its_own_stream_needs_no_condition() -> None:
    other = "CREATE STREAM s KEY (tag STRING) TIME t INTEGER;"
    catalog = declared(f"{STREAM} {other} CREATE QUERY q AS SEQUENCE (x, z) FROM r AS x, s AS z;")
    assert Planner(catalog).prepare(catalog.query("q")).plan.refused is None


@pytest.mark.parametrize(
    "where",
    [
        " AND ".join(["(x.tag = z.tag OR x.reader = z.tag)"] * 7),
        f"x.tag > z.tag OR ({' AND '.join(['(x.tag = z.tag OR x.reader < z.reader OR z.tag = x.reader)'] * 4)})",
    ],
)
def test_too_many_alternatives_are_refused(where: str) -> None:
    catalog = declared(f"{STREAM} CREATE QUERY q AS SEQUENCE (x, z) FROM r WHERE {where};")
    refused = Planner(catalog).prepare(catalog.query("q")).plan.refused
    assert refused is not None
    assert "has more than 64 alternatives" in refused.message


def test_rows_before_the_watermark_are_quarantined() -> None:
    stream = STREAM.replace(";", " WATERMARK 2;")
    text = f"{stream} CREATE QUERY q AS SEQUENCE (x, z) FROM r WHERE x.reader = 'x' AND z.reader = 'z' WITHIN 9;"
    run = SequenceRun(local_job(text, "q"), 1)
    run.step({"r": rows_of(("x", 5))})
    run.step({"r": rows_of(("x", 3), ("x", 2))})
    run.step({"r": rows_of(("z", 6))}, end=True)
    assert sorted(answer["x"]["t"] for answer in run.answers()) == [3, 5]
    assert [(row["stream"], row["reason"]) for row in run.rejected] == [("r", LATE)]
    assert run.counts.late == 1


def test_state_of_another_query_is_refused() -> None:
    text = f"{STREAM} CREATE QUERY q AS SEQUENCE (x, z) FROM r WHERE x.reader = 'x' AND z.reader = 'z' WITHIN 9;"
    job = local_job(text, "q")
    saved = job.operator().save()
    with pytest.raises(StateError, match="another"):
        in_context(job, fingerprint="f" * 32).operator().open(saved)


def test_a_query_without_a_window_cannot_stream() -> None:
    text = f"{STREAM} CREATE QUERY q AS SEQUENCE (x, z) FROM r WHERE x.reader = 'x' AND z.reader = 'z';"
    catalog = declared(text)
    assert "without WITHIN" in Planner(catalog).prepare(catalog.query("q")).plan.streams
    assert bound_query(text, "q").within is None


def test_two_columns_that_equal_a_third_are_equal() -> None:
    query = "(x, z) FROM r WHERE x.tag = z.tag AND x.reader = z.tag AND z.reader = 'z'"
    rows = [*rows_of(("a", 1), ("b", 2), ("z", 3)), *rows_of(("b", 2), tag="b")]
    assert answers_to(query, rows) == [(1, 3, 1, 3, 1.0)]
