"""The example `aircraft`: comparison with the truth by hand, and its queries on an hour of the real day."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anabranch as ab
from tests.examples.scripts import real

EXAMPLE = "aircraft"

NOON = pd.Timestamp("2018-08-01 12:00", tz="UTC")


def after(seconds: float) -> pd.Timestamp:
    return NOON + pd.Timedelta(seconds=seconds)


def flight(aircraft: str, x: list[float], y: float = 0.0, altitude: float = 11_000.0, first: float = 0) -> pd.DataFrame:
    """Return positions ten seconds apart."""
    t = pd.DatetimeIndex([after(first + 10 * n) for n in range(len(x))]).as_unit("us")
    return pd.DataFrame({"icao24": aircraft, "t": t, "x": x, "y": y, "altitude": altitude})


def answer(begin: float, end: float, probability: float = 1.0, a: str = "a", b: str = "b") -> dict[str, object]:
    times = {"valid_from": after(begin), "valid_to": after(end), "sample": after((begin + end) / 2)}
    return {"a": a, "b": b, **times, "probability": probability}


def answers(*rows: dict[str, object]) -> pd.DataFrame:
    return pd.DataFrame(list(rows))


# ---------------------------------------------------------------- positions


def test_projected_positions_keep_distances(prepare):
    lon, lat = pd.Series([8.2, 8.3]), pd.Series([46.8, 46.85])
    x, y = prepare.project(lon, lat)
    ends = np.radians([lon, lat])
    directions = np.stack([np.cos(ends[1]) * np.cos(ends[0]), np.cos(ends[1]) * np.sin(ends[0]), np.sin(ends[1])])
    metres = prepare.RADIUS * np.arccos(directions[:, 0] @ directions[:, 1])
    assert np.hypot(*(np.diff(values)[0] for values in (x, y))) == pytest.approx(metres, rel=1e-3)
    assert [values.tolist() for values in prepare.degrees(x, y)] == [pytest.approx(lon), pytest.approx(lat)]


def test_split_files_have_the_modification_time_of_their_rows(prepare, tmp_path: Path):
    assert prepare.write_files(flight("a", [0.0] * 100), tmp_path, 5) == 4
    files = sorted(tmp_path.glob("*.parquet"), key=lambda file: file.stat().st_mtime)
    assert [file.stem for file in files] == ["1200", "1205", "1210", "1215"]
    assert pd.concat(map(pd.read_parquet, files))["t"].is_monotonic_increasing


# ---------------------------------------------------------------- evaluation


def test_the_truth_has_bounds_in_each_direction_at_one_instant(run):
    flights = [flight("b", [0, 0, 0]), flight("a", [10_000, 10_001, -10_000]), flight("c", [0, 0], altitude=11_301)]
    close = run.together(pd.concat(flights, ignore_index=True), 300)
    assert close.to_numpy().tolist() == [["a", "b", after(0), 0.0], ["a", "b", after(20), 0.0]]


def test_the_instants_of_an_answer_exclude_its_end(run):
    rows = answers(answer(0, 20), answer(20, 29.5, 0.5), answer(31, 39), answer(40, 40.5), answer(50, 50))
    instants = run.at_steps(rows)
    assert [(t - NOON).total_seconds() for t in instants["t"]] == [0, 10, 20, 40]
    assert instants["probability"].tolist() == [1, 1, 0.5, 1]


def test_answers_about_aircraft_that_have_left_are_counted_separately(run):
    positions = pd.concat([flight("a", [0, 0, 0]), flight("b", [0, 9_000])], ignore_index=True)
    truth = run.together(positions, 300)
    judged = run.judge(answers(answer(0, 5), answer(10, 25)), truth, positions)
    assert (judged.answers, judged.gone, judged.true, judged.right) == (2, 1, 2, 2)
    assert (judged.precision, judged.recall) == (1, 1)
    judged = run.judge(answers(answer(0, 5), answer(0, 5, b="c")), truth, positions)
    assert (judged.answers, judged.gone, judged.recall) == (1, 1, 0.5)


def test_positions_are_interpolated(run):
    positions = flight("a", [0, 100, 400])
    times = pd.Series([after(s) for s in (0, 5, 12.5, 20, 22)])
    between = run.between(positions, pd.Series(["a"] * 5), times)
    assert between["x"].tolist() == pytest.approx([0, 50, 175, 400, np.nan], nan_ok=True)


def test_calibration(run):
    positions = pd.concat([flight("a", [0, 0]), flight("b", [0, 40_000])], ignore_index=True)
    rows = answers(answer(0, 4, 0.92), answer(0, 8, 0.94), answer(8, 10, 0.96), answer(15, 20, 0.1))
    (bin,) = run.reliability(rows, positions, 300)
    assert (bin.answers, bin.predicted, bin.observed) == (3, pytest.approx(0.94), pytest.approx(1 / 3))


# ---------------------------------------------------------------- an hour of the real day


@pytest.fixture
def hour(prepare) -> pd.DataFrame:
    return prepare.read_positions(real("adsb_switzerland"), hours=1)


def test_may_has_full_recall_and_must_has_full_precision(run, hour, spark):
    (near, over, surely), sent = run.ask(hour, "near", "over", "surely_over")
    assert 0.75 < 1 - sent / len(hour) < 0.9, "the share of positions that need not be sent"
    judged = {
        name: run.judge(rows, run.together(hour, run.ALTITUDE[name]), hour)
        for name, rows in (("near", near), ("over", over), ("surely_over", surely))
    }
    assert judged["near"].true > 5
    assert judged["near"].recall == 1
    assert judged["over"].true > 50
    assert judged["over"].recall == 1
    assert judged["over"].precision > 0.7
    assert judged["surely_over"].answers > 30
    assert judged["surely_over"].precision == 1
    assert judged["surely_over"].recall > 0.6


def test_a_stream_has_the_answers_of_the_archive(prepare, run, hour, spark, tmp_path: Path):
    prepare.write_files(hour, tmp_path / "positions", 30)
    session = ab.Session()
    session.execute_file(str(run.WORKBOOK))
    session.bind("positions", tmp_path / "positions")
    checkpoint, output = str(tmp_path / "checkpoint"), tmp_path / "over"
    for _ in range(2):
        running = session.start("over", checkpoint, str(output), trigger={"availableNow": True}, max_files=1)
        running.awaitTermination()
        session.end_input(checkpoint)
    live = run.flat(pa.concat_tables(map(pq.read_table, output.glob("*.parquet"))))
    counts = session.counts("over")
    (archived,), sent = run.ask(hour, "over")
    pd.testing.assert_frame_equal(live, archived)
    assert (counts.used, counts.late, counts.reported) == (len(hour), 0, sent)


# ---------------------------------------------------------------- pictures


def test_tracks_are_split_where_an_aircraft_was_away(draw):
    flights = pd.concat([flight("a", [0.0] * 13), flight("a", [5.0] * 2, first=900), flight("b", [9.0])])
    tracks = draw.tracks_of(flights.reset_index(drop=True)).to_pandas()
    assert tracks.groupby("track").size().tolist() == [3, 2, 1], "a point per minute, and both ends"


def test_the_map_has_no_aircraft_that_have_left(draw):
    flights = [flight("a", [0.0] * 13), flight("b", [5_000.0] * 13), flight("c", [9_000.0])]
    positions = pd.concat(flights, ignore_index=True)
    rows = answers(answer(0, 50, 0.4), answer(50, 70, 0.9), answer(20, 30, b="c"))
    pairs = draw.meetings(rows, positions)
    assert pairs["t"].to_pylist() == [after(60)]
    picture = draw.draw_meetings(pairs, positions)
    assert picture.count("<circle") == 2
    assert picture.count("<polyline") == 4, "three tracks, and a line between the pair"


def test_a_pair_is_drawn_with_its_reports(draw):
    one, two = draw.CLOSE
    straight, bent = [230.0 * n for n in range(0, 200, 10)], [4600.0 - 230.0 * n for n in range(0, 200, 10)]
    bent[12:] = [bent[11] + 40.0 * n for n in range(8)]
    positions = pd.concat([flight(one, straight), flight(two, bent, altitude=11_300.0)], ignore_index=True)
    rows = answers(answer(60, 120, a=one, b=two))
    assert len(draw.reports_of(positions[positions["icao24"] == two])) == 3, "the first two, and at the bend"
    picture = draw.draw_pair(rows, rows, positions)
    assert picture.count("<path") == 2, "an arrow in the direction of flight of each"
    assert "12:02:00" in picture
