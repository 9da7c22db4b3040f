"""AT LEAST in CONSTRAIN: maximal sets, when they are given, and how many there may be."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.constrain.local import ConstrainRun
from tests.constrain.simple import PAIR, STREAM, assert_same_as_alone, at, query, rows_of_events
from tests.constrain.test_early import by_step
from tests.drawn import examples
from tests.local import local_job, prepared_query
from tests.rows import RowsRun

from anabranch.constrain import sets
from anabranch.errors import TooLarge

NEAR = "AT LEAST 2 v FROM e WHERE SPAN(v, v) <= 3 AND DISTANCE(v, v) <= 1"


def test_a_set_is_given_when_no_event_can_extend_it() -> None:
    run = ConstrainRun(local_job(query(NEAR), "q", live=True), 3)
    for rows in (
        [at("a", 1, "A"), at("b", 2, "A")],
        [at("z", 5, "Z", 9.0)],
        [at("z", 6, "Z", 9.0)],
        [at("z", 7, "Z", 9.0)],
    ):
        run.step({"e": rows})
    # The watermark is 2 behind. An event at 4, which is 3 after the first event, could extend the set.
    assert [sum(step.values()) for step in by_step(run)] == [0, 0, 0, 1]


def test_a_part_of_a_set_is_no_answer() -> None:
    rows = [at("a", 1, "A"), at("b", 2, "A"), at("c", 4, "A"), at("d", 5, "A"), at("e", 9, "A")]
    run = ConstrainRun(local_job(query(NEAR), "q"), 7)
    run.run([{"e": [row]} for row in rows])
    found = sorted("".join(event["id"] for event in answer["v"]) for answer in run.answers())
    assert found == ["abc", "bcd"]


def test_the_events_of_the_other_variables_are_fixed() -> None:
    text = "u, AT LEAST 1 v FROM e WHERE u.kind = 'U' AND v.kind = 'V' AND SPAN(u, v) <= 2 AND SPAN(v, v) <= 9"
    rows = [at("u", 1, "U"), at("w", 4, "U"), at("a", 0, "V"), at("b", 2, "V"), at("c", 6, "V")]
    run = ConstrainRun(local_job(query(text), "q"), 1)
    run.run([{"e": rows}])
    found = sorted((answer["u"]["id"], "".join(event["id"] for event in answer["v"])) for answer in run.answers())
    assert found == [("u", "ab"), ("w", "bc")]


def cliques(n: int, edges: set[tuple[int, int]], least: int) -> set[tuple[int, ...]]:
    """The maximal cliques of a graph, by trying to extend every clique."""
    agree = [[(min(i, j), max(i, j)) in edges for j in range(n)] for i in range(n)]
    maximal: set[tuple[int, ...]] = set()
    frontier: set[tuple[int, ...]] = {(i,) for i in range(n)}
    while frontier:
        larger = set()
        for clique in frontier:
            more = [i for i in range(n) if i not in clique and all(agree[i][j] for j in clique)]
            larger |= {tuple(sorted((*clique, i))) for i in more}
            if not more and len(clique) >= least:
                maximal.add(clique)
        frontier = larger
    return maximal


@examples(40)
@given(st.randoms(use_true_random=False), st.integers(0, 11), st.integers(1, 4), st.sampled_from([0.3, 0.6, 0.9]))
def test_the_sets_of_any_graph_are_found(rng: random.Random, n: int, least: int, density: float) -> None:
    """Candidates that agree in an irregular way, which few conditions cause."""
    edges = {(i, j) for j in range(n) for i in range(j) if rng.random() < density}
    pairs = sorted([*edges, *((j, i) for i, j in edges)])
    anchor = np.arange(n)
    row, candidate = np.array(pairs, np.int64).reshape(-1, 2).T.copy()
    groups = sets.Groups(anchor, row, candidate, least, "q: v")

    def agreements(_: Any, members: Any, starts: Any) -> Any:
        blocks = [members[a:b] for a, b in zip(starts, starts[1:], strict=False)]
        matrices = [[(min(i, j), max(i, j)) in edges for i in block for j in block] for block in blocks]
        return np.array([entry for matrix in matrices for entry in matrix], np.bool_)

    found = [tuple(sorted(events)) for _, rows in groups.maximal_sets(agreements) for events in rows.tolist()]
    assert Counter(found) == Counter(cliques(n, edges, least))


def test_a_long_run_in_many_cells() -> None:
    """Enough events for a grid with several cells, and sets at the borders of cells and periods."""
    rng = np.random.default_rng(3)
    t, (x, y) = np.sort(rng.integers(0, 200, 400)), rng.uniform(0.0, 60.0, (2, 400))
    rows = [{"id": str(i), "kind": "A", "t": int(t[i]), "x": float(x[i]), "y": float(y[i])} for i in range(len(t))]
    near = (abs(t - t[:, None]) <= 12) & (np.hypot(x - x[:, None], y - y[:, None]) <= 9)
    expected = cliques(len(t), {(i, j) for i, j in np.argwhere(near).tolist() if i < j}, 3)
    text = query("AT LEAST 3 v FROM e WHERE SPAN(v, v) <= 12 AND DISTANCE(v, v) <= 9")
    for n_buckets, cuts in ((1, [0, 400]), (16, [0, 400]), (5, [0, 111, 222, 333, 400])):
        run = ConstrainRun(local_job(text, "q", live=True), n_buckets)
        run.run([{"e": rows[a:b]} for a, b in zip(cuts, cuts[1:], strict=False)])
        found = [tuple(sorted(int(event["id"]) for event in answer["v"])) for answer in run.answers()]
        assert Counter(found) == Counter(expected)


def test_too_many_sets_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs of events exclude each other: one event of each pair makes a set, so 12 pairs have 4,096 sets."""
    monkeypatch.setattr(sets, "MOST_STEPS", 1000)
    rows = [at(id_, t, kind) for t, id_ in enumerate("abcdefghijkl") for kind in "AB"]
    job = local_job(query("AT LEAST 2 v FROM e WHERE v.id <> v.id AND SPAN(v, v) <= 99"), "q")
    message = (
        r"q: v: an event with 22 others begins too many sets; tighten its bounds, or write v\*2 for sets of one size"
    )
    with pytest.raises(TooLarge, match=message):
        ConstrainRun(job, 1).run([{"e": rows}])
    monkeypatch.setattr(sets, "MOST_CANDIDATES", 10)
    with pytest.raises(TooLarge, match="22 events agree with one, of at most 10"):
        ConstrainRun(job, 1).run([{"e": rows}])


TEXTS = [
    PAIR,
    "AT LEAST 2 v FROM e WHERE v.kind = 'B' AND SPAN(v, v) <= 3 AND DISTANCE(v, v) <= 1",
    "u, AT LEAST 1 v, NOT w FROM e WHERE u.kind = 'A' AND u.t - v.t IN [0, 4] AND u.t - w.t IN [-3, 4] AND w.kind = 'C'"
    " AND v.id = v.id AND SPAN(v, v) <= 2 AND u.id = v.id AND w.id = v.id",
]


@examples(25)
@given(st.data(), rows_of_events(12), st.sampled_from(["", " EMIT EARLY"]))
def test_queries_in_one_pass_give_the_same_answers_as_alone(data: st.DataObject, rows: list, early: str) -> None:
    assert_same_as_alone(data, rows, TEXTS, early)


def test_keys_of_sets_of_different_sizes_are_different_groups() -> None:
    rows = [at("a", 1, "A"), at("b", 1, "A"), at("b", 20, "A"), at("a", 21, "A"), at("a", 40, "A"), at("c", 41, "A")]
    rows += [at("b", 42, "A")]
    run = RowsRun(local_job(f"{STREAM} CREATE QUERY q AS CONSTRAIN {NEAR} PER KEYS;", "q"))
    run.run([{"e": rows}])
    found = sorted(("".join(key["id"] for key in row["v"]), row["count"]) for row in run.rows)
    assert found == [("ab", 2), ("abc", 1)]


def test_the_plan_says_how_sets_grow() -> None:
    plan = prepared_query(query(f"{NEAR} AND v.kind = 'A'"), "q").plan
    steps = {step.id: step.does for step in plan.steps}
    assert plan.classification == "configuration of 2 or more events"
    assert "each event of v has kind = 'A' (stream e)" in plan.why
    assert steps["grow"] == "from the first event of v to all maximal sets that begin with it"
    assert steps["wait"].endswith("passed every event that can be added, at most 3 after its latest event")
    assert plan.cost.endswith("the number of sets of v can grow exponentially with these events")
    assert [name for name, _ in plan.graph.nodes] == ["AT LEAST 2 v"]
    assert (
        "SPAN(v, v) <= 60" in prepared_query(query("AT LEAST 2 v FROM e WHERE DISTANCE(v, v) <= 1"), "q").plan.streams
    )
