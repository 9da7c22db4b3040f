"""The kernel of RELATE: exact fractions, closed forms, many lost events, very long and very short windows."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.local import bound_query
from tests.oracles.relate import Entity, Window, entity, probability
from tests.relate.kernels import Codes, bits, codes_of, decided, windows_of
from tests.relate.strategies import DIFFERING, WINDOWS, Case, cases, written

from anabranch.relate.analysis import analyse
from anabranch.relate.pairs import relate
from anabranch.relate.query import SIMPLE

ALL, SOME = None, 1
YEAR = 365 * 24 * 3600


def assert_exact(got: tuple[float, float], want: Fraction) -> None:
    """Both the probability and its complement have a small relative error, even if they are tiny."""
    for result, exact in zip(got, (want, 1 - want), strict=True):
        assert result == pytest.approx(float(exact), rel=1e-11, abs=0.0)


# ---------------------------------------------------------------- exact fractions

#: The length of a unit, the code of time 0, and whether times are doubles.
SCALES = {
    "microseconds": (1, 0, False),
    "100 years in microseconds": (10 * YEAR * 10**6, -30 * YEAR * 10**6, False),
    "100 years in nanoseconds": (10 * YEAR * 10**9, 0, False),
    "nearly all that 64 bits hold": (14 * 10**17, -64 * 10**17, False),
    "doubles": (Fraction(7, 10), Fraction(-1, 3), True),
}  # fmt: skip


@pytest.mark.parametrize("windows", WINDOWS)
@given(data=st.data())
def test_the_kernel_equals_the_oracle(windows: str, data: st.DataObject) -> None:
    case = data.draw(cases(windows, wide=True))
    assert_exact(_computed(case, 2 * 3 * 5 * 7), _expected(case))


@pytest.mark.parametrize("scale", SCALES)
@given(data=st.data())
def test_the_unit_of_time_does_not_matter(scale: str, data: st.DataObject) -> None:
    case = _in_whole_units(data.draw(cases(DIFFERING, most_lost=3)))
    unit, origin, doubles = SCALES[scale]
    got = _computed(case, unit, origin, doubles)
    # Doubles round the ends of windows.
    assert got == pytest.approx((float(_expected(case)), 1 - float(_expected(case))), abs=1e-13 if doubles else 1e-14)


@given(case=cases(DIFFERING, most_lost=3))
def test_large_doubles_keep_microseconds(case: Case) -> None:
    """Near 1e9 doubles are 1e-7 apart: the oracle gets the rounded times, like the kernel."""
    case = _in_whole_units(case)
    a, b = (codes_of(operand, Fraction(1, 10**6), 10**9, doubles=True) for operand in (case.a, case.b))
    exact = [_from_doubles(operand, codes) for operand, codes in ((case.a, a), (case.b, b))]
    want = probability(*exact, case.outer, case.inner, case.relations)
    assert_exact(decided(a, b, case.outer, case.inner, case.mask, doubles=True), want)


def _computed(
    case: Case, unit: int | Fraction, origin: int | Fraction = 0, doubles: bool = False
) -> tuple[float, float]:
    a, b = (codes_of(operand, unit, origin, doubles) for operand in (case.a, case.b))
    return decided(a, b, case.outer, case.inner, case.mask, doubles)


def _expected(case: Case) -> Fraction:
    return probability(case.a, case.b, case.outer, case.inner, case.relations)


def _in_whole_units(case: Case) -> Case:
    """The case in a unit in which all its times are whole numbers, from -2 to 11."""
    unit = next(u for u in (Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(7, 10)) if _is_whole(case, u))
    a, b = (Entity(tuple(_divided(event, unit) for event in operand.events)) for operand in (case.a, case.b))
    return Case(a, b, case.outer, case.inner, case.relations)


def _is_whole(case: Case, unit: Fraction) -> bool:
    return all((cut / unit).denominator == 1 and abs(cut / unit) <= 11 for cut in case.a.cuts | case.b.cuts)


def _divided(event: Fraction | Window, unit: Fraction) -> Fraction | Window:
    return Window(event.lo / unit, event.hi / unit) if isinstance(event, Window) else event / unit


def _from_doubles(entity: Entity, codes: Codes) -> Entity:
    ends = np.array(codes, np.int64).view(np.float64)  # none is below 0
    known = zip(entity.events, ends.tolist(), strict=True)
    return Entity(
        tuple(Window(*map(Fraction, end)) if isinstance(event, Window) else Fraction(end[0]) for event, end in known)
    )


# ---------------------------------------------------------------- closed forms


def lost(count: int, lo: int = 0, hi: int = 10**18) -> Codes:
    return [(lo, hi)] * count


OTHERS = bits(*(name for name in SIMPLE if name != "PRECEDES"))


@pytest.mark.parametrize(("m", "n"), [(2, 2), (10, 4), (40, 60), (168, 168), (300, 200), (500, 500)])
def test_all_of_one_before_all_of_the_other(m: int, n: int) -> None:
    """All orders of m + n events in one window are equally likely; down to 1e-300."""
    want = Fraction(1, math.comb(m + n, m))
    assert_exact(decided(lost(m), lost(n), ALL, ALL, bits("PRECEDES")), want)
    assert_exact(decided(lost(m), lost(n), ALL, ALL, bits("PRECEDED BY")), want)
    assert_exact(decided(lost(m), lost(n), SOME, SOME, OTHERS), 1 - want)


@pytest.mark.parametrize(("m", "n", "k"), [(4, 6, 1), (30, 20, 5), (120, 10, 50), (500, 500, 3), (500, 500, 200)])
def test_at_least_k_before_all_of_the_other(m: int, n: int, k: int) -> None:
    """The first 2k of all events belong to the first entity."""
    want = math.prod((Fraction(m - i, m + n - i) for i in range(2 * k)), start=Fraction(1))
    assert_exact(decided(lost(m), lost(n), k, ALL, bits("PRECEDES")), want)


@pytest.mark.parametrize(("m", "share"), [(100, 10), (300, 3), (500, 2)])
def test_a_run_before_a_recorded_instant(m: int, share: int) -> None:
    """Each of m events is in the first part of the window; down to 1e-150."""
    window = share * 10**9
    b = [(10**9, 10**9), (2 * window, 2 * window)]
    want = Fraction(1, share) ** m
    assert_exact(decided(lost(m, 0, window), b, ALL, SOME, bits("PRECEDES")), want)
    assert_exact(decided(lost(m, 0, window), b, SOME, SOME, OTHERS), 1 - want)


def test_the_length_of_a_window_may_exceed_64_bits() -> None:
    """The difference of two such times overflows a 64-bit integer."""
    far = 8 * 10**18
    b = [(-far // 2, -far // 2), (far, far)]
    want = Fraction(1, 4) ** 2
    assert_exact(decided(lost(2, -far, far), b, ALL, SOME, bits("PRECEDES")), want)
    assert_exact(decided(lost(2, -far, far), b, SOME, SOME, OTHERS), 1 - want)


def test_adjacent_windows_are_independent() -> None:
    """Every event has its own window, with a recorded instant in the middle of it: down to 1e-120."""
    a = [(100 * i, 100 * i + 100) for i in range(400)]
    b = [(100 * i + 50, 100 * i + 50) for i in range(400)]
    # A segment of a overlaps the segment of b next to it with probability 1/4, and it cannot overlap another one.
    assert_exact(decided(a, b, ALL, SOME, bits("OVERLAPS")), Fraction(1, 4) ** 200)


# ---------------------------------------------------------------- many lost events


@pytest.mark.parametrize(
    ("outer", "inner", "relation"),
    [(2, 1, "INTERSECTS"), (ALL, 1, "DURING"), (3, 2, "STARTS BEFORE"), (20, ALL, "ENDS AFTER"), (1, ALL, "OVERLAPS")],
)
def test_500_lost_events_in_each_entity(outer: int | None, inner: int | None, relation: str) -> None:
    p, complement = decided(lost(500), lost(500), outer, inner, bits(relation))
    assert 0.0 <= p <= 1.0 + 1e-12
    assert p + complement == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("count", [40, 150])
def test_many_lost_events_between_recorded_ones(count: int) -> None:
    a = [(0, 0), *lost(count, 0, 7_000), (7_000, 7_000), (7_001, 7_001), *lost(count, 7_001, 9_000), (9_000, 9_000)]
    b = [(300, 300), *lost(count, 300, 8_000), (8_000, 8_000)]
    for outer in (ALL, 1, count // 2):
        p, complement = decided(a, b, outer, SOME, bits("INTERSECTS"))
        assert p + complement == pytest.approx(1.0, abs=1e-12)


def test_many_lost_events_in_overlapping_windows() -> None:
    a = [(20 * i, 20 * i + 100) for i in range(60)]
    b = [(20 * i + 7, 20 * i + 80) for i in range(60)]
    for outer, inner in ((ALL, 1), (1, ALL), (30, 1)):
        p, complement = decided(a, b, outer, inner, bits("OVERLAPS", "DURING"))
        assert p + complement == pytest.approx(1.0, abs=1e-12)


# ---------------------------------------------------------------- disjoint pairs


@given(case=cases(most_lost=4), ahead=st.booleans())
def test_windows_decide_disjoint_pairs_as_the_kernel_does(case: Case, ahead: bool) -> None:
    a, b = codes_of(case.a, 210, 0), codes_of(case.b, 210, 210 * 20 if ahead else -210 * 20)
    query = f"{written(case.outer)} a ({' OR '.join(case.relations)}) {written(case.inner)} b FROM s AS a, s AS b"
    declared = "CREATE STREAM s KEY (k STRING) TIME t INTEGER MODEL INTERVALS ORDER seq;"
    analysis = analyse(bound_query(f"{declared} CREATE QUERY q AS RELATE {query};", "q"))
    pair = relate(analysis, False, windows_of([a]), windows_of([b]), np.array([[0, 0]]))
    assert (pair.probability[0], pair.complement[0]) == pytest.approx(
        decided(a, b, case.outer, case.inner, case.mask), abs=1e-12
    )


def test_codes_are_narrowed_by_the_neighbours() -> None:
    assert codes_of(entity([0, None, None, 9], windows={1: (3, 20), 2: (-5, 8)}), 1) == [(0, 0), (3, 8), (3, 8), (9, 9)]
