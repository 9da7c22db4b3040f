"""Safe plans of queries that are rarely drawn at random: nested sequences, and projections between them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.local import local_job
from tests.oracles.pattern import bind_query, probabilities
from tests.pattern.local import LocalRun, run_whole

from anabranch.pattern import archive, joint
from anabranch.pattern.interval_plans import by_plan
from anabranch.pattern.safe_plan import compile_plan

DECLARATIONS = """
CREATE STREAM r KEY (x STRING, y STRING) VALUE (v STRING) TIME t INTEGER MODEL {model};
CREATE STREAM s KEY (x STRING) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE STREAM u KEY (x STRING) VALUE (v STRING) TIME t INTEGER MODEL {model};
CREATE RELATION hall (v STRING);
"""

#: First x and y, then x without y, then neither.
NESTED = "r(x, y, a) THEN r(x, y, 'b') THEN s(x, _) THEN u(_, {last})"


def random_rows(seed: int, model: str) -> dict[str, list[dict]]:
    """A few keys at four instants, with few enough worlds to enumerate."""
    draw = np.random.default_rng(seed)
    rows: dict[str, list[dict]] = {"r": [], "s": [], "u": []}
    for x, y in (("k1", "m"), ("k1", "n"), ("k2", "m")):
        rows["r"] += key_rows(draw, {"x": x, "y": y}, model, (1, 2))
    for x in ("k1", "k2"):
        rows["s"] += key_rows(draw, {"x": x}, "INDEPENDENT", (2, 3))
    rows["u"] += key_rows(draw, {"x": "z"}, model, (3, 4))
    return rows


def key_rows(draw: np.random.Generator, key: dict[str, str], model: str, times: tuple[int, ...]) -> list[dict]:
    """A key that has, at each instant, one possible value or *nothing*."""
    rows = []
    for t, value, before in zip(times, "ab", (None, "a"), strict=True):
        for previous in {None, before} if model == "MARKOV" else {None}:
            came_from = {"prev_v": previous} if model == "MARKOV" else {}
            rows.append({**key, **came_from, "t": t, "v": value, "p": draw.random()})
    return rows


@pytest.mark.parametrize("model", ["INDEPENDENT", "MARKOV"])
@pytest.mark.parametrize("kleene", ["", "+<x | TRUE>"])
@pytest.mark.parametrize(("last", "where"), [("_", ""), ("c", " WHERE hall(c)")])
def test_a_projection_between_two_sequences(model: str, kleene: str, last: str, where: str) -> None:
    pattern = NESTED.format(last=last).replace("s(x, _)", f"s(x, _){kleene}") + where
    workbook = DECLARATIONS.format(model=model) + f"CREATE QUERY q AS PATTERN {pattern};"
    job = local_job(workbook, "q", {"hall": [("b",)]})
    assert by_plan(job.spec.analysis) is not None
    assert job.spec.analysis.plan.part.head.variables == ("x",)
    for seed in range(5):
        rows = random_rows(seed, model)
        want = probabilities(bind_query(workbook, "q"), rows, {"hall": {("b",)}})
        got = run_whole(job, rows)
        assert want
        assert got == pytest.approx({(t,): p for t, p in want.items()}, abs=1e-12)


def test_probabilities_near_0_keep_their_digits() -> None:
    workbook = DECLARATIONS.format(model="INDEPENDENT") + (
        "CREATE QUERY q AS PATTERN r(x, y, 'a') THEN r(x, y, 'b') THEN u(_, _);"
    )
    rows = {
        "r": [{"x": "k", "y": "m", "t": t, "v": v, "p": 1e-9} for t, v in ((1, "a"), (2, "b"))],
        "u": [{"x": "z", "t": 3, "v": "a", "p": 1e-9}],
    }
    assert run_whole(local_job(workbook, "q"), rows)[(3,)] == pytest.approx(1e-27, rel=1e-9)


def test_later_goals_do_not_make_an_unsafe_part_safe() -> None:
    pattern = "s(x, _) THEN r(_, y, 'b') THEN s(x, _) THEN u(_, 'a')"
    job = local_job(DECLARATIONS.format(model="INDEPENDENT") + f"CREATE QUERY q AS PATTERN {pattern};", "q")
    refusal = compile_plan(job.spec.analysis.query.goals)
    assert isinstance(refusal, str)
    assert refusal == compile_plan(job.spec.analysis.query.goals[:-1])


SEPARATE = """
CREATE STREAM at KEY (person STRING) VALUE (place STRING) TIME t INTEGER MODEL MARKOV;
CREATE RELATION staff (person STRING);
CREATE QUERY q AS PATTERN {pattern};
"""


def walks(people: tuple[str, ...], seed: int) -> dict[str, list[dict]]:
    """People who are at a or b, or nowhere."""
    draw = np.random.default_rng(seed)
    rows = []
    for person in people:
        for t in (1, 2, 3):
            for previous in (None,) if t == 1 else ("a", "b"):
                for place, p in zip("ab", draw.dirichlet(np.ones(3)), strict=False):
                    rows.append({"person": person, "place": place, "prev_place": previous, "t": t, "p": p})
    return {"at": rows}


@pytest.mark.parametrize(
    ("pattern", "classification"),
    [
        ("at(p, a)[p <> 'sue'] THEN at(p, b) THEN at('sue', c)", "safe"),
        ("at(p, 'a') THEN at(p, 'b') THEN at('sue', c) WHERE p <> 'sue'", "safe"),
        ("at(p, 'a')[staff(p)] THEN at(p, 'b') THEN at(q, c)[NOT staff(q)]", "safe"),
        ("at(p, 'a')[staff(p)] THEN at(p, 'b') THEN at('sue', c)", "unsafe"),
        ("at(p, 'a')[p < 'm'] THEN at(p, 'b') THEN at(q, c)[q > 'n'] GROUP BY q", "unsafe"),
    ],
)
def test_plans_if_filters_or_the_data_separate_the_keys(
    pattern: str, classification: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MOST_WORK", 0)
    monkeypatch.setattr(joint, "MOST_WORK", 0)
    monkeypatch.setattr(joint, "WORK_PER_INSTANT", 0)
    workbook = SEPARATE.format(pattern=pattern)
    job = local_job(workbook, "q", {"staff": [("ann",), ("bob",)]})
    assert job.spec.analysis.classification == classification
    for seed in range(3):
        rows = walks(("ann", "bob", "sue"), seed)
        run = LocalRun(job, 1)
        run.step(rows, end=True)
        assert {row["method"] for outcome in run.outcomes for row in outcome.answers.to_pylist()} == {"exact"}
        want = probabilities(bind_query(workbook, "q"), rows, {"staff": {("ann",), ("bob",)}})
        got = run.answers()
        assert got == pytest.approx({key if isinstance(key, tuple) else (key,): p for key, p in want.items()}, abs=1e-9)


def test_a_plan_is_not_used_if_a_key_of_the_data_feeds_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_WORK", 0)
    monkeypatch.setattr(joint, "MOST_WORK", 0)
    monkeypatch.setattr(joint, "WORK_PER_INSTANT", 0)
    pattern = "at(p, 'a')[staff(p)] THEN at(p, 'b') THEN at('sue', c)"
    run = LocalRun(local_job(SEPARATE.format(pattern=pattern), "q", {"staff": [("ann",), ("sue",)]}), 1)
    run.step(walks(("ann", "bob", "sue"), 0), end=True)
    assert {row["method"] for outcome in run.outcomes for row in outcome.answers.to_pylist()} == {"sampling"}
