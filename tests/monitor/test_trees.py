"""Constraints that connect values like a tree: the probability is integrated value by value."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import inf

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.cases import Case, Draw, Rows
from tests.drawn import examples
from tests.local import bound_query
from tests.monitor.arrays import no_shapes
from tests.monitor.local import run_of
from tests.oracles.monitor_worlds import World, probability
from tests.splits import splits

from anabranch.monitor.analysis import analyse
from anabranch.monitor.explain import plan
from anabranch.monitor.kernel.probabilities import Constraints, joint_probability
from anabranch.monitor.kernel.trees import group_probability

HALF = Fraction(1, 2)
#: A form: a value and the one that is subtracted from it, or -1; and the intervals in which it must be.
Form = tuple[tuple[int, int], tuple[tuple[float, float], ...]]


@dataclass(frozen=True)
class Group:
    """Values that forms connect: their predictions, errors and standard deviations (0 for uniform)."""

    centers: tuple[float, ...]
    errors: tuple[float, ...]
    forms: tuple[Form, ...]
    spreads: tuple[float, ...] = ()
    shares: tuple[tuple[float, ...], ...] = ()

    @property
    def constraints(self) -> Constraints:
        """The forms as input of the kernel."""
        n = len(self.centers)
        sets = [interval for _, intervals in self.forms for interval in intervals]
        shares = np.array(self.shares or [(1.0,)] * n)
        spreads = np.zeros_like(shares)
        spreads[:, 0] = self.spreads or 0.0
        return Constraints(
            np.array([form for form, _ in self.forms], np.int64),
            np.cumsum([0, *(len(intervals) for _, intervals in self.forms)]).astype(np.int64),
            np.array(sets, np.float64).reshape(-1, 2),
            np.ones((1, len(self.forms)), np.bool_),
            shares,
            spreads,
            np.zeros(n, np.int64),
            no_shapes(),
        )

    def by_tree(self) -> float:
        """The probability, integrated value by value if the values are a tree."""
        return float(group_probability(0, np.array(self.centers), self.constraints, np.array(self.errors)))

    def by_nested_integrals(self) -> float:
        """The probability by the general method."""
        return float(joint_probability(0, np.array(self.centers), self.constraints, np.array(self.errors)))

    def is_true(self, world: World) -> bool:
        """Whether true values satisfy all forms."""
        for (plus, minus), intervals in self.forms:
            number = world[plus] - (world[minus] if minus >= 0 else 0)
            if not any(low < number < high for low, high in intervals):
                return False
        return True


@st.composite
def intervals(draw: Draw, numbers: st.SearchStrategy[float]) -> tuple[tuple[float, float], ...]:
    """One interval, bounded on one or both sides, or two with a gap between them."""
    low, high = sorted([draw(numbers), draw(numbers)])
    high = high if high > low else low + 1.0
    return draw(
        st.sampled_from([((low, high),), ((low, high),), ((-inf, high),), ((low, inf),), ((-inf, low), (high, inf))])
    )


@st.composite
def groups(draw: Draw, step: float | None, sizes: tuple[int, int] = (2, 4)) -> Group:
    """Values, each connected with an earlier one, and sometimes constrained alone."""
    n = draw(st.integers(*sizes))
    if step is None:
        numbers, amounts = st.floats(-3, 3), st.floats(0.1, 2)
    else:
        numbers = st.integers(-4, 4).map(lambda count: count * step)
        amounts = st.sampled_from([1, 2, 3] if n < 4 else [1, 2]).map(lambda count: count * step)
    forms = []
    for value in range(1, n):
        other = draw(st.sampled_from([value - 1, draw(st.integers(0, value - 1))]))
        form = draw(st.sampled_from([(other, value), (value, other)]))
        forms.append((form, draw(intervals(numbers))))
    for value in draw(st.lists(st.integers(0, n - 1), max_size=2, unique=True)):
        forms.append(((value, -1), draw(intervals(numbers))))
    errors = [draw(amounts) for _ in range(n)]
    if n > 2 and draw(st.booleans()):
        errors[draw(st.sampled_from([0, n - 1]))] = 0.0
    return Group(tuple(draw(numbers) for _ in range(n)), tuple(errors), tuple(forms))


@examples(60)
@given(groups(0.5))
def test_the_probability_is_the_share_of_worlds(group: Group) -> None:
    centers = {value: Fraction(center) for value, center in enumerate(group.centers)}
    errors = {value: Fraction(error) for value, error in enumerate(group.errors)}
    expected = probability(centers, errors, HALF, group.is_true)
    event("certain" if expected in (0, 1) else "uncertain")
    assert group.by_tree() == pytest.approx(float(expected), abs=1e-12)


@examples(60)
@given(groups(None))
def test_both_methods_agree(group: Group) -> None:
    assert group.by_tree() == pytest.approx(group.by_nested_integrals(), abs=1e-11)


@examples(30)
@given(groups(None, (2, 3)), st.lists(st.sampled_from([0.0, 0.1, 0.5, 3.0]), min_size=3, max_size=3))
def test_both_methods_agree_for_normal_errors(group: Group, ratios: list[float]) -> None:
    spreads = tuple(ratio * error for ratio, error in zip(ratios, group.errors, strict=False))
    normal = Group(group.centers, group.errors, group.forms, spreads)
    assert normal.by_tree() == pytest.approx(normal.by_nested_integrals(), abs=1e-9)


@examples(30)
@given(groups(None, (2, 3)), st.lists(st.sampled_from([0.5, 0.25, 0.8]), min_size=3, max_size=3))
def test_both_methods_agree_for_sums_of_errors(group: Group, parts: list[float]) -> None:
    shares = tuple((part, 1 - part) if value == 1 else (1.0, 0.0) for value, part in enumerate(parts))
    sums = Group(group.centers, group.errors, group.forms, shares=shares[: len(group.centers)])
    assert sums.by_tree() == pytest.approx(sums.by_nested_integrals(), abs=1e-11)


def test_a_cycle_is_integrated_by_the_general_method() -> None:
    forms = tuple(((u, v), ((-1.0, 1.0),)) for u, v in [(0, 1), (1, 2), (0, 2)])
    group = Group((0.0, 0.5, 1.0), (1.0, 1.0, 1.0), forms)
    expected = probability(
        dict(enumerate(map(Fraction, group.centers))), dict.fromkeys(range(3), 1), HALF, group.is_true
    )
    assert group.by_tree() == group.by_nested_integrals() == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.parametrize("n", [5, 6, 8])
def test_eight_values_are_exact(n: int) -> None:
    """Each of a row of values must be above the one before it; of n! orders, one is right."""
    forms = tuple(((value, value + 1), ((-inf, 0.0),)) for value in range(n - 1))
    group = Group((0.0,) * n, (1.0,) * n, forms)
    assert group.by_tree() * np.prod(np.arange(1.0, n + 1)) == pytest.approx(1.0, rel=1e-9)


# ---------------------------------------------------------------- queries

STREAM = (
    "CREATE STREAM e KEY (id STRING) VALUE (x DOUBLE, y DOUBLE) TIME t INTEGER MODEL PREDICTED ERROR {error} PERIOD 9;"
)


def chain_query(names: str, bound: float, clauses: str) -> str:
    near = " AND ".join(f"ABS({one}.x - {other}.x) <= {bound}" for one, other in pairwise(names))
    ordered = " AND ".join(f"{one}.id < {other}.id" for one, other in pairwise(names))
    return f"CREATE QUERY q AS MONITOR {', '.join(names)} FROM e WHERE {near} AND {ordered} {clauses};"


@st.composite
def chain_cases(draw: Draw) -> tuple[Case, Fraction]:
    """Objects that stand in a row, and the probability that all neighbours are near each other."""
    names = draw(st.sampled_from(["abc", "abcd"]))
    places = [draw(st.integers(-2, 2)) * 0.5 for _ in names]
    bound = draw(st.sampled_from([0.5, 1.0, 1.5]))
    clauses = draw(st.sampled_from(["SEMANTICS MAY", "SEMANTICS MAY WITHIN 2", "SEMANTICS MAY THRESHOLD 0.05"]))
    rows: Rows = {
        "e": [
            {"id": id, "t": draw(st.integers(0, 3)), "x": x, "x_rate": 0.0, "y": 0.0, "y_rate": 0.0}
            for id, x in zip(names, places, strict=True)
        ]
    }
    workbook = STREAM.format(error="1") + chain_query(names, bound, clauses)
    centers = {id: Fraction(x) for id, x in zip(names, places, strict=True)}

    def is_true(world: World) -> bool:
        return all(abs(world[one] - world[other]) <= bound for one, other in pairwise(names))

    expected = probability(centers, dict.fromkeys(names, Fraction(1)), HALF, is_true)
    return Case(workbook, "q", rows, {}), expected if "THRESHOLD" not in clauses or expected >= 0.05 else Fraction(0)


@examples(20)
@given(st.data(), chain_cases())
def test_three_and_four_names_in_batch_and_for_any_split(data: st.DataObject, drawn: tuple[Case, Fraction]) -> None:
    case, expected = drawn
    batches = data.draw(splits(case.rows))
    for rows in (run_of(case, [case.rows], 1).rows(), run_of(case, batches, live=True).rows()):
        probabilities = [row["probability"] for row in rows]
        assert probabilities == ([pytest.approx(float(expected), abs=1e-9)] if expected else [])


def test_moving_objects_have_the_probability_of_their_best_instant() -> None:
    """a comes to rest of the row at t = 4; the worlds at that instant have the highest probability."""
    rows: Rows = {
        "e": [
            {"id": id, "t": 0, "x": x, "x_rate": rate, "y": 0.0, "y_rate": 0.0}
            for id, x, rate in [("a", -4.0, 1.0), ("b", 0.5, 0.0), ("c", 0.5, 0.0)]
        ]
    }
    case = Case(STREAM.format(error="1") + chain_query("abc", 1, "SEMANTICS MAY"), "q", rows, {})
    (answer,) = run_of(case, [rows], 1).rows()
    centers = {"a": HALF, "b": HALF, "c": HALF}
    expected = probability(
        centers,
        dict.fromkeys("abc", Fraction(1)),
        HALF,
        lambda world: abs(world["a"] - world["b"]) <= 1 and abs(world["b"] - world["c"]) <= 1,
    )
    assert answer["probability"] == pytest.approx(float(expected), abs=1e-8)
    assert answer["sample"][0] == pytest.approx(4.5, abs=0.01)


def test_four_normal_errors_in_a_tree_are_accepted_and_in_a_cycle_refused() -> None:
    stream = STREAM.format(error="1 NORMAL 0.5")
    tree = plan(analyse(bound_query(stream + chain_query("abcd", 1, ""), "q")))
    assert tree.refused is None
    assert any("integrated value by value" in step.does for step in tree.steps)
    cycle = chain_query("abcd", 1, "").replace("WHERE", "WHERE ABS(a.x - d.x) <= 1 AND")
    refused = plan(analyse(bound_query(stream + cycle, "q"))).refused
    assert refused is not None
    assert "4 values with normal errors that constraints connect in a cycle (at most 3 are allowed)" in refused.message


def test_explain_says_how_shared_values_are_integrated() -> None:
    cycle = chain_query("abc", 1, "").replace("WHERE", "WHERE ABS(a.x - c.x) <= 1 AND")
    alone = "CREATE QUERY q AS MONITOR a FROM e WHERE a.x <= 1 AND a.y <= 2;"
    for query, method in [(cycle, "; constraints that share values are integrated jointly"), (alone, "")]:
        steps = plan(analyse(bound_query(STREAM.format(error="1") + query, "q"))).steps
        (weigh,) = [step.does for step in steps if step.id == "weigh"]
        assert weigh == f"find the highest probability over each region{method}"
