"""The rows of derived streams as tables are the rows that the definitions give, without Spark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.inference.model import write_hmm
from anabranch.inference.reporting import Sensors
from anabranch.language.parser import parse
from anabranch.planning.derived import layouts_of, reporting_of, rows_job
from anabranch.transport.job import JobContext
from anabranch.transport.operator import Outcome
from anabranch.transport.routing import route
from anabranch.transport.watermark import Clock
from tests.inference.test_stream import building, inferred_rows, random_readings, workbook_text

READINGS = random_readings(3, keys=5, steps=12)


def derived(text: str, name: str, folder: Path, rows: list[dict], n_buckets: int = 3) -> list[Outcome]:
    """The outcome of each bucket of the rows of a derived stream, as a batch run makes them."""
    catalog = Catalog()
    assert declare(parse(text), catalog) == []
    stream = catalog.stream(name)
    read = catalog.stream(stream.source.stream)
    job = rows_job(stream, JobContext(layouts_of([stream], [read], [str(folder)]), {}, ""))
    routed = route(pa.Table.from_pylist(rows), 0, job, n_buckets)
    watermark = Clock(job.layouts).advance([routed.newest], ended=True)
    packets = {bucket: [(0, blob)] for bucket, blob in routed.packets}
    return [job.operator().step(packets.get(bucket, []), watermark, ended=True) for bucket in range(n_buckets)]


@pytest.mark.parametrize("method", ["SMOOTH", "FILTER", "VITERBI", "MLE", "MARGINALS"])
def test_inferred_rows_are_those_of_the_method(method: str, tmp_path: Path) -> None:
    write_hmm(building(), tmp_path / "model")
    outcomes = derived(workbook_text("at", method), "at", tmp_path, READINGS)
    found = pa.concat_tables([outcome.answers for outcome in outcomes]).to_pylist()
    expected = inferred_rows(READINGS, method, building())

    def by_name(row: dict) -> tuple:
        return (row["tag"], row["t"], str(row.get("prev_room")), row["room"])

    found, expected = sorted(found, key=by_name), sorted(expected, key=by_name)
    assert [by_name(row) for row in found] == [by_name(row) for row in expected]
    for name in set(found[0]) & {"p"}:
        assert np.allclose([row[name] for row in found], [row[name] for row in expected], atol=1e-12)
    assert ("p" in found[0]) == (method not in ("VITERBI", "MLE"))
    assert sum(outcome.counts.used for outcome in outcomes) == len(READINGS)


def test_readings_that_a_model_does_not_know_are_quarantined(tmp_path: Path) -> None:
    write_hmm(building(), tmp_path / "model")
    (outcome,) = derived(
        workbook_text("at", "FILTER"), "at", tmp_path, [*READINGS, {"tag": "a", "reader": "north", "t": 2}], 1
    )
    assert outcome.rejected["reason"].to_pylist() == ["the model does not know this reader"]
    assert (outcome.counts.used, outcome.counts.quarantined) == (len(READINGS), 1)


CARS = """
CREATE STREAM positions KEY (car STRING) VALUE (x DOUBLE, y DOUBLE) TIME t INTEGER;
CREATE STREAM cars KEY (car) VALUE (x, y) TIME t ERROR (x = 25, y = 10) PERIOD 30 PREDICTED FROM positions;
"""


def test_predicted_rows_are_the_reports_of_the_sensors(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    rows = [
        {"car": car, "x": float(x), "y": float(y), "t": t}
        for car in "ab"
        for t, (x, y) in enumerate(np.cumsum(rng.normal(0, 9, (40, 2)), axis=0))
    ]
    rng.shuffle(rows)
    outcomes = derived(CARS, "cars", tmp_path, rows)
    found = pa.concat_tables([outcome.answers for outcome in outcomes]).to_pylist()
    catalog = Catalog()
    declare(parse(CARS), catalog)
    layouts = layouts_of([catalog.stream("cars")], [catalog.stream("positions")], ["."])
    sensors = Sensors(reporting_of(catalog.stream("cars"), catalog.stream("positions")), layouts[0].time_kind)
    key, t = np.array(["ab".index(row["car"]) for row in rows]), np.array([row["t"] for row in rows])
    reports = sensors.report(key, t, np.array([[row["x"], row["y"]] for row in rows]))
    expected = [
        {**{name: rows[row][name] for name in ("car", "x", "y", "t")}, "x_rate": x_rate, "y_rate": y_rate}
        for row, (x_rate, y_rate) in zip(reports.row.tolist(), reports.rates.tolist(), strict=True)
    ]

    def by_name(row: dict) -> tuple:
        return (row["car"], row["t"])

    assert sorted(found, key=by_name) == sorted(expected, key=by_name)
    assert 2 < len(found) < len(rows)
    assert sum(outcome.counts.reported for outcome in outcomes) == len(found)
