"""DISTANCE on the globe: against great circles between points of the sphere, for every split, and by hand."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
from hypothesis import event, given
from hypothesis import strategies as st
from tests.cases import Draw
from tests.drawn import examples
from tests.local import bound_query
from tests.monitor.compare import assert_same
from tests.monitor.local import positions_job
from tests.monitor.test_distance import refusals
from tests.monitor.test_positions import run_over
from tests.oracles.monitor_globe import Plane, Track, distance, on_sphere
from tests.oracles.reporting import Measurement, reports
from tests.splits import splits

from anabranch.monitor.analysis import analyse
from anabranch.monitor.explain import plan

STREAMS = (
    "CREATE STREAM fixes KEY (id INTEGER) VALUE (lon DOUBLE, lat DOUBLE) TIME t DOUBLE SPACE (lon, lat) GEODESIC;\n"
    "CREATE STREAM ships KEY (id INTEGER) VALUE (lon DOUBLE, lat DOUBLE) TIME t DOUBLE\n"
    "  SPACE (lon, lat) GEODESIC ORIGIN ({}, {}) PREDICTED FROM fixes ERROR {} PERIOD 30;\n"
)
PERIOD = 30.0
#: Places, and origins up to 1,700 km from them: lengths in the plane are up to 2% too long.
PLACES = ((179.95, -16.5), (8.0, 47.0))
ORIGINS = ((0.05, 0.02), (4.0, 3.0), (-9.0, 12.0))
#: A few hundred metres, in degrees of latitude.
STEP = 0.005

Row = dict[str, Any]
Drawn = tuple[str, list[Row], Plane, float]


@st.composite
def drawn_fixes(draw: Draw, query: str) -> Drawn:
    """Two or three ships near each other, a few fixes of each, and the plane and the error of their predictions."""
    longitude, latitude = draw(st.sampled_from(PLACES))
    east, north = draw(st.sampled_from(ORIGINS))
    origin = (longitude + east + 180) % 360 - 180, latitude + north
    rows = []
    for id in range(1, draw(st.integers(2, 3)) + 1):
        for t in draw(st.sampled_from([(0.0, 10.0), (0.0, 10.0, 20.0), (5.0, 12.0)])):
            steps = [draw(st.integers(-3, 3)) for _ in range(2)]
            rows.append({
                "id": id, "t": t, "lon": (longitude + STEP * steps[0] + 180) % 360 - 180,
                "lat": latitude + STEP * steps[1],
            })  # fmt: skip
    error = draw(st.sampled_from([0.0, 50.0, 200.0]))
    workbook = STREAMS.format(*origin, error) + query
    return workbook, sorted(rows, key=lambda row: row["t"]), Plane(*origin), error


def tracks(rows: list[Row], plane: Plane, error: float) -> dict[tuple[int, float], Track]:
    """The reports of the sensors, by key and time."""
    places = [plane.from_globe(on_sphere(row["lon"], row["lat"])) for row in rows]
    measured = [
        Measurement(row["id"], Fraction(row["t"]), (Fraction(place[0]), Fraction(place[1])))
        for row, place in zip(rows, places, strict=True)
    ]
    found, _ = reports(measured, [Fraction(error)] * 2, Fraction(PERIOD), "LINEAR", Fraction(1, 2), Fraction(1, 4))
    times = sorted((rows[report.row]["id"], rows[report.row]["t"]) for report in found)
    result = {}
    for report in found:
        key, time = rows[report.row]["id"], rows[report.row]["t"]
        end = min([time + PERIOD, *(other for own, other in times if own == key and other > time)])
        rates = (float(report.rates[0]), float(report.rates[1]))
        result[key, time] = Track(plane, time, end, places[report.row], rates, error)
    return result


def deciding(measure: Any, names: int, semantics: str) -> float:
    """The distance that counts for a semantics, of those for all errors of two or four coordinates, in metres."""
    if semantics == "EXPECTED":
        return measure(np.zeros(2 * names))
    corners = [measure(np.array(corner)) for corner in itertools.product((-1.0, 1.0), repeat=2 * names)]
    if semantics == "MUST":
        return max(corners)
    # To a millionth of a millimetre, near the bounds of the tests.
    nearest = scipy.optimize.minimize(
        lambda off: (measure(off) / 1000) ** 2, np.zeros(2 * names), bounds=[(-1, 1)] * 2 * names, tol=1e-12
    )
    return min(1000 * math.sqrt(max(nearest.fun, 0.0)), *corners)


def assert_distances(answers: list[Row], chosen: list[Track], structs: dict[str, Row], bound: float, op: str,
                     semantics: str, measure: Any, slack: float) -> None:  # fmt: skip
    """Instants are in an answer if and only if the distance is on the right side of the bound, up to a slack."""
    own = [answer for answer in answers if all(answer[name] == struct for name, struct in structs.items())]
    low, high = max(track.time for track in chosen), min(track.end for track in chosen)
    for instant in np.linspace(low, high, 9)[1:-1] if low < high else ():
        counted = semantics if op == "<=" else {"MAY": "MUST", "MUST": "MAY"}.get(semantics, semantics)
        far = deciding(lambda off, at=instant: measure(at, off), len(chosen), counted)
        if abs(far - bound) <= slack * bound + 1e-3:
            continue
        is_match = (far < bound) == (op == "<=")
        event(f"{semantics} {op} {is_match}")
        is_found = any(answer["valid_from"] <= instant < answer["valid_to"] for answer in own)
        assert is_found == is_match, (instant, far, own)


SEMANTICS = st.sampled_from(["EXPECTED", "MAY", "MUST"])


@examples(15)
@given(st.data(), SEMANTICS, st.sampled_from([600.0, 1500.0]), st.sampled_from(["<=", ">"]))
def test_two_ships(data: st.DataObject, semantics: str, bound: float, op: str) -> None:
    query = f"MONITOR a, b FROM ships WHERE DISTANCE(a, b) {op} {bound} AND a.id < b.id SEMANTICS {semantics}"
    workbook, rows, plane, error = data.draw(drawn_fixes(f"CREATE QUERY q AS {query};"))
    answers = run_over(positions_job(workbook, "q"), [{"fixes": rows}], 3).rows()
    live = run_over(positions_job(workbook, "q", live=True), data.draw(splits({"fixes": rows})), 3).rows()
    assert_same(live, answers, ["a", "b"])
    known = tracks(rows, plane, error)
    for (one, first), (other, second) in itertools.product(known.items(), repeat=2):
        if one[0] < other[0]:
            scales = [track.scales(PERIOD) for track in (first, second)]
            slack = math.sqrt(scales[0][1] * scales[1][1] / (scales[0][0] * scales[1][0])) - 1

            def measure(at: float, off: Any, pair: tuple[Track, Track] = (first, second)) -> float:
                return distance(pair[0].at(at, tuple(off[:2])), pair[1].at(at, tuple(off[2:])))

            structs = {"a": {"id": one[0], "t": one[1]}, "b": {"id": other[0], "t": other[1]}}
            assert slack < 1e-3
            assert_distances(answers, [first, second], structs, bound, op, semantics, measure, slack)


@examples(15)
@given(st.data(), SEMANTICS, st.sampled_from([600.0, 1500.0]), st.sampled_from(["<=", ">"]))
def test_a_ship_and_a_point_are_exact(data: st.DataObject, semantics: str, bound: float, op: str) -> None:
    place = data.draw(st.sampled_from(PLACES))
    query = f"MONITOR a FROM ships WHERE DISTANCE(a, 'POINT({place[0]} {place[1]})') {op} {bound} SEMANTICS {semantics}"
    workbook, rows, plane, error = data.draw(drawn_fixes(f"CREATE QUERY q AS {query};"))
    if distance(on_sphere(*place), on_sphere(plane.longitude, plane.latitude)) > 9e6:
        return
    answers = run_over(positions_job(workbook, "q"), [{"fixes": rows}], 3).rows()
    for (id, time), track in tracks(rows, plane, error).items():

        def measure(at: float, off: Any, track: Track = track) -> float:
            return distance(track.at(at, tuple(off)), on_sphere(*place))

        assert_distances(answers, [track], {"a": {"id": id, "t": time}}, bound, op, semantics, measure, 1e-7)


# ---------------------------------------------------------------- by hand

LIGHTHOUSE = (8.0, 47.0)
FAR = Plane(13.0, 40.0)  # 870 km away: lengths are 0.5% too long


@pytest.mark.parametrize("metres", [0.0, 250.0, 400.0])
def test_the_probability_is_the_share_of_the_box_in_the_circle(metres: float) -> None:
    """The ship stands north of a point; for each error of x, the errors of y within the circle are an interval."""
    row = {"id": 1, "t": 0.0, "lon": LIGHTHOUSE[0], "lat": LIGHTHOUSE[1] + math.degrees(metres / 6_371_008.8)}
    query = f"MONITOR a FROM ships WHERE DISTANCE(a, 'POINT({LIGHTHOUSE[0]} {LIGHTHOUSE[1]})') <= 400 SEMANTICS MAY"
    workbook = STREAMS.format(FAR.longitude, FAR.latitude, 300) + f"CREATE QUERY q AS {query};"
    (answer,) = run_over(positions_job(workbook, "q"), [{"fixes": [row]}], 3).rows()
    (track,) = tracks([row], FAR, 300.0).values()

    def beyond(x: float, y: float) -> float:
        return distance(track.at(0.0, (x, y)), on_sphere(*LIGHTHOUSE)) - 400

    def share(x: float) -> float:
        nearest = scipy.optimize.minimize_scalar(lambda y: beyond(x, y), bounds=(-1, 1), method="bounded").x
        if beyond(x, nearest) >= 0:
            return 0.0
        ends = [
            side if beyond(x, side) <= 0 else scipy.optimize.brentq(lambda y: beyond(x, y), nearest, side)
            for side in (-1.0, 1.0)
        ]
        return (ends[1] - ends[0]) / 2

    expected, _ = scipy.integrate.quad(share, -1, 1, limit=200, epsabs=2e-6)
    assert answer["probability"] == pytest.approx(expected / 2, abs=1e-5)


def test_metres_are_those_of_the_globe_far_from_the_origin() -> None:
    """Two ships 1,000 m apart, where 1,000 m are 1,005 m in the plane; one comes nearer by 10 m/s.

    The other one stands still, and has no report after 0, so its prediction ends at 30.
    """
    degree = math.degrees(1 / 6_371_008.8)
    rows = [
        {"id": id, "t": t, "lon": 8.0, "lat": 47.0 + (0.0 if id == 1 else degree * (1000 - 10 * t))}
        for t in (0.0, 10.0)
        for id in (1, 2)
    ]
    query = "MONITOR a, b FROM ships WHERE DISTANCE(a, b) <= 800 AND a.id < b.id"
    workbook = STREAMS.format(FAR.longitude, FAR.latitude, 1) + f"CREATE QUERY q AS {query};"
    found = run_over(positions_job(workbook, "q"), [{"fixes": rows}], 3).rows()
    assert [(row["valid_from"], row["valid_to"]) for row in found] == [pytest.approx((20.0, 30.0), abs=2e-3)]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("WITHIN(a, 'POLYGON((0 0, 2 0, 2 2, 0 0))')", "MONITOR has WITHIN only in the plane, not on the globe"),
        ("DISTANCE(a, b) <= 20000000", "a DISTANCE on the globe cannot be compared with more than 10,000,000 metres"),
        ("DISTANCE(a, 'POINT(-160 -47)') <= 5", "no longitude and latitude within 90 degrees of the ORIGIN"),
        ("DISTANCE(a, 'POINT(8 470)') <= 5", "no longitude and latitude within 90 degrees of the ORIGIN"),
    ],
)
def test_what_cannot_be_projected_is_refused_without_data(where: str, message: str) -> None:
    workbook = STREAMS.format(13, 40, 1)
    refused = refusals(f"{workbook}CREATE QUERY q AS MONITOR a, b FROM ships WHERE {where} AND a.lon < b.lon;")
    assert any(message in finding.message and finding.hint for finding in refused), refused


def test_explain_says_what_is_exact() -> None:
    for text, method in (
        ("DISTANCE(a, b) <= 5", "exact, with distances on the globe up to the change of scale along a prediction"),
        ("DISTANCE(a, 'POINT(8 47)') <= 5 AND a.lon < b.lon", "exact"),
    ):
        workbook = f"{STREAMS.format(13, 40, 0)}CREATE QUERY q AS MONITOR a, b FROM ships WHERE {text};"
        described = plan(analyse(bound_query(workbook, "q")))
        assert described.method == method
        assert text.split(" <=")[0] in " ".join(described.why)
