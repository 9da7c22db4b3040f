"""The probabilities of MONITOR: distributions of errors compared with integrals, joint ones with random true values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from scipy import integrate, stats
from tests.cases import Case
from tests.drawn import examples
from tests.monitor.definitions import EXPECTED, MAY, MUST, Prediction, QueryShape, satisfied_share
from tests.monitor.local import run_of
from tests.monitor.shapes import COLUMNS, ShapedCase, shaped_cases
from tests.monitor.test_sampled import SLACK, covers

from anabranch.monitor.kernel.distributions import at_most, density, difference

DRAWS = 40_000
ERRORS = (1.0, 0.25, 40.0, 3.0)
#: Standard deviations, in errors; 0 is uniform.
RATIOS = (0.0, 1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 1e3)

NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)

distributions = st.tuples(st.sampled_from(ERRORS), st.sampled_from(RATIOS)).map(
    lambda distribution: (distribution[0], distribution[0] * distribution[1])
)


def distribution_of(e: float, s: float) -> stats.rv_continuous:
    return stats.uniform(-e, 2 * e) if s == 0 else stats.truncnorm(-e / s, e / s, scale=s)


def cuts_of(e1: float, s1: float, e2: float, s2: float, z: float) -> list[float]:
    """Where the densities of two errors, the second one shifted by z, are not smooth or change fast."""
    steps = np.arange(-12.0, 12.5, 0.5)
    cuts = {-e1, e1, *(c for c in (z - e2, z + e2) if -e1 < c < e1)}
    for cut in (*(steps * s1), *(z + steps * s2)):
        cuts |= {float(cut)} if -e1 < cut < e1 else set()
    return sorted(cuts)


def probability_of_difference(z: float, e1: float, s1: float, e2: float, s2: float) -> float:
    """P(one error - the other <= z): the integral of one density times the other distribution, piece by piece."""
    one, other, total = distribution_of(e1, s1), distribution_of(e2, s2), 0.0
    for low, high in pairwise(cuts_of(e1, s1, e2, s2, z)):
        u = 0.5 * (high + low) + 0.5 * (high - low) * NODES
        total += float(0.5 * (high - low) * WEIGHTS @ (one.pdf(u) * other.sf(u - z)))
    return total


@given(distributions, st.floats(-1.2, 1.2))
def test_one_error(distribution: tuple[float, float], fraction: float) -> None:
    e, s = distribution
    assert at_most(fraction * e, e, s) == pytest.approx(distribution_of(e, s).cdf(fraction * e), abs=1e-9)
    if abs(fraction) <= 1:
        assert density(fraction * e, e, s) == pytest.approx(
            distribution_of(e, s).pdf(fraction * e), rel=1e-9, abs=1e-300
        )


@examples(50)
@given(distributions, distributions, st.floats(-1.05, 1.05))
def test_the_difference_of_two_errors(one: tuple[float, float], other: tuple[float, float], fraction: float) -> None:
    z = fraction * (one[0] + other[0])
    below, dense = difference(z, *one, *other)
    assert below == pytest.approx(probability_of_difference(z, *one, *other), abs=1e-9)
    step = 1e-4 * min(*(s or e for e, s in (one, other)), one[0], other[0])
    if abs(fraction) < 1:
        slope = (difference(z + step, *one, *other)[0] - difference(z - step, *one, *other)[0]) / (2 * step)
        assert dense == pytest.approx(slope, rel=1e-3, abs=1e-3 / max(one[0], other[0]))


PAIRS = [((1.0, 0.3), (2.0, 0.0)), ((1.0, 0.5), (0.5, 4.0)), ((3.0, 0.0), (1.0, 0.0))]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_the_difference_of_two_errors_by_another_integral(one: tuple[float, float], other: tuple[float, float]) -> None:
    for z in (-1.3, -0.2, 0.0, 0.7, 1.1):
        cuts = [cut for cut in (z - other[0], z, z + other[0]) if abs(cut) < one[0]]
        integral, _ = integrate.quad(
            lambda u, z=z: distribution_of(*one).pdf(u) * distribution_of(*other).sf(u - z),
            -one[0],
            one[0],
            points=cuts,
            epsabs=1e-11,
        )
        assert difference(z, *one, *other)[0] == pytest.approx(integral, abs=1e-9)


@given(distributions, st.floats(-1.2, 1.2))
def test_an_error_of_0_is_exact(distribution: tuple[float, float], fraction: float) -> None:
    e, s = distribution
    for probability in (difference(fraction * e, e, s, 0.0, 0.0)[0], difference(fraction * e, 0.0, 0.0, e, s)[0]):
        assert probability == pytest.approx(distribution_of(e, s).cdf(fraction * e), abs=1e-9)
    assert difference(-1e-300, 0.0, 0.0, 0.0, 0.0)[0] == 0
    assert difference(0.0, 0.0, 0.0, 0.0, 0.0)[0] == 1


# ---------------------------------------------------------------- random true values


def standard_errors(p: float, n: int = DRAWS) -> float:
    """Five standard errors of a share."""
    return 5 * math.sqrt(max(p * (1 - p), 1 / n) / n)


CLOSE = "CREATE STREAM e KEY (id INTEGER) VALUE (x DOUBLE, y DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR {} PERIOD 4;"


def without_rates(shaped: ShapedCase) -> ShapedCase:
    """The case with all rates 0, so that the probability is the same at all instants."""
    rates = {f"{column}_rate": 0.0 for column in COLUMNS}
    rows = {name: [row | rates for row in stream_rows] for name, stream_rows in shaped.case.rows.items()}
    predictions = tuple(replace(prediction, rates=dict.fromkeys(COLUMNS, 0.0)) for prediction in shaped.predictions)
    return ShapedCase(replace(shaped.case, rows=rows), predictions, shaped.query, shaped.ordered_keys)


@examples(20)
@given(shaped_cases(operands=(2, 3, 1), semantics=(EXPECTED, MAY), windows=(0,)).map(without_rates))
def test_without_rates_the_probability_is_the_share_of_true_values(shaped: ShapedCase) -> None:
    answers = run_of(shaped.case, [shaped.case.rows], 1).rows()
    event(f"{'some' if answers else 'no'} answers")
    for answer in answers[:3]:
        observed = satisfied_share(shaped.query, shaped.chosen(answer), answer["sample"], DRAWS, 7)
        assert abs(observed - answer["probability"]) <= standard_errors(answer["probability"]), (answer, observed)


@examples(20)
@given(shaped_cases(operands=(2, 1, 2), semantics=(EXPECTED, MAY)))
def test_no_instant_is_more_probable_than_the_answer(shaped: ShapedCase) -> None:
    answers = run_of(shaped.case, [shaped.case.rows], 1).rows()
    for answer in answers[:3]:
        chosen = shaped.chosen(answer)
        points = shaped.query.lattice(chosen, 0.5, 0.25)
        points = [point for point in points[:: len(points) // 6 + 1] if covers(answer, point)]
        points = [point for point in points if shaped.query.matches(chosen, np.array([point]), SLACK)[0]]
        for point in [*points, answer["sample"]]:
            observed = satisfied_share(shaped.query, chosen, point, DRAWS, 7)
            assert observed <= answer["probability"] + standard_errors(answer["probability"]), (answer, point, observed)


@examples(20)
@given(shaped_cases(operands=(2, 1), semantics=(EXPECTED, MAY), normals=(0, 1)))
def test_the_sample_is_near_the_most_probable_instant(shaped: ShapedCase) -> None:
    """It is 1/1000 of the way from there to the middle; errors so small that this matters are skipped."""
    for answer in run_of(shaped.case, [shaped.case.rows], 1).rows()[:3]:
        chosen = shaped.chosen(answer)
        if any(0 < prediction.errors[column] < 0.5 for prediction in chosen for column in prediction.errors):
            continue
        observed = satisfied_share(shaped.query, chosen, answer["sample"], DRAWS, 7)
        assert observed >= answer["probability"] - standard_errors(answer["probability"]) - 0.03, (answer, observed)


@pytest.mark.parametrize("distribution", ["1", "1 NORMAL 0.5", "2 NORMAL 20"])
@pytest.mark.parametrize("within", ["", " WITHIN 2"])
def test_three_operands_have_a_joint_probability(distribution: str, within: str) -> None:
    """The distances of b from a and from c depend on each other, so the product of both probabilities is too low."""
    error, spread = float(distribution.split()[0]), float(distribution.split()[-1]) if "NORMAL" in distribution else 0.0
    rows = [{"id": i, "t": 0.0, "x": 0.6 * i, "x_rate": 0.0, "y": 0.0, "y_rate": 0.0} for i in range(3)]
    query = "CREATE QUERY q AS MONITOR a, b, c FROM e WHERE a.id < b.id AND b.id < c.id AND "
    query += f"ABS(a.x - b.x) <= 1 AND ABS(b.x - c.x) <= 1 AND a.x > -0.5{within};"
    (answer,) = run_of(Case(f"{CLOSE.format(distribution)}\n{query}", "q", {"e": rows}, {}), [{"e": rows}], 1).rows()
    random = np.random.default_rng(3)
    a, b, c = (0.6 * i + distribution_of(error, spread).rvs(400_000, random_state=random) for i in range(3))
    observed = ((np.abs(a - b) <= 1) & (np.abs(b - c) <= 1) & (a > -0.5)).mean()
    assert abs(answer["probability"] - observed) <= standard_errors(float(observed), 400_000)


# ---------------------------------------------------------------- the three semantics


def with_semantics(shaped: ShapedCase, semantics: str) -> ShapedCase:
    """The same query with other SEMANTICS."""
    old = shaped.query.semantics
    workbook = shaped.case.workbook.replace(f"SEMANTICS {old}", f"SEMANTICS {semantics}")
    query = QueryShape(shaped.query.operands, shaped.query.constraints, shaped.query.within, semantics)
    return ShapedCase(replace(shaped.case, workbook=workbook), shaped.predictions, query, shaped.ordered_keys)


@examples(20)
@given(shaped_cases(operands=(2, 1), semantics=(EXPECTED,)))
def test_the_three_semantics_are_consistent(shaped: ShapedCase) -> None:
    """MUST implies EXPECTED, and EXPECTED implies MAY; MUST means that all true values match, MAY that some do."""
    answers = {}
    for semantics in (EXPECTED, MAY, MUST):
        case = with_semantics(shaped, semantics).case
        answers[semantics] = run_of(case, [case.rows], 1).rows()
    assert all(answer["probability"] == 1 for answer in answers[MUST])
    for narrow, wide in ((MUST, EXPECTED), (EXPECTED, MAY)):
        for answer in answers[narrow]:
            chosen, sample = shaped.chosen(answer), np.array([answer["sample"]])
            if not shaped.query.matches(chosen, sample, SLACK)[0]:
                continue  # a contact, for example of <>, is not EXPECTED, but has probability 0
            covering = answers_at(shaped, answers[wide], chosen, answer["sample"])
            assert covering, (narrow, answer)
            assert max(candidate["probability"] for candidate in covering) >= answer["probability"] - 1e-8
    for chosen in list(shaped.combinations())[:6]:
        points = shaped.query.lattice(chosen, 0.5, 0.25)
        for point in points[:: len(points) // 6 + 1]:
            if not exact_constraints_hold(shaped.query, chosen, point):
                continue
            observed = satisfied_share(shaped.query, chosen, point, 2000, 5)
            if observed > 0:
                assert answers_at(shaped, answers[MAY], chosen, point), (chosen, point, observed)
            if observed < 1:
                assert not with_semantics(shaped, MUST).query.matches(chosen, np.array([point]), SLACK)[0]
                inside = [
                    candidate
                    for candidate in answers_at(shaped, answers[MUST], chosen, point)
                    if is_inside(candidate, point)
                ]
                assert not inside, (chosen, point, observed, inside)


def exact_constraints_hold(query: QueryShape, chosen: Sequence[Prediction], point: np.ndarray) -> bool:
    """Whether the constraints on values without error are true at a point."""
    constraints = [constraint for constraint in query.constraints if query.error(chosen, constraint.values) == 0]
    exact = QueryShape(query.operands, tuple(constraints), query.within, EXPECTED)
    return bool(exact.matches(chosen, np.array([point]), SLACK)[0])


def answers_at(
    shaped: ShapedCase, answers: Sequence[dict], chosen: Sequence[Prediction], point: Sequence[float]
) -> list[dict]:
    """The answers about some predictions that cover a point."""
    return [answer for answer in answers if shaped.chosen(answer) == tuple(chosen) and covers(answer, np.array(point))]


def is_inside(answer: dict, point: np.ndarray) -> bool:
    return answer["valid_from"] + 1e-3 < point.max() < answer["valid_to"] - 1e-3 and len(point) == 1
