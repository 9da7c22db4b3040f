"""PREDICTED FROM: a job over positions has the answers of a job over the predictions that sensors report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.cases import DOUBLE, EPOCH, INTEGER, TIMESTAMP, seconds
from tests.drawn import examples
from tests.local import bound_query
from tests.monitor.compare import assert_same
from tests.monitor.local import MonitorRun, positions_job
from tests.oracles.monitor import answers
from tests.oracles.reporting import Measurement, reports
from tests.splits import disordered_splits, splits

from anabranch.columns.globe import RADIUS

POSITIONS = "CREATE STREAM positions KEY (id INTEGER) VALUE (fuel DOUBLE) TIME t {} SPACE (x, y){};\n"
VANS = "CREATE STREAM vans KEY (id INTEGER) VALUE (x DOUBLE, y DOUBLE) TIME t {} "
PREDICTED_FROM = VANS + "PREDICTED FROM positions ERROR {} PERIOD {}{};\n"
PREDICTED = VANS + "MODEL PREDICTED ERROR {} PERIOD {};\n"
QUERY_TEXTS = (
    "MONITOR a, b FROM vans AS a, vans AS b WHERE ABS(a.x - b.x) <= 2 AND ABS(a.y - b.y) <= 2 AND a.id < b.id",
    "MONITOR a, b FROM vans AS a, vans AS b WHERE ABS(a.x - b.x) <= 2 AND a.id < b.id WITHIN 1 SEMANTICS MAY",
    "MONITOR a FROM vans AS a WHERE a.x < 2 SEMANTICS MUST",
)
LABELS = (("a", "b"), ("a", "b"), ("a",))

Row = dict[str, Any]


@st.composite
def drawn_positions(draw: Any, kind: str) -> list[Row]:
    """Positions of a few keys, some with the same key and time; only the first of these is used."""
    rows = []
    numbers = st.sampled_from([0.0, 0.5, 1.0, 2.0, 4.0, -1.0, 3.5])
    for _ in range(draw(st.integers(1, 12))):
        time = draw(st.sampled_from([0, 1, 2, 3, 4, 5, 7, 12]))
        row: Row = {"id": draw(st.integers(1, 2)), "fuel": 1.0, "x": draw(numbers), "y": draw(numbers)}
        row["t"] = EPOCH + timedelta(seconds=time) if kind == TIMESTAMP else float(time) if kind == DOUBLE else time
        rows.append(row)
    return sorted(rows, key=seconds)


def predictions_of(rows: Sequence[Row], errors: Sequence[float], period: float, method: str) -> list[Row]:
    """The reports of the sensors, as rows of predictions."""
    measurements = [
        Measurement(row["id"], Fraction(seconds(row)), (Fraction(row["x"]), Fraction(row["y"]))) for row in rows
    ]
    sensor_reports, _ = reports(
        measurements, [Fraction(e) for e in errors], Fraction(period), method, Fraction(1, 2), Fraction(1, 4)
    )
    return [
        {key: rows[report.row][key] for key in ("id", "t", "x", "y")}
        | {f"{name}_rate": float(rate) for name, rate in zip("xy", report.rates, strict=True)}
        for report in sensor_reports
    ]


def run_over(job: Any, batches: Sequence[Any], buckets: int) -> MonitorRun:
    run = MonitorRun(job, buckets)
    for batch in batches:
        run.step(batch)
    run.step({}, end=True)
    return run


def workbooks(kind: str, error: str, using: str, text: str, lateness: str = "") -> tuple[str, str]:
    """A workbook with positions, and one with predictions."""
    query = f"CREATE QUERY q AS {text};\n"
    with_positions = POSITIONS.format(kind, lateness) + PREDICTED_FROM.format(kind, error, 4, using) + query
    return with_positions, PREDICTED.format(kind, error, 4) + query


@examples(25)
@given(
    st.data(), st.sampled_from([DOUBLE, INTEGER, TIMESTAMP]), st.sampled_from(["LINEAR", "KALMAN"]),
    st.sampled_from([("1", (1, 1)), ("(x = 0.5, y = 2)", (0.5, 2))]), st.integers(0, len(QUERY_TEXTS) - 1),
)  # fmt: skip
def test_any_split_of_positions_gives_the_answers_of_the_reports(
    data: st.DataObject, kind: str, method: str, error: tuple[str, tuple[float, float]], query: int
) -> None:
    rows = data.draw(drawn_positions(kind))
    using = "" if method == "LINEAR" else " USING KALMAN(0.5, 0.25)"
    with_positions, with_predictions = workbooks(kind, error[0], using, QUERY_TEXTS[query])
    predictions = predictions_of(rows, error[1], 4, method)
    expected = answers(bound_query(with_predictions, "q"), {"vans": predictions}, {})
    event(f"{'some' if expected else 'no'} answers")
    live = data.draw(st.booleans())
    batches = data.draw(splits({"positions": rows}, clock=seconds)) if live else [{"positions": rows}]
    run = run_over(positions_job(with_positions, "q", live), batches, data.draw(st.sampled_from([1, 3])))
    assert_same(run.rows(), expected, LABELS[query])
    assert run.counts.reported == len(predictions)
    assert run.counts.read == len(rows)
    assert run.counts.duplicate == len(rows) - len({(row["id"], row["t"]) for row in rows})


@examples(15)
@given(st.data(), st.sampled_from([1, 2]))
def test_positions_within_the_watermark_are_processed_in_order(data: st.DataObject, delay: int) -> None:
    rows = data.draw(drawn_positions(DOUBLE))
    unique = list({(row["id"], row["t"]): row for row in rows}.values())
    with_positions, with_predictions = workbooks(DOUBLE, "1", "", QUERY_TEXTS[0], f" WATERMARK {delay}")
    expected = answers(bound_query(with_predictions, "q"), {"vans": predictions_of(unique, (1, 1), 4, "LINEAR")}, {})
    batches = data.draw(disordered_splits({"positions": unique}, delay, clock=seconds))
    run = run_over(positions_job(with_positions, "q", live=True), batches, 1)
    assert run.counts.late == 0
    assert_same(run.rows(), expected, LABELS[0])


@pytest.mark.parametrize("buckets", [1, 3])
def test_a_late_position_is_quarantined(buckets: int) -> None:
    with_positions, _ = workbooks(DOUBLE, "1", "", QUERY_TEXTS[0])
    rows = [{"id": 1, "t": float(t), "fuel": 0.0, "x": 0.0, "y": 0.0} for t in (0, 4, 2, 5)]
    run = MonitorRun(positions_job(with_positions, "q", live=True), buckets)
    for row in rows:
        run.step({"positions": [row]})
    run.step({}, end=True)
    assert (run.counts.read, run.counts.used, run.counts.late) == (4, 3, 1)
    assert [row["stream"] for row in run.rejected] == ["positions"]


def test_positions_are_held_until_the_watermark_has_passed_them() -> None:
    """Another position of the same instant may still arrive."""
    with_positions, _ = workbooks(DOUBLE, "1", "", QUERY_TEXTS[2])
    run = MonitorRun(positions_job(with_positions, "q", live=True), 1)
    run.step({"positions": [{"id": 1, "t": 0.0, "fuel": 0.0, "x": 0.0, "y": 0.0}]})
    assert run.rows("tentative") == []
    run.step({"positions": [{"id": 1, "t": 1.0, "fuel": 0.0, "x": 0.0, "y": 0.0}]})
    assert len(run.rows("tentative")) == 1
    run.step({}, end=True)
    assert [(answer["valid_from"], answer["valid_to"]) for answer in run.rows()] == [(0, 4)]


TWO_SOURCES = "".join(
    f"CREATE STREAM {name}_positions KEY (id INTEGER) VALUE (x DOUBLE) TIME t DOUBLE;\n"
    f"CREATE STREAM {name} KEY (id INTEGER) VALUE (x DOUBLE) TIME t DOUBLE\n"
    f"  PREDICTED FROM {name}_positions ERROR 1 PERIOD 9;\n"
    for name in ("vans", "trams")
)


def position(t: float, x: float = 0.0) -> dict[str, float]:
    return {"id": 1, "t": t, "x": x}


def test_a_silent_stream_does_not_hold_the_positions_of_another() -> None:
    """The tram is silent after 1: the report of the van at 3 is compared with it when the van's clock has passed 3."""
    query = "CREATE QUERY q AS MONITOR a, b FROM vans AS a, trams AS b WHERE ABS(a.x - b.x) <= 5;\n"
    run = MonitorRun(positions_job(TWO_SOURCES + query, "q", live=True), 1)
    run.step({"vans_positions": [position(0.0, 100.0)], "trams_positions": [position(0.0), position(1.0)]})
    run.step({"vans_positions": [position(3.0)]})
    assert run.rows("tentative") == []
    run.step({"vans_positions": [position(4.0)]})
    assert [(answer["a"]["t"], answer["b"]["t"]) for answer in run.rows("tentative")] == [(3, 0)]
    assert run.rows() == []
    run.step({"vans_positions": [position(3.5), position(4.0)]})
    assert (run.counts.late, run.counts.duplicate) == (1, 0), "late by the clock of its own stream"


@examples(15)
@given(st.data())
def test_any_split_of_two_streams_of_positions_gives_the_same_answers(data: st.DataObject) -> None:
    clauses = data.draw(st.sampled_from(["", " WITHIN 1", " SEMANTICS MAY"]))
    query = f"CREATE QUERY q AS MONITOR a, b FROM vans AS a, trams AS b WHERE ABS(a.x - b.x) <= 5{clauses};\n"
    times = st.lists(st.integers(0, 12), min_size=1, max_size=8, unique=True)
    rows = {
        f"{name}_positions": [position(float(t), float(data.draw(st.integers(-4, 4)))) for t in data.draw(times)]
        for name in ("vans", "trams")
    }
    batch = run_over(positions_job(TWO_SOURCES + query, "q"), [rows], 1)
    stream = run_over(positions_job(TWO_SOURCES + query, "q", live=True), data.draw(splits(rows)), 1)
    assert stream.counts.late == 0
    assert_same(stream.rows(), batch.rows(), ("a", "b"))


FIXES = (
    "CREATE STREAM fixes KEY (id INTEGER) VALUE (lon DOUBLE, lat DOUBLE) TIME t DOUBLE SPACE (lon, lat) GEODESIC;\n"
    "CREATE STREAM vans KEY (id INTEGER) VALUE (lat DOUBLE, lon DOUBLE) TIME t DOUBLE\n"
    "  SPACE (LON, LAT) GEODESIC ORIGIN (179.9, -16.5) PREDICTED FROM fixes ERROR 50 PERIOD 30;\n"
    "CREATE QUERY q AS MONITOR a, b FROM vans AS a, vans AS b\n"
    "  WHERE ABS(a.lon - b.lon) <= 500 AND ABS(a.lat - b.lat) <= 500 AND a.id < b.id;\n"
)


def test_geodesic_positions_are_compared_in_metres_also_across_the_date_line() -> None:
    """1,000 m east of the other, over the date line, one van comes nearer by 20 m/s: near from 25 s on."""
    metre = 360 / (2 * math.pi * RADIUS * math.cos(math.radians(16.5)))
    rows = [{"id": 1, "t": float(t), "lon": 179.999, "lat": -16.5} for t in range(0, 90, 10)]
    for t in range(0, 90, 10):
        lon = 179.999 + (1000 - 20 * t) * metre
        rows.append({"id": 2, "t": float(t), "lon": (lon + 180) % 360 - 180, "lat": -16.5})
    rows.append({"id": 3, "t": 0.0, "lon": 0.0, "lat": 0.0})
    batches = [{"fixes": [row for row in rows if row["t"] == t]} for t in range(0, 90, 10)]
    for live, parts in ((False, [{"fixes": rows}]), (True, batches)):
        run = run_over(positions_job(FIXES, "q", live), parts, 3)
        assert min(answer["valid_from"] for answer in run.rows()) == pytest.approx(25, abs=0.1)
        assert max(answer["valid_to"] for answer in run.rows()) == pytest.approx(75, abs=0.1)
        assert [row["reason"] for row in run.rejected] == ["it is more than 90 degrees from the ORIGIN"]
        assert '"lon": 0.0' in run.rejected[0]["row"], "rows are quarantined in degrees"
