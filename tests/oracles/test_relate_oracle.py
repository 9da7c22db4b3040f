"""The oracle of RELATE, compared with small cases solved by hand and with sampling."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from anabranch.relate.query import COMPOSITE, SIMPLE
from tests.drawn import drawn, examples
from tests.oracles.relate import RELATIONS, Entity, NoWorld, entity, probability, sampled, worlds
from tests.relate.strategies import COMMON, DEFAULT, DIFFERING, Case, cases

ALL, SOME = None, 1


def probability_of(a: Entity, outer: int | None, relation: str, inner: int | None, b: Entity) -> Fraction:
    """The probability of `RELATE outer a relation inner b`; the relation may be composite, or a union with OR."""
    relations = relation.split(" OR ")
    return probability(a, b, outer, inner, frozenset().union(*(COMPOSITE.get(name, (name,)) for name in relations)))


# ---------------------------------------------------------------- relations and quantifiers


def test_exactly_one_of_the_13_holds() -> None:
    assert tuple(RELATIONS) == SIMPLE
    intervals = list(itertools.combinations(range(6), 2))
    for x, y in itertools.product(intervals, repeat=2):
        assert sum(holds(*x, *y) for holds in RELATIONS.values()) == 1


@pytest.mark.parametrize(
    ("relation", "interval"),
    [
        ("PRECEDES", (0, 3)), ("MEETS", (0, 4)), ("OVERLAPS", (0, 6)), ("STARTS", (4, 6)), ("DURING", (5, 6)),
        ("FINISHES", (5, 8)), ("EQUALS", (4, 8)), ("PRECEDED BY", (9, 10)), ("MET BY", (8, 9)),
        ("OVERLAPPED BY", (5, 9)), ("STARTED BY", (4, 9)), ("CONTAINS", (3, 9)), ("FINISHED BY", (3, 8)),
    ],
)  # fmt: skip
def test_each_relation_to_the_interval_from_4_to_8(relation: str, interval: tuple[int, int]) -> None:
    a, b = entity(interval), entity((4, 8))
    assert [name for name in SIMPLE if probability_of(a, SOME, name, SOME, b)] == [relation]
    assert probability_of(a, ALL, relation, ALL, b) == 1


# Three segments of A, of which two intersect segments of B.
A = entity([0, 2, 5, 7, 20, 21])
B = entity([1, 2, 2 + Fraction(1, 2), 3, 6, 9])
TOUCHED = entity([0, 1, 2, 7])


@pytest.mark.parametrize(
    ("a", "outer", "inner", "b", "holds"),
    [
        (A, SOME, SOME, B, True), (A, 2, SOME, B, True), (A, 3, SOME, B, False), (A, ALL, SOME, B, False),
        (A, SOME, 2, B, False), (A, SOME, ALL, B, False), (A, 4, SOME, B, False),
        # (0, 1) touches one segment of A, (2, 7) touches two, one of them only at its end.
        (TOUCHED, SOME, 2, A, True), (TOUCHED, 2, 2, A, False), (TOUCHED, ALL, SOME, A, True),
        (TOUCHED, SOME, 3, A, False), (TOUCHED, SOME, ALL, A, False),
    ],
)  # fmt: skip
def test_the_quantifiers_of_certain_entities(
    a: Entity, outer: int | None, inner: int | None, b: Entity, holds: bool
) -> None:
    assert probability_of(a, outer, "INTERSECTS", inner, b) == holds


def test_the_outer_quantifier_belongs_to_the_first_operand() -> None:
    one, two = entity([0, 9]), entity([1, 2, 3, 4])
    assert probability_of(two, 2, "INTERSECTS", SOME, one) == 1
    assert probability_of(one, 2, "INTERSECTS", SOME, two) == 0
    assert probability_of(one, SOME, "INTERSECTS", 2, two) == 1


def test_an_opening_event_without_a_closing_one_opens_no_segment() -> None:
    assert probability_of(entity([0, 1, 2]), ALL, "PRECEDES", ALL, entity([3, 4, 5])) == 1
    assert probability_of(entity([0]), ALL, "PRECEDES", SOME, entity([3, 4])) == 1
    assert probability_of(entity([0]), SOME, "PRECEDES", SOME, entity([3, 4])) == 0


# ---------------------------------------------------------------- lost events


def test_one_lost_end_is_uniform_in_its_window() -> None:
    a = entity([0, None, 10, 11])
    assert probability_of(a, SOME, "PRECEDES", SOME, entity([4, 12])) == Fraction(4, 10)
    assert probability_of(a, 2, "INTERSECTS", SOME, entity([4, 12])) == Fraction(6, 10)


def test_a_run_is_uniform_order_statistics() -> None:
    # The larger of two uniform times on (0, 10) is below 4 with probability 0.4^2; the smaller with 1 - 0.6^2.
    a = entity([0, None, None, 10])
    early = entity([4, 20])
    assert probability_of(a, ALL, "STARTS BEFORE", ALL, early) == Fraction(16, 100)
    assert probability_of(a, SOME, "PRECEDES", SOME, early) == Fraction(64, 100)


def test_lost_events_of_both_entities_interleave() -> None:
    # Two ends, both uniform on (0, 10).
    a, b = entity([0, None, 10, 11]), entity([0, None, 10, 11])
    assert probability_of(a, SOME, "STARTS", SOME, b) == Fraction(1, 2)
    # A uniform time is the smallest of three with probability 1/3, and between the two others with probability 1/3.
    a, b = entity([-1, None], windows={1: (0, 10)}), entity([0, None, None, 10])
    assert probability_of(a, SOME, "OVERLAPS", SOME, b) == Fraction(2, 3)
    assert probability_of(a, SOME, "INTERSECTS", 2, b) == Fraction(1, 3)
    assert probability_of(a, SOME, "CONTAINS", SOME, b) == Fraction(2, 3)


def test_figure_6_of_the_paper() -> None:
    # Two congested sectors. In the second, the end of the first jam and the start of the other are lost.
    a, b = entity([0, 2, 4, 6]), entity([1, None, None, 10])
    assert len(list(worlds(a, b))) == 10
    assert probability_of(a, SOME, "INTERSECTS", SOME, b) == 1
    # The second segment of a intersects none of b if one lost event is before 4 and the other after 6: 2 * 3 * 4 / 9^2.
    assert probability_of(a, 2, "INTERSECTS", SOME, b) == 1 - Fraction(24, 81)
    assert probability_of(a, ALL, "INTERSECTS", SOME, b) == 1 - Fraction(24, 81)


def test_lost_first_and_last_events_reach_to_the_horizon() -> None:
    a = entity([None, 4, 6, None], (0, 10))
    assert probability_of(a, SOME, "STARTS BEFORE", SOME, entity([1, 20])) == Fraction(1, 4)
    assert probability_of(a, SOME, "ENDS AFTER", SOME, entity([-1, 9])) == Fraction(1, 4)
    assert probability_of(entity([None, None], (0, 10)), ALL, "DURING", ALL, entity([2, 7])) == Fraction(1, 4)


def test_a_tie_with_a_lost_event_has_probability_0() -> None:
    a, b = entity([0, None, 10, 11]), entity([0, 5, 10, 11])
    for relation in ("MEETS", "MET BY", "FINISHES", "FINISHED BY"):
        assert probability_of(a, SOME, relation, SOME, b) == 0
    assert probability_of(a, 2, "EQUALS", SOME, b) == 0
    assert probability_of(a, SOME, "EQUALS", SOME, b) == 1
    assert probability_of(a, 2, "STARTS OR STARTED BY OR EQUALS", SOME, b) == 1


# ---------------------------------------------------------------- windows


def test_a_window_narrows_the_range_between_the_neighbours() -> None:
    a = entity([0, None, 10, 11], windows={1: (2, 6)})
    assert probability_of(a, SOME, "PRECEDES", SOME, entity([5, 12])) == Fraction(3, 4)


def test_the_neighbours_narrow_a_window() -> None:
    a = entity([0, None, 10, 11], windows={1: (-5, 40)})
    assert probability_of(a, SOME, "PRECEDES", SOME, entity([4, 12])) == Fraction(4, 10)


def test_overlapping_windows_are_uniform_on_ordered_times() -> None:
    # (0, 2) x (1, 3) without the half square in which the second would come first: 7/2.
    a = entity([None, None], windows={0: (0, 2), 1: (1, 3)})
    assert probability_of(a, SOME, "STARTS BEFORE", SOME, entity([1, 9])) == Fraction(2, 1) / Fraction(7, 2)
    assert probability_of(a, SOME, "DURING", SOME, entity([1, 2])) == Fraction(1, 2) / Fraction(7, 2)
    # Without the order of the two events, it would be 1/2.
    assert probability_of(a, SOME, "ENDS AFTER", SOME, entity([-1, 2])) == Fraction(2, 1) / Fraction(7, 2)


def test_disjoint_windows_are_independent() -> None:
    a = entity([None, None], windows={0: (0, 2), 1: (2, 4)})
    assert probability_of(a, SOME, "CONTAINS", SOME, entity([1, 3])) == Fraction(1, 4)


@pytest.mark.parametrize(
    "broken",
    [
        entity([3, 2]),
        entity([2, 2]),
        entity([None, None], windows={0: (3, 4), 1: (1, 2)}),
        entity([None, 2], windows={0: (2, 4)}),
    ],
)
def test_a_contradictory_entity_is_refused(broken: Entity) -> None:
    with pytest.raises(NoWorld, match="no times fit"):
        probability_of(broken, SOME, "INTERSECTS", SOME, A)


def test_an_entity_as_arrays() -> None:
    times, lo, hi = entity([0, None, 4], windows={1: (1, 2)}).arrays
    np.testing.assert_array_equal(times, [0, np.nan, 4])
    np.testing.assert_array_equal(lo, [0, 1, 4])
    np.testing.assert_array_equal(hi, [0, 2, 4])


# ---------------------------------------------------------------- consistency, and comparison with sampling


@examples(25)
@given(case=cases(wide=True))
def test_the_probabilities_of_worlds_sum_to_1(case: Case) -> None:
    assert sum(world.weight for world in worlds(case.a, case.b)) == 1
    for world in worlds(case.a, case.b):
        assert sorted(set(world.a)) == list(world.a)
        assert sorted(set(world.b)) == list(world.b)


@examples(25)
@given(case=cases(most_lost=4))
def test_all_and_some_are_complementary(case: Case) -> None:
    others = frozenset(SIMPLE) - case.relations
    for outer, inner in itertools.product((ALL, SOME), repeat=2):
        opposite = probability(case.a, case.b, SOME if outer is ALL else ALL, SOME if inner is ALL else ALL, others)
        assert probability(case.a, case.b, outer, inner, case.relations) == 1 - opposite


@pytest.mark.parametrize(
    ("a", "outer", "relation", "inner", "b"),
    [
        (entity([0, None, None, 8]), 2, "INTERSECTS", SOME, entity([1, None, 5, 7])),
        (entity([None, 3, None, None], (-1, 9)), ALL, "CONTAINS OR DURING", SOME, entity([None, None, 3, 6], (0, 9))),
        (entity([None, None, None, 7], (0, 9)), SOME, "STARTS BEFORE", ALL, entity([2, None, None, 9])),
        (
            entity([None, None, 6, 7], windows={0: (0, 3), 1: (1, 5)}), SOME, "CONTAINS OR OVERLAPPED BY", SOME,
            entity([1, 2, None, None], windows={2: (2, 5), 3: (3, 8)}),
        ),
        (
            entity([None, None, None, 9], windows={0: (0, 4), 1: (2, 5), 2: (1, 20)}), 2, "INTERSECTS", SOME,
            entity([1, None, 5, 8]),
        ),
    ],
)  # fmt: skip
def test_enumeration_agrees_with_sampling(
    a: Entity, outer: int | None, relation: str, inner: int | None, b: Entity
) -> None:
    relations = frozenset().union(*(COMPOSITE.get(name, (name,)) for name in relation.split(" OR ")))
    exact = float(probability(a, b, outer, inner, relations))
    assert 0.05 < exact < 0.95
    # Five standard errors of 100,000 draws.
    assert sampled(a, b, outer, inner, relations, seed=5) == pytest.approx(exact, abs=5 * 0.5 / 100_000**0.5)


@examples(25)
@given(case=cases(wide=True))
def test_enumeration_agrees_with_sampling_on_drawn_cases(case: Case) -> None:
    query = (case.a, case.b, case.outer, case.inner, case.relations)
    # Six standard errors, because there are many cases. With probability 0 or 1, all draws agree.
    exact = float(probability(*query))
    assert sampled(*query, draws=20_000) == pytest.approx(exact, abs=6 * (exact * (1 - exact) / 20_000) ** 0.5)


def test_sampling_gives_up_if_almost_no_draw_is_in_order() -> None:
    a = entity([None, None], windows={0: (1, 4), 1: (0, Fraction(1) + Fraction(1, 10**9))})
    with pytest.raises(NoWorld, match="almost no draws"):
        sampled(a, A, SOME, SOME, frozenset(SIMPLE), draws=10)


# ---------------------------------------------------------------- the strategies


@pytest.mark.parametrize("windows", [DEFAULT, COMMON, DIFFERING])
def test_drawn_cases_have_ties_and_uncertain_answers(windows: str) -> None:
    drawn_cases = drawn(cases(windows), 50)
    tied = [bool({e for e in case.a.events if isinstance(e, Fraction)} & {*case.b.events}) for case in drawn_cases]
    answers = [probability(case.a, case.b, case.outer, case.inner, case.relations) for case in drawn_cases]
    assert sum(tied) > len(drawn_cases) / 4
    assert sum(0 < answer < 1 for answer in answers) > len(drawn_cases) / 8
