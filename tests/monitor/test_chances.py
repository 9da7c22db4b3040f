"""The probabilities of MONITOR: laws of errors against integrals, joint ones against drawn truths."""

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
from tests.monitor.definitions import EXPECTED, MAY, MUST, QueryShape, Told, share
from tests.monitor.local import run_of
from tests.monitor.shapes import COLUMNS, ShapedCase, shaped_cases
from tests.monitor.test_sampled import SLACK, covers

from anabranch.monitor.kernel.laws import at_most, density, difference

DRAWS = 40_000
ERRORS = (1.0, 0.25, 40.0, 3.0)
#: Standard deviations, in errors; 0 is uniform.
RATIOS = (0.0, 1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 1e3)

NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)

laws = st.tuples(st.sampled_from(ERRORS), st.sampled_from(RATIOS)).map(lambda law: (law[0], law[0] * law[1]))


def law_of(e: float, s: float) -> stats.rv_continuous:
    return stats.uniform(-e, 2 * e) if s == 0 else stats.truncnorm(-e / s, e / s, scale=s)


def cuts_of(e1: float, s1: float, e2: float, s2: float, z: float) -> list[float]:
    """Where the densities of two errors, the second moved by z, are not smooth or change fast."""
    steps = np.arange(-12.0, 12.5, 0.5)
    cuts = {-e1, e1, *(c for c in (z - e2, z + e2) if -e1 < c < e1)}
    for each in (*(steps * s1), *(z + steps * s2)):
        cuts |= {float(each)} if -e1 < each < e1 else set()
    return sorted(cuts)


def chance_of_difference(z: float, e1: float, s1: float, e2: float, s2: float) -> float:
    """P(one error - the other <= z): the density of the one against the chance of the other, piece by piece."""
    one, other, total = law_of(e1, s1), law_of(e2, s2), 0.0
    for low, high in pairwise(cuts_of(e1, s1, e2, s2, z)):
        u = 0.5 * (high + low) + 0.5 * (high - low) * NODES
        total += float(0.5 * (high - low) * WEIGHTS @ (one.pdf(u) * other.sf(u - z)))
    return total


@given(laws, st.floats(-1.2, 1.2))
def test_one_error(law: tuple[float, float], place: float) -> None:
    e, s = law
    assert at_most(place * e, e, s) == pytest.approx(law_of(e, s).cdf(place * e), abs=1e-9)
    if abs(place) <= 1:
        assert density(place * e, e, s) == pytest.approx(law_of(e, s).pdf(place * e), rel=1e-9, abs=1e-300)


@examples(50)
@given(laws, laws, st.floats(-1.05, 1.05))
def test_the_difference_of_two_errors(one: tuple[float, float], other: tuple[float, float], place: float) -> None:
    z = place * (one[0] + other[0])
    below, dense = difference(z, *one, *other)
    assert below == pytest.approx(chance_of_difference(z, *one, *other), abs=1e-9)
    step = 1e-4 * min(*(s or e for e, s in (one, other)), one[0], other[0])
    if abs(place) < 1:
        slope = (difference(z + step, *one, *other)[0] - difference(z - step, *one, *other)[0]) / (2 * step)
        assert dense == pytest.approx(slope, rel=1e-3, abs=1e-3 / max(one[0], other[0]))


PAIRS = [((1.0, 0.3), (2.0, 0.0)), ((1.0, 0.5), (0.5, 4.0)), ((3.0, 0.0), (1.0, 0.0))]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_the_difference_of_two_errors_by_another_integral(one: tuple[float, float], other: tuple[float, float]) -> None:
    for z in (-1.3, -0.2, 0.0, 0.7, 1.1):
        cuts = [cut for cut in (z - other[0], z, z + other[0]) if abs(cut) < one[0]]
        found, _ = integrate.quad(
            lambda u, z=z: law_of(*one).pdf(u) * law_of(*other).sf(u - z), -one[0], one[0], points=cuts, epsabs=1e-11
        )
        assert difference(z, *one, *other)[0] == pytest.approx(found, abs=1e-9)


@given(laws, st.floats(-1.2, 1.2))
def test_an_error_of_zero_is_none(law: tuple[float, float], place: float) -> None:
    e, s = law
    for found in (difference(place * e, e, s, 0.0, 0.0)[0], difference(place * e, 0.0, 0.0, e, s)[0]):
        assert found == pytest.approx(law_of(e, s).cdf(place * e), abs=1e-9)
    assert difference(-1e-300, 0.0, 0.0, 0.0, 0.0)[0] == 0
    assert difference(0.0, 0.0, 0.0, 0.0, 0.0)[0] == 1


# ---------------------------------------------------------------- against drawn truths


def doubt(p: float, n: int = DRAWS) -> float:
    """Five standard errors of a share."""
    return 5 * math.sqrt(max(p * (1 - p), 1 / n) / n)


CLOSE = "CREATE STREAM e KEY (id INTEGER) VALUE (x DOUBLE, y DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR {} PERIOD 4;"


def still(shaped: ShapedCase) -> ShapedCase:
    """The same, but nothing moves: the probability is the same at all instants."""
    rates = {f"{column}_rate": 0.0 for column in COLUMNS}
    rows = {name: [row | rates for row in own] for name, own in shaped.case.rows.items()}
    told = tuple(replace(each, rates=dict.fromkeys(COLUMNS, 0.0)) for each in shaped.told)
    return ShapedCase(replace(shaped.case, rows=rows), told, shaped.query, shaped.in_order)


@examples(20)
@given(shaped_cases(operands=(2, 3, 1), semantics=(EXPECTED, MAY), windows=(0,)).map(still))
def test_where_nothing_moves_the_probability_is_the_share_of_truths(shaped: ShapedCase) -> None:
    answers = run_of(shaped.case, [shaped.case.rows], 1).rows()
    event(f"{'some' if answers else 'no'} answers")
    for answer in answers[:3]:
        found = share(shaped.query, shaped.chosen(answer), answer["sample"], DRAWS, 7)
        assert abs(found - answer["probability"]) <= doubt(answer["probability"]), (answer, found)


@examples(20)
@given(shaped_cases(operands=(2, 1, 2), semantics=(EXPECTED, MAY)))
def test_no_instant_is_more_probable_than_an_answer_says(shaped: ShapedCase) -> None:
    answers = run_of(shaped.case, [shaped.case.rows], 1).rows()
    for answer in answers[:3]:
        chosen = shaped.chosen(answer)
        points = shaped.query.lattice(chosen, 0.5, 0.25)
        points = [point for point in points[:: len(points) // 6 + 1] if covers(answer, point)]
        points = [point for point in points if shaped.query.matches(chosen, np.array([point]), SLACK)[0]]
        for point in [*points, answer["sample"]]:
            found = share(shaped.query, chosen, point, DRAWS, 7)
            assert found <= answer["probability"] + doubt(answer["probability"]), (answer, point, found)


@examples(20)
@given(shaped_cases(operands=(2, 1), semantics=(EXPECTED, MAY), normals=(0, 1)))
def test_the_sample_is_near_the_most_probable_instant(shaped: ShapedCase) -> None:
    """It is a thousandth of the way from there to the middle; what falls from 1 to 0 in between is not looked at."""
    for answer in run_of(shaped.case, [shaped.case.rows], 1).rows()[:3]:
        chosen = shaped.chosen(answer)
        if any(0 < each.errors[column] < 0.5 for each in chosen for column in each.errors):
            continue
        found = share(shaped.query, chosen, answer["sample"], DRAWS, 7)
        assert found >= answer["probability"] - doubt(answer["probability"]) - 0.03, (answer, found)


@pytest.mark.parametrize("law", ["1", "1 NORMAL 0.5", "2 NORMAL 20"])
@pytest.mark.parametrize("within", ["", " WITHIN 2"])
def test_three_operands_are_taken_together(law: str, within: str) -> None:
    """Where b is far from a it is far from c as well: the product of both would be too low."""
    error, spread = float(law.split()[0]), float(law.split()[-1]) if "NORMAL" in law else 0.0
    rows = [{"id": i, "t": 0.0, "x": 0.6 * i, "x_rate": 0.0, "y": 0.0, "y_rate": 0.0} for i in range(3)]
    query = "CREATE QUERY q AS MONITOR a, b, c FROM e WHERE a.id < b.id AND b.id < c.id AND "
    query += f"ABS(a.x - b.x) <= 1 AND ABS(b.x - c.x) <= 1 AND a.x > -0.5{within};"
    (answer,) = run_of(Case(f"{CLOSE.format(law)}\n{query}", "q", {"e": rows}, {}), [{"e": rows}], 1).rows()
    random = np.random.default_rng(3)
    a, b, c = (0.6 * i + law_of(error, spread).rvs(400_000, random_state=random) for i in range(3))
    wanted = ((np.abs(a - b) <= 1) & (np.abs(b - c) <= 1) & (a > -0.5)).mean()
    assert abs(answer["probability"] - wanted) <= doubt(float(wanted), 400_000)


# ---------------------------------------------------------------- the three semantics


def asked(shaped: ShapedCase, semantics: str) -> ShapedCase:
    """The same query in another semantics."""
    old = shaped.query.semantics
    workbook = shaped.case.workbook.replace(f"SEMANTICS {old}", f"SEMANTICS {semantics}")
    query = QueryShape(shaped.query.operands, shaped.query.constraints, shaped.query.within, semantics)
    return ShapedCase(replace(shaped.case, workbook=workbook), shaped.told, query, shaped.in_order)


@examples(20)
@given(shaped_cases(operands=(2, 1), semantics=(EXPECTED,)))
def test_the_three_semantics_agree(shaped: ShapedCase) -> None:
    """Truths that all satisfy are of MUST, and of some MAY; what MUST is EXPECTED, and that MAY, if it has a chance."""
    found = {}
    for semantics in (EXPECTED, MAY, MUST):
        case = asked(shaped, semantics).case
        found[semantics] = run_of(case, [case.rows], 1).rows()
    assert all(answer["probability"] == 1 for answer in found[MUST])
    for narrow, wide in ((MUST, EXPECTED), (EXPECTED, MAY)):
        for answer in found[narrow]:
            chosen, sample = shaped.chosen(answer), np.array([answer["sample"]])
            if not shaped.query.matches(chosen, sample, SLACK)[0]:
                continue  # a prediction that touches, as of <>, is not EXPECTED, but has no probability
            around = over(shaped, found[wide], chosen, answer["sample"])
            assert around, (narrow, answer)
            assert max(each["probability"] for each in around) >= answer["probability"] - 1e-8
    for chosen in list(shaped.choices())[:6]:
        points = shaped.query.lattice(chosen, 0.5, 0.25)
        for point in points[:: len(points) // 6 + 1]:
            if not certain(shaped.query, chosen, point):
                continue
            part = share(shaped.query, chosen, point, 2000, 5)
            if part > 0:
                assert over(shaped, found[MAY], chosen, point), (chosen, point, part)
            if part < 1:
                assert not asked(shaped, MUST).query.matches(chosen, np.array([point]), SLACK)[0]
                inside = [each for each in over(shaped, found[MUST], chosen, point) if is_inner(each, point)]
                assert not inside, (chosen, point, part, inside)


def certain(query: QueryShape, chosen: Sequence[Told], point: np.ndarray) -> bool:
    """Whether what has no error is true at a point."""
    own = [each for each in query.constraints if query.error(chosen, each.values) == 0]
    exact = QueryShape(query.operands, tuple(own), query.within, EXPECTED)
    return bool(exact.matches(chosen, np.array([point]), SLACK)[0])


def over(shaped: ShapedCase, answers: Sequence[dict], chosen: Sequence[Told], point: Sequence[float]) -> list[dict]:
    """The answers about some predictions that hold a point."""
    return [each for each in answers if shaped.chosen(each) == tuple(chosen) and covers(each, np.array(point))]


def is_inner(answer: dict, point: np.ndarray) -> bool:
    return answer["valid_from"] + 1e-3 < point.max() < answer["valid_to"] - 1e-3 and len(point) == 1
