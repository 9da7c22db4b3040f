"""Calibration of CONSTRAIN with SEMANTICS EXPECTED: aircraft of `adsb_switzerland` whose true locations are held out.

A query sees readings with an error, and asks which aircraft are near each other. The reported locations are the truth.
The readings are made of them in three ways:

- *uniform*: a uniform error of up to 5 km, which is what EXPECTED assumes.
- *rounded*: degrees are rounded to multiples of 0.1; the error is half the diagonal of such a cell.
- *a minute old*: the location one minute earlier; the error is the distance at the speed that was reported then.

*readings* takes the readings as true locations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from anabranch.columns.globe import RADIUS
from anabranch.transport.finishing import finish_table
from benchmarks.calibration.inference import DATA
from benchmarks.calibration.results import Result
from benchmarks.engines import make_job, packets_of, step_to_end

WORKBOOK = """
CREATE STREAM plane KEY (id STRING) VALUE (off DOUBLE) TIME t INTEGER SPACE (lon, lat) GEODESIC ERROR off;
CREATE QUERY q AS {query} SEMANTICS EXPECTED;
"""

#: The questions: a query, and how near all its aircraft must be to each other, in metres.
QUESTIONS = {
    "CONSTRAIN: two aircraft within 15 km": (
        "CONSTRAIN v*2 FROM plane WHERE v.id <> v.id AND SPAN(v, v) <= 0 AND DISTANCE(v, v) <= 15000",
        15_000.0,
    ),
    "CONSTRAIN: three aircraft within 25 km": (
        "CONSTRAIN v*3 FROM plane WHERE v.id <> v.id AND SPAN(v, v) <= 0 AND DISTANCE(v, v) <= 25000",
        25_000.0,
    ),
}

#: The seconds between two instants that are asked about.
EVERY = 300
#: How old the readings of *a minute old* are, in seconds.
AGE = 60

_KNOT = 1852 / 3600


def results(seeds: Sequence[int]) -> Iterator[Result]:
    """The probabilities of both questions by both methods, for all kinds of readings."""
    reports = pd.read_csv(DATA / "adsb_switzerland" / "switzerland_20180801_10s.csv.gz")
    for seed in seeds:
        for kind, readings in readings_of(reports, seed).items():
            for question, (query, bound) in QUESTIONS.items():
                yield from asked(f"{question}, {kind}", query, bound, readings, seed)


def readings_of(reports: pd.DataFrame, seed: int) -> dict[str, pd.DataFrame]:
    """Readings with an error (`lon`, `lat`, `off`), and the true locations (`true_lon`, `true_lat`)."""
    seconds = pd.to_datetime(reports["timestamp"]).astype("datetime64[s]").astype("int64")
    known = pd.DataFrame({
        "id": reports["icao24"], "t": seconds, "true_lon": reports["longitude"], "true_lat": reports["latitude"],
        "speed": reports["groundspeed"] * _KNOT,
    }).drop_duplicates(["id", "t"])  # fmt: skip
    before = known.assign(t=known["t"] + AGE).rename(columns={"true_lon": "lon", "true_lat": "lat"})
    truth = known[known["t"] % EVERY == seed * 10 % EVERY]
    rng = np.random.default_rng(seed)
    radius, turn = 5000 * np.sqrt(rng.random(len(truth))), 2 * np.pi * rng.random(len(truth))
    north = np.degrees(radius * np.sin(turn) / RADIUS)
    east = np.degrees(radius * np.cos(turn) / RADIUS) / np.cos(np.radians(truth["true_lat"]))
    uniform = truth.assign(lon=truth["true_lon"] + east, lat=truth["true_lat"] + north, off=5000.0)
    rounded = truth.assign(lon=truth["true_lon"].round(1), lat=truth["true_lat"].round(1))
    height, width = np.radians(0.05) * RADIUS, np.radians(0.05) * RADIUS * np.cos(np.radians(rounded["lat"]))
    rounded["off"] = np.hypot(height, width)
    old = truth.drop(columns="speed").merge(before, on=["id", "t"])
    old["off"] = old["speed"] * AGE
    return {"uniform": uniform, "rounded": rounded, "a minute old": old[old["off"] > 0]}


def asked(task: str, query: str, bound: float, readings: pd.DataFrame, seed: int) -> Iterator[Result]:
    """The probabilities of the answers, by EXPECTED and by the readings alone."""
    job = make_job(WORKBOOK.format(query=query), "q")
    columns = ["id", "off", "t", "lon", "lat"]
    packets = packets_of(job, pa.Table.from_pandas(readings[columns], preserve_index=False))
    found = finish_table(job.rules(0), step_to_end(job, packets).answers).to_pylist()
    truth = {(row.id, row.t): (row.true_lon, row.true_lat) for row in readings.itertuples()}
    true = np.array([is_near([truth[event["id"], event["t"]] for event in row["v"]], bound) for row in found], np.bool_)
    read = np.array([is_near([_reading(event) for event in row["v"]], bound) for row in found], np.float64)
    yield Result("adsb_switzerland", task, "readings", seed, read, true)
    yield Result("adsb_switzerland", task, "EXPECTED", seed, np.array([row["probability"] for row in found]), true)


def is_near(locations: Sequence[tuple[float, float]], bound: float) -> bool:
    """Whether every two locations, in degrees, are at most this far apart."""
    lon, lat = np.radians(np.array(locations)).T
    points = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)
    chords = np.linalg.norm(points[:, None] - points, axis=2)
    return bool((2 * RADIUS * np.arcsin(np.minimum(1.0, chords / 2)) <= bound).all())


def _reading(event: Mapping[str, float]) -> tuple[float, float]:
    return event["lon"], event["lat"]
