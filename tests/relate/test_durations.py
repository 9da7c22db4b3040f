"""RELATE with DURATION and GAP: quadrature, rejection sampling, closed forms, extreme rates, and no distributions."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from scipy import special
from tests.drawn import examples
from tests.local import declared, local_job
from tests.oracles import relate, relate_durations
from tests.oracles.relate import Entity, Quantifier, Window, entity
from tests.oracles.relate_durations import Law, Timed
from tests.relate.kernels import bits, codes_of, decided
from tests.relate.local import run_whole
from tests.relate.strategies import DEFAULT, DIFFERING, WINDOWS, Case, Draw, cases

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.errors import DataError
from anabranch.language.parser import parse
from anabranch.language.unparse import unparse
from anabranch.relate.files import read_laws

SOME = 1
INTERSECTS = bits("INTERSECTS")

#: Times are whole multiples of a unit of strategies; this scale makes them integers.
SCALE = 2 * 3 * 5 * 7


def computed(a: Timed, b: Timed, outer: Quantifier, inner: Quantifier, relations: int, scale: float = SCALE) -> float:
    """The probability by the kernel."""
    operands = [codes_of(timed.entity, Fraction(scale)) for timed in (a, b)]
    laws = [
        [(law.k, law.k / (law.mean * scale)) if law else (1, 0.0) for law in (*timed.laws, None)] for timed in (a, b)
    ]
    result = decided(*operands, outer, inner, relations, laws=laws)
    assert result.probability + result.complement == pytest.approx(1.0, abs=1e-14)
    return result.probability


def plain(operand: Entity, law: Law | None = None) -> Timed:
    return Timed(operand, (law,) * (len(operand.events) - 1))


@st.composite
def timed_cases(draw: Draw, windows: str, most_lost: int) -> tuple[Timed, Timed, Case]:
    """A case of `strategies`, and distributions for its entities."""
    case = draw(cases(windows, most_lost=most_lost, wide=True))
    law = st.sampled_from([None, Law(1, 0.3), Law(1, 1.0), Law(1, 20.0), Law(2, 0.5), Law(3, 2.0)])
    a, b = (Timed(x, tuple(draw(law) for _ in range(len(x.events) - 1))) for x in (case.a, case.b))
    return a, b, case


# ---------------------------------------------------------------- oracles


@pytest.mark.parametrize("windows", WINDOWS)
@given(data=st.data())
def test_the_kernel_equals_quadrature_for_one_and_two_lost_events(windows: str, data: st.DataObject) -> None:
    a, b, case = data.draw(timed_cases(windows, most_lost=2))
    want = relate_durations.probability(a, b, case.outer, case.inner, case.relations)
    event("uncertain" if 1e-6 < want < 1 - 1e-6 else "certain")
    assert computed(a, b, case.outer, case.inner, case.mask) == pytest.approx(want, abs=1e-9)


@examples(20)
@given(data=st.data())
def test_the_kernel_agrees_with_rejection_sampling(data: st.DataObject) -> None:
    a, b, case = data.draw(timed_cases(DIFFERING, most_lost=5))
    estimate, kept = relate_durations.sampled(a, b, case.outer, case.inner, case.relations, draws=40_000)
    if kept > 100:
        got = computed(a, b, case.outer, case.inner, case.mask)
        assert abs(got - estimate) < 5 * math.sqrt(max(got * (1 - got), 1 / kept) / kept)


@pytest.mark.parametrize("windows", WINDOWS)
@given(data=st.data())
def test_without_distributions_all_placements_are_equally_likely(windows: str, data: st.DataObject) -> None:
    """The kernel for distributions then gives the answers of the other kernel, for any number of lost events."""
    case = data.draw(cases(windows, wide=True))
    want = float(relate.probability(case.a, case.b, case.outer, case.inner, case.relations))
    assert computed(plain(case.a), plain(case.b), case.outer, case.inner, case.mask) == pytest.approx(want, abs=1e-12)


@given(data=st.data())
def test_equal_rates_give_the_same_answers_between_recorded_events(data: st.DataObject) -> None:
    case = data.draw(cases(data.draw(st.sampled_from([DEFAULT, DIFFERING]))))
    ends = [x.events[i] for x in (case.a, case.b) for i in (0, -1)]
    if any(isinstance(end, Window) for end in ends):
        return  # a lost first or last event differs: before the first and after the last event the rate is 0
    law = Law(1, data.draw(st.sampled_from([0.01, 0.7, 30.0])))
    want = float(relate.probability(case.a, case.b, case.outer, case.inner, case.relations))
    got = computed(plain(case.a, law), plain(case.b, law), case.outer, case.inner, case.mask)
    assert got == pytest.approx(want, abs=1e-12)


# ---------------------------------------------------------------- closed forms and extreme rates


@pytest.mark.parametrize("k", [1, 2, 7, 40])
def test_a_lost_last_event_has_the_distribution_of_the_duration(k: int) -> None:
    """The end of a visit of mean 2 minutes is lost; is it still there after 1, 2 and 5 minutes? The day is long."""
    visit = Timed(entity([0, None], (0, 86_400)), (Law(k, 120.0),))
    for later in (60, 120, 300):
        other = plain(entity([later, later + 60]))
        got = computed(visit, other, SOME, SOME, INTERSECTS, scale=1)
        assert got == pytest.approx(special.gammaincc(k, k * later / 120.0), rel=1e-10)


@pytest.mark.parametrize("ratio", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_rates_may_differ_by_a_million(ratio: float) -> None:
    """A segment and the gap after it share a long time; the end between them is lost."""
    length, m = 1_000_000, 1_000.0
    u, v = 1 / m, 1 / (m * ratio)
    first = Timed(entity([0, None, length, length + 1]), (Law(1, m), Law(1, m * ratio), None))
    for later in (1, 1_000, 20_000, 999_000):
        other = plain(entity([later, 2 * length]))
        got = computed(first, other, 2, SOME, INTERSECTS, scale=1)
        assert got == pytest.approx(_share_after(later, length, u - v), rel=1e-9, abs=1e-300)


def _share_after(later: float, length: float, rate: float) -> float:
    """The share of the density exp(-rate s) on [0, length] that lies after an instant."""
    if abs(rate) * length < 1e-12:
        return 1 - later / length
    if rate > 0:
        return math.exp(-rate * later) * math.expm1(-rate * (length - later)) / math.expm1(-rate * length)
    return math.expm1(rate * (length - later)) / math.expm1(rate * length)


@pytest.mark.parametrize("mean", [1e-3, 1.0, 1e3])
def test_a_lost_visit_that_is_much_shorter_than_its_window(mean: float) -> None:
    """Both ends are lost; the other entity covers a tenth of the day. Rates x time is up to 1e8."""
    day = 100_000
    visit = Timed(entity([None, None], (0, day)), (Law(2, mean),))
    other = plain(entity([40_000, 50_000]))
    got = computed(visit, other, SOME, SOME, INTERSECTS, scale=1)
    assert got == pytest.approx((10_000 + mean) / (day - mean), rel=1e-9)


def test_many_lost_events_with_fast_and_slow_states() -> None:
    """Nothing overflows or vanishes with 60 lost events; the answer is between those of neighbouring means."""
    times = [0, *[None] * 60, 10_000]
    other = plain(entity([5_000, 5_010]))
    answers = []
    for mean in (1.0, 2.0, 4.0):
        laws = tuple(Law(1, mean) if state % 2 == 0 else Law(1, 1e6) for state in range(61))
        answers.append(computed(Timed(entity(times), laws), other, SOME, SOME, INTERSECTS, scale=1))
    assert 0 < answers[0] < answers[1] < answers[2] < 1


# ---------------------------------------------------------------- the language

STREAM = "CREATE STREAM s KEY (k INTEGER) TIME t INTEGER MODEL INTERVALS ORDER seq"


@pytest.mark.parametrize(
    "clauses",
    [
        "DURATION EXPONENTIAL(5 MINUTES) GAP ERLANG(3, 2 HOURS)",
        "DURATION ERLANG(2, mean) GAP EXPONENTIAL(0.5)",
        "DURATION FITTED 'd.csv' BY activity GAP FITTED 'd.csv'",
    ],
)
def test_clauses_are_written_as_they_are_read(clauses: str) -> None:
    assert unparse(parse(f"{STREAM} {clauses};")) == f"{STREAM} {clauses};\n"


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("DURATION GAMMA(2, 3)", "there is no law 'GAMMA'"),
        ("DURATION EXPONENTIAL(0)", "the mean of DURATION must be above 0, not 0"),
        ("GAP ERLANG(3)", "ERLANG takes k and mean, not 1 arguments"),
        ("GAP ERLANG(2.5, 3)", "the k of ERLANG must be a whole number from 1 to 100"),
        ("GAP ERLANG(k, 3)", "the k of ERLANG must be a number, not the column 'k'"),
        ("DURATION FITTED(3)", "FITTED takes the path of a file, not parameters"),
        ("DURATION ERLANG 'd.csv'", "ERLANG takes parameters, not a file"),
    ],
)
def test_wrong_distributions_are_refused(clause: str, message: str) -> None:
    (finding,) = declare(parse(f"{STREAM} {clause};"), Catalog())
    assert finding.message == message
    assert finding.hint


def test_only_intervals_have_durations() -> None:
    text = "CREATE STREAM s KEY (k) TIME t GAP EXPONENTIAL(3);"
    assert [finding.message for finding in declare(parse(text), Catalog())] == ["GAP is not allowed for MODEL CERTAIN"]


def test_the_columns_of_means_and_classes_are_read() -> None:
    stream = declared(f"{STREAM} DURATION ERLANG(2, mean) GAP FITTED 'd.csv' BY kind;").stream("s")
    types = {column.name: column.type.value for column in stream.columns}
    assert (types["mean"], types["kind"]) == ("DOUBLE", "STRING")


# ---------------------------------------------------------------- rows

QUERY = "CREATE QUERY q AS RELATE SOME a INTERSECTS SOME b FROM s AS a, s AS b WHERE a.k < b.k;"


def rows_of(key: int, *events: tuple[int, int | None, object], column: str) -> list[dict]:
    return [{"k": key, "seq": seq, "t": t, column: cell} for seq, t, cell in events]


def test_rows_without_a_valid_mean_are_quarantined() -> None:
    job = local_job(f"{STREAM} HORIZON [0, 1000] DURATION EXPONENTIAL(m); {QUERY}", "q")
    rows = [
        *rows_of(1, (1, 10, 5.0), (2, None, None), column="m"),
        *rows_of(2, (1, 12, -1.0), (2, 20, None), column="m"),
        *rows_of(3, (1, 12, None), (2, None, None), column="m"),
        *rows_of(4, (1, 12, None), (2, 20, None), column="m"),
    ]
    run = run_whole(job, {"s": rows})
    # Of entity 2 the second row is left: its first event is lost, and it has no mean.
    assert run.reasons() == {
        "m is not a mean: it must be above 0": 1,
        "an event of its entity is lost, and no row of the entity has a mean for DURATION or GAP": 3,
    }
    assert run.answers()[1, 4].probability == pytest.approx(math.exp(-2 / 5), rel=1e-9)


def test_two_rows_of_an_event_must_agree_on_the_mean() -> None:
    job = local_job(f"{STREAM} DURATION EXPONENTIAL(m); {QUERY}", "q")
    rows = [
        *rows_of(1, (1, 0, 5.0), (1, 0, 6.0), (2, 9, None), column="m"),
        *rows_of(2, (1, 0, 5.0), (2, 9, None), column="m"),
    ]
    assert run_whole(job, {"s": rows}).reasons() == {"two different rows of its entity have the same position": 3}


def test_fitted_distributions_are_read_by_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text("clause,class,law,k,mean\nDURATION,short,ERLANG,2,4\nDURATION,,EXPONENTIAL,1,100\n")
    job = local_job(f"{STREAM} HORIZON [0, 100000] DURATION FITTED 'd.csv' BY kind; {QUERY}", "q")
    later = rows_of(9, (1, 10, None), (2, 20, None), column="kind")
    for kind, k, mean in (("short", 2, 4.0), ("other", 1, 100.0)):
        rows = rows_of(1, (1, 0, kind), (2, None, None), column="kind") + later
        want = special.gammaincc(k, k * 10 / mean)
        assert run_whole(job, {"s": rows}).answers()[1, 9].probability == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("DURATION,x,ERLANG,0,4", "d.csv:2: k is 0; it must be a whole number from 1 to 100"),
        ("DURATION,x,ERLANG,2,-4", "d.csv:2: mean is -4; it must be above 0"),
        ("GAP,x,ERLANG,2,4", "d.csv: there is no row of DURATION"),
        (
            "DURATION,x,ERLANG,2,4\nDURATION,x,ERLANG,3,4",
            "d.csv:3: DURATION has the class 'x' already; keep one",
        ),
    ],
)
def test_a_wrong_file_of_distributions_is_reported_in_one_line(tmp_path: Path, row: str, message: str) -> None:
    path = tmp_path / "d.csv"
    path.write_text(f"clause,class,law,k,mean\n{row}\n")
    with pytest.raises(DataError) as raised:
        read_laws(path, "DURATION", 1.0, by_class=True)
    assert str(raised.value).removeprefix(f"{tmp_path}/") == message


def test_the_result_of_no_segments_is_a_number() -> None:
    """The first operand has no possible hit left before the second begins."""
    a, b = plain(entity([0, None], (0, 10)), Law(1, 1.0)), plain(entity([20, 30]))
    assert computed(a, b, 2, SOME, INTERSECTS) == 0.0
    assert np.isfinite(computed(a, b, None, None, bits("PRECEDES")))
