"""Charts of every kind: what is in the specification, and that files are written. No Spark."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import anabranch as ab
from anabranch.errors import AnabranchError, DataError
from anabranch.plotting.answers import kind_of, table_of
from tests.charts.answers import HOSTILE
from tests.drawing.pictures import texts
from tests.plotting import answers as given
from tests.plotting.specifications import marks, rows, subtitle

DRAWN = {
    "pattern": lambda: ab.plot(given.coffee(), title="coffee", threshold=0.1),
    "per": lambda: ab.plot(given.breaks(), title="breaks"),
    "sequence": lambda: ab.plot(given.bought(), title="bought"),
    "relate": lambda: ab.plot(given.met(), title="met"),
    "intervals": lambda: ab.plot(given.met(), title="met", data=given.journeys()),
    "monitor": lambda: ab.plot(given.near(live=True), title="near"),
    "tracks": lambda: ab.plot(given.near(), title="near", data=given.predictions(), error=5, period=30),
    "map": lambda: ab.plot(given.storms(), title="storms"),
    "lanes": lambda: ab.plot(given.pumps(), title="pumps"),
    "matrix": lambda: ab.plot(given.sectors(), title="jams"),
    "evaluation": lambda: ab.plot(given.evaluation(), title="cases"),
}

#: Labels that the picture of each chart has: its title, legend entries, axes and lanes.
LABELS = {
    "pattern": {"coffee", "ana", "ben", "eva", "probability at each instant, by p", "time (UTC), 2026-03-02"},
    "per": {"breaks", "probability of each window or episode, by p"},
    "sequence": {"bought", "event", "x", "y", "z", "pen", "cup", "ink", "0.120"},
    "relate": {"met", "D40 early – D40 late", "0.800", "probability"},
    "intervals": {"met", "a", "b", "shaded: the end of the interval was lost, and is somewhere in it"},
    "monitor": {"near", "status", "validated", "partial", "tentative", "a – b", "0.450"},
    "tracks": {"near", "a", "b", "c", "x", "time"},
    "map": {"storms", "event", "u", "v", "w", "longitude", "latitude"},
    "lanes": {"pumps", "event", "v", "1", "2", "0.360"},
    "matrix": {"jams", "sector of a", "sector of b", "probability"},
    "evaluation": {"cases", "Reliability", "Thresholds", "precision", "recall", "F1", "share of true answers"},
}


# ---------------------------------------------------------------- all kinds


@pytest.mark.parametrize("name", DRAWN)
def test_the_specification_is_valid_and_pictures_have_the_labels(name: str, tmp_path: Path) -> None:
    chart = DRAWN[name]()
    for theme in ("light", "dark"):
        drawn = texts(chart.to_svg(theme))
        assert set(drawn) >= LABELS[name], theme
    chart.save(tmp_path / "chart.png", theme="dark")
    data = (tmp_path / "chart.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) > 10_000
    chart.save(tmp_path / "chart.json")
    assert json.loads((tmp_path / "chart.json").read_text()) == chart.to_dict()


@pytest.mark.parametrize("name", [name for name in DRAWN if name != "evaluation"])
def test_every_chart_of_answers_has_a_slider_that_hides_answers_tooltips_and_zoom(name: str) -> None:
    spec = DRAWN[name]().to_dict()
    parameters = {parameter["name"]: parameter for parameter in spec["params"]}
    assert parameters["threshold"]["bind"]["input"] == "range"
    filters = [view for view in marks(spec) if "datum.probability >= threshold" in json.dumps(view.get("transform"))]
    assert filters
    assert any("tooltip" in view["encoding"] for view in filters)
    assert any(parameter.get("bind") == "scales" for parameter in _all_parameters(spec)) or name in ("relate", "matrix")


def _all_parameters(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [*spec["params"], *(parameter for view in marks(spec) for parameter in view.get("params", []))]


def test_a_page_is_self_contained_and_has_both_themes(tmp_path: Path) -> None:
    ab.plot(given.coffee(), title="coffee").save(tmp_path / "chart.html")
    page = (tmp_path / "chart.html").read_text()
    assert re.search(r"<script[^>]+src\s*=", page) is None
    assert re.search(r"<link|@import|url\(", page.partition('<script type="module">')[0]) is None
    assert re.search(r"import\s*\(?\s*[\"']https?:", page) is None
    assert "prefers-color-scheme: dark" in page
    configs = json.loads(_element(page, "configs"))
    assert configs["light"]["background"] != configs["dark"]["background"]
    spec = json.loads(_element(page, "specification"))
    assert "config" not in spec
    assert spec["datasets"]
    assert len(page) > 500_000, "Vega is part of the page"


def _element(page: str, name: str) -> str:
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return found[1]


def test_hostile_values_stay_text() -> None:
    table = given.coffee().set_column(1, "p", pa.array([HOSTILE] * given.coffee().num_rows))
    chart = ab.plot(table, title="</script><script>alert(1)</script>")
    page = chart.to_html()
    assert "<script>alert(1)" not in page
    assert HOSTILE not in chart.to_svg()
    assert "<script>alert" not in chart.to_svg()


def test_a_notebook_gets_a_frame_of_its_own() -> None:
    chart = ab.plot(given.coffee(), title="coffee")
    bundle = chart._repr_mimebundle_()
    assert bundle["text/plain"] == "<Chart: coffee>"
    assert bundle["text/html"] == chart._repr_html_()
    assert bundle["text/html"].startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
    assert "<script" not in bundle["text/html"]


# ---------------------------------------------------------------- inputs


def test_the_kind_is_recognised_from_the_columns() -> None:
    kinds = {
        "pattern": given.coffee(), "sequence": given.bought(), "relate": given.met(), "monitor": given.near(),
        "constrain": given.storms(),
    }  # fmt: skip
    assert [kind_of(table) for table in kinds.values()] == list(kinds)
    assert kind_of(given.breaks()) == "pattern"
    assert kind_of(given.pumps()) == "constrain"


class SparkLike:
    """As a Spark DataFrame: all that is used of it is `toArrow`."""

    def toArrow(self) -> pa.Table:
        return given.coffee()


class PolarsLike:
    """As a Polars DataFrame: it exports its columns by the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return given.coffee().__arrow_c_stream__(requested_schema)


def test_all_inputs_give_the_same_chart(tmp_path: Path) -> None:
    table = given.coffee()
    pq.write_table(table, tmp_path / "coffee.parquet")
    (tmp_path / "folder").mkdir()
    pq.write_table(table.slice(0, 4), tmp_path / "folder" / "part-0.parquet")
    pq.write_table(table.slice(4), tmp_path / "folder" / "part-1.parquet")
    expected = rows(ab.plot(table), "group")
    sources = [SparkLike(), PolarsLike(), table.to_pandas(), tmp_path / "coffee.parquet", str(tmp_path / "folder")]
    for source in sources:
        found = rows(ab.plot(source), "group")
        assert [(row["group"], row["t"], row["probability"]) for row in found] == [
            (row["group"], row["t"], row["probability"]) for row in expected
        ]


def test_structs_of_csv_files_and_times_of_json_files_are_read_back(tmp_path: Path) -> None:
    pa_csv.write_csv(given.bought().flatten(), tmp_path / "bought.csv")
    table = table_of(tmp_path / "bought.csv")
    assert kind_of(table) == "sequence"
    assert table["y"].to_pylist()[1] is None
    chart = ab.plot(tmp_path / "bought.csv")
    assert [row["read"] for row in rows(chart, "read")] == [
        row["read"] for row in rows(ab.plot(given.bought()), "read")
    ]
    line = '{"t":"2026-03-02T09:00:00.000Z","p":"ana","probability":0.5}'
    (tmp_path / "coffee.json").write_text(line + "\n")
    (row,) = rows(ab.plot(tmp_path / "coffee.json"), "group")
    assert row["t"] == given.at(0).timestamp() * 1000


def test_arrays_in_csv_files_are_lists_again(tmp_path: Path) -> None:
    text = 't,v,probability\n4,"[{""pump"":1,""when"":0.5},{""pump"":1,""when"":4}]",0.36\n'
    (tmp_path / "pumps.csv").write_text(text)
    points = rows(ab.plot(tmp_path / "pumps.csv", time="when"), "component")
    assert [(point["component"], point["t"]) for point in points] == [("v", 0.5), ("v", 4.0)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ab.plot(3), "cannot plot a int; pass answers as"),
        (lambda: ab.plot(pd.DataFrame({"t": [1]})), "answers have a column probability; these columns are: t"),
        (lambda: ab.plot(given.coffee(), kind="map"), "there is no kind map; there are pattern"),
        (lambda: ab.plot(given.coffee(), limit=0), "limit is at least 1, not 0"),
        (lambda: ab.plot(given.coffee(), threshold=2), "threshold is between 0 and 1, not 2"),
        (lambda: ab.plot(given.storms(), space=("e", "n")), "space= names two columns of the events"),
        (lambda: ab.plot(given.near(), data=given.journeys()), "data= of MONITOR has a time"),
        (lambda: ab.plot(given.met(), data=given.predictions()), "data= of RELATE has columns seq and t"),
        (lambda: ab.plot(given.coffee()).save("x.pdf"), "x.pdf: a chart is written as .html, .png, .svg, .json"),
        (lambda: ab.plot(given.coffee()).to_dict("blue"), "there is no theme blue; there are light and dark"),
    ],
)
def test_wrong_calls_are_one_line(call: Any, message: str) -> None:
    with pytest.raises(AnabranchError) as caught:
        call()
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_the_package_is_as_light_as_before_and_without_altair_one_line_says_what_to_install() -> None:
    script = (
        "import sys, anabranch as ab\n"
        "assert not {'altair', 'vl_convert', 'pyarrow', 'pyspark', 'numpy'} & set(sys.modules), 'loaded'\n"
        "ab.to_geojson\n"
        "assert not {'altair', 'vl_convert', 'pyspark'} & set(sys.modules), 'loaded'\n"
        "sys.modules['altair'] = None\n"
        "try:\n"
        "    ab.plot([{'t': 1, 'probability': 0.5}])\n"
        "except ab.AnabranchError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "charts need Altair and vl-convert; install them: pip install 'anabranch[plot]'\n"


# ---------------------------------------------------------------- large inputs


def test_answers_that_are_not_shown_are_counted() -> None:
    table = pa.table({"t": list(range(6_000)), "probability": [number / 6_000 for number in range(6_000)]})
    chart = ab.plot(table)
    shown = rows(chart, "group")
    assert len(shown) == 5_000
    assert min(row["probability"] for row in shown) == 1_000 / 6_000
    assert [row["t"] for row in shown] == sorted(row["t"] for row in shown), "in their order"
    assert "5,000 of 6,000 answers: those with the highest probabilities" in subtitle(chart)
    assert len(rows(ab.plot(table, limit=7), "group")) == 7


def test_groups_that_are_not_shown_are_counted() -> None:
    table = pa.table({"t": [1] * 30, "p": list(range(30)), "probability": [number / 30 for number in range(30)]})
    chart = ab.plot(table)
    assert {row["group"] for row in rows(chart, "group")} == {str(number) for number in range(18, 30)}
    assert "12 of 30 groups: those with the highest probabilities" in subtitle(chart)


def test_answers_without_a_probability_or_a_time_are_counted() -> None:
    table = pa.table({"t": [1, 2, 3, None], "probability": [0.5, None, float("nan"), 0.5]})
    chart = ab.plot(table)
    assert len(rows(chart, "group")) == 1
    assert "2 answers without a probability are left out" in subtitle(chart)
    assert "1 answers without a time are left out" in subtitle(chart)


@pytest.mark.parametrize("table", [given.coffee(), given.bought(), given.met(), given.near(), given.storms()])
def test_no_answers_are_an_empty_chart(table: pa.Table) -> None:
    assert ab.plot(table.slice(0, 0), title="nothing").to_svg().startswith("<svg")


# ---------------------------------------------------------------- what each kind shows


def test_pattern_has_a_stem_at_each_instant_and_a_line_at_the_threshold() -> None:
    chart = DRAWN["pattern"]()
    found = [(row["group"], row["t"], row["probability"]) for row in rows(chart, "group")]
    assert ("ana", given.at(20).timestamp() * 1000, 0.71) in found
    assert len(found) == 9
    spec = chart.to_dict()
    assert spec["facet"]["row"]["field"] == "group"
    line = next(view for view in marks(spec) if view["mark"].get("style") == "threshold")
    assert line["encoding"]["y"]["datum"] == {"expr": "threshold"}
    assert [parameter["value"] for parameter in spec["params"] if parameter["name"] == "threshold"] == [0.1]
    types = [view["mark"]["type"] for view in marks(spec)]
    assert types == ["rule", "point", "rule", "rule"], "stems, points, intervals of sampled answers, threshold"


def test_whole_times_have_whole_ticks() -> None:
    for first, last in ((3, 4), (3.0, 4.0)):
        drawn = texts(ab.plot(pa.table({"t": [first, last], "probability": [0.5, 0.6]})).to_svg())
        assert {"3", "4"} <= set(drawn)
        assert "3.5" not in drawn


def test_rows_of_per_are_bars_from_their_beginning_to_their_end() -> None:
    chart = DRAWN["per"]()
    first = rows(chart, "group")[0]
    assert (first["t"], first["t_to"]) == (given.at(0).timestamp() * 1000, given.at(10).timestamp() * 1000)
    bar = next(marks(chart.to_dict()))
    assert bar["mark"]["type"] == "bar"
    assert (bar["encoding"]["x"]["field"], bar["encoding"]["x2"]["field"]) == ("t", "t_to")


def test_an_episode_of_one_instant_is_visible() -> None:
    for end, lines in ((3, 1), (4, 0)):
        chart = ab.plot([{"t_from": 3, "t_to": end, "p": "ana", "probability": 0.5}])
        assert chart.to_svg().count('aria-roledescription="rule mark"') == lines


def test_sequence_draws_missing_readings_hollow_between_their_neighbours() -> None:
    chart = DRAWN["sequence"]()
    points = rows(chart, "read")
    missing = [(point["lane"], point["component"], point["t"]) for point in points if not point["read"]]
    # The lanes are sorted by time, then by probability; before the first event there is a margin of 6 % of 9.
    assert missing == [(1, "y", 2.5), (2, "y", 4.0), (3, "x", pytest.approx(6 - 0.54))]
    assert len(points) == 12
    hollow = next(view for view in marks(chart.to_dict()) if view["mark"].get("style") == "missing")
    assert "filled" not in hollow["mark"]
    assert "!datum.read" in json.dumps(hollow["transform"])
    solid = next(view for view in marks(chart.to_dict()) if view["mark"].get("style") == "known")
    assert solid["mark"]["filled"] is True
    assert solid["encoding"]["opacity"]["field"] == "probability"


def test_an_event_that_is_missing_at_the_end_is_before_the_end_of_the_window() -> None:
    table = pa.table(
        {
            "t": [6],
            "t_start": [1],
            "probability": [0.5],
            "x": pa.array([{"tag": "cup", "reader": "shelf", "t": 1}], given.READING),
            "z": pa.array([None], given.READING),
        }
    )
    assert [(point["t"], point["read"]) for point in rows(ab.plot(table), "read")] == [(1.0, True), (3.5, False)]


def test_a_run_has_its_first_and_its_last_event() -> None:
    event = {"tag": "pen", "reader": "till", "t": 1}
    run = {"count": 3, "first": {**event, "t": 2}, "last": {**event, "t": 4}}
    chart = ab.plot([{"t": 5, "t_start": 1, "probability": 0.5, "x": event, "y": run, "z": {**event, "t": 5}}])
    assert [(point["component"], point["t"]) for point in rows(chart, "read")] == [
        ("x", 1.0), ("y", 2.0), ("y", 4.0), ("z", 5.0),
    ]  # fmt: skip


def test_relate_has_the_most_probable_pair_first_and_shades_lost_ends() -> None:
    chart = DRAWN["intervals"]()
    bars = rows(chart, "text")
    assert [bar["probability"] for bar in bars] == [1.0, 0.8, 0.35]
    spans = rows(chart, "certain")
    early = [
        (span["t"], span["t_to"]) for span in spans if span["lane"] == 1 and span["side"] == "a" and span["certain"]
    ]
    assert early == [(0.0, 4.0), (10.0, 10.0), (30.0, 34.0)]
    lost = [(span["lane"], span["side"], span["t"], span["t_to"]) for span in spans if not span["certain"]]
    assert lost == [(1, "a", 10.0, 30.0), (2, "a", 10.0, 30.0)]


def test_many_pairs_of_few_keys_are_a_matrix() -> None:
    chart = ab.plot(given.sectors(), title="jams")
    cells = {(row["first"], row["second"]): row["probability"] for row in rows(chart, "first")}
    assert len(cells) == 66
    assert cells["2", "11"] == pytest.approx(1 / 9)
    spec = chart.to_dict()
    (cell,) = marks(spec)
    assert cell["mark"]["type"] == "rect"
    assert cell["encoding"]["x"]["scale"]["domain"] == [str(number) for number in range(2, 13)], "numbers by size"
    assert len(rows(ab.plot(given.sectors(), limit=40), "lane")) == 40, "a limit asks for a list"


def test_answers_about_the_same_keys_share_a_lane() -> None:
    chart = ab.plot(pa.concat_tables([given.near(), given.near().set_column(6, "probability", [[0.9, 0.2, 0.1]])]))
    bars = rows(chart, "valid_to")
    assert sorted(bar["lane"] for bar in bars) == [0, 0, 1, 1, 2, 2]
    assert sorted(bar["text"] for bar in bars if bar["text"]) == ["0.450", "0.800", "1.000"]
    live = pa.concat_tables([given.near(live=True)] * 2)
    assert len({bar["lane"] for bar in rows(ab.plot(live), "valid_to")}) == 6, "corrections do not cover each other"


def test_lanes_that_are_not_shown_are_counted() -> None:
    pairs = [{"a": {"car": n, "t": 0}, "b": {"car": n + 1, "t": 0}, "valid_from": 0, "valid_to": 1 + n % 2,
              "probability": 0.5 if n < 70 else 0.4} for n in range(80)]  # fmt: skip
    chart = ab.plot(pairs)
    assert "40 of 80 lanes, with 40 of 80 answers: those with the highest probabilities" in subtitle(chart)
    assert {row["probability"] for row in rows(chart, "valid_to")} == {0.5}
    events = [{"t": float(n), "v": [{"pump": 1, "when": float(n)}], "probability": 0.5} for n in range(60)]
    chart = ab.plot(events)
    assert len({row["lane"] for row in rows(chart, "component")}) == 40
    assert "40 of 60 answers: those with the highest probabilities" in subtitle(chart)


def test_monitor_has_validity_and_its_certain_part() -> None:
    chart = DRAWN["monitor"]()
    found = {row["lane"]: row for row in rows(chart, "valid_to")}
    assert [(row["t"], row["valid_to"], row["status"]) for row in found.values()] == [
        (3.0, 6.0, "partial"), (7.0, 13.0, "validated"), (15.0, 19.0, "tentative"),
    ]  # fmt: skip
    assert (found[1]["certain_from"], found[1]["certain_to"], found[2]["certain_from"]) == (8.0, 12.0, None)
    assert next(marks(chart.to_dict()))["encoding"]["color"]["field"] == "status"


def test_tracks_end_at_the_next_prediction_and_have_the_error() -> None:
    chart = DRAWN["tracks"]()
    assert "band: the error of the predictions" in subtitle(chart)
    points = [row for row in rows(chart, "part") if row["key"] == "a"]
    assert [(row["t"], row["value"], row["low"], row["high"]) for row in points] == [
        (0.0, 0.0, -5.0, 5.0), (10.0, 100.0, 95.0, 105.0), (10.0, 98.0, 93.0, 103.0), (23.0, 176.0, 171.0, 181.0),
    ]  # fmt: skip


def test_an_accelerated_prediction_is_a_curve() -> None:
    data = [{"car": car, "t": 0.0, "x": 0.0, "x_rate": 20.0, "x_accel": -2.0} for car in "abc"]
    points = [row for row in rows(ab.plot(given.near(), data=data, period=10), "part") if row["key"] == "a"]
    assert len(points) == 13
    assert (points[-1]["t"], points[-1]["value"]) == (10.0, 100.0)


def test_a_map_has_the_events_of_each_answer_and_coasts() -> None:
    chart = DRAWN["map"]()
    points = rows(chart, "variable")
    assert [(point["variable"], point["x"], point["y"]) for point in points[:3]] == [
        ("u", -30.0, 45.0), ("v", -22.0, 48.0), ("w", -27.0, 52.0),
    ]  # fmt: skip
    coast = rows(chart, "ring")
    assert any(-10 < point["x"] < -5 and 50 < point["y"] < 56 for point in coast), "Ireland"
    link = next(view for view in marks(chart.to_dict()) if view["mark"].get("style") == "link")
    assert link["encoding"]["detail"]["field"] == "answer"


def test_a_map_across_the_date_line_is_one_region() -> None:
    across = [point["x"] for point in rows(ab.plot(given.storms(date_line=True)), "variable")]
    assert max(across) - min(across) == pytest.approx(41.0)


def test_a_map_of_a_plane_has_no_coasts() -> None:
    table = pa.table({"t": [1], "u": [{"x": 1.0, "y": 2.0}], "v": [{"x": 3.0, "y": 2.5}], "probability": [0.5]})
    chart = ab.plot(table)
    with pytest.raises(AssertionError, match="no data have ring"):
        rows(chart, "ring")
    assert {"x", "y"} <= set(texts(chart.to_svg()))


def test_the_time_of_events_is_found_by_its_values() -> None:
    points = rows(DRAWN["lanes"](), "component")
    assert [point["t"] for point in points] == [0.5, 4.0, 5.0, 9.5]


def test_an_evaluation_has_its_bins_and_its_best_threshold() -> None:
    result = given.evaluation()
    chart = ab.plot(result)
    found = [(row["predicted"], row["observed"]) for row in rows(chart, "predicted")]
    assert found == [(bin.predicted, bin.observed) for bin in result.bins]
    assert {"threshold": result.best.threshold, "measure": "F1", "value": result.best.f1} in rows(chart, "measure")


def test_times_may_be_timestamps_in_every_kind() -> None:
    """The rest of the answers has numbers where those of the charts above have numbers."""
    event = {"tag": "pen", "when": given.at(0)}
    sequence = {"t": given.at(9), "t_start": given.at(0), "probability": 0.5, "x": event, "y": None}
    chart = ab.plot([{**sequence, "z": {"tag": "pen", "when": given.at(9)}}])
    assert [point["t"] for point in rows(chart, "read")] == [1000 * given.at(t).timestamp() for t in (0, 4.5, 9)]
    car = {"car": "a", "t": given.at(0)}
    valid = {"valid_from": given.at(1), "valid_to": given.at(3), "certain_from": given.at(2), "certain_to": given.at(3)}
    near = [{"a": car, **valid, "probability": 0.5}]
    data = [{**car, "x": 1.0, "x_rate": 0.5}]
    pair = [{"a": {"bus": "k"}, "b": {"bus": "l"}, "probability": 0.5}]
    stops = [{"bus": bus, "seq": seq, "t": given.at(seq)} for bus in "kl" for seq in (1, 2)]
    charts = (chart, ab.plot(near), ab.plot(near, data=data, error=1), ab.plot(pair, data=stops))
    for drawn in charts:
        assert "time (UTC), 2026-03-02" in texts(drawn.to_svg())
    assert rows(charts[2], "part")[-1]["value"] == pytest.approx(1 + 0.5 * 60 * 3.5)


# ---------------------------------------------------------------- GeoJSON


def test_geojson_has_a_line_for_each_configuration() -> None:
    document = ab.to_geojson(given.storms())
    assert json.loads(json.dumps(document)) == document
    first = document["features"][0]
    assert first["geometry"] == {"type": "LineString", "coordinates": [[-30.0, 45.0], [-22.0, 48.0], [-27.0, 52.0]]}
    assert first["properties"]["probability"] == 0.9
    assert first["properties"]["u"]["id"] == "b00"
    assert first["properties"]["t"] == "2026-03-02T09:02:00+00:00"
    assert len(document["features"]) == 3


def test_geojson_cuts_lines_at_the_date_line() -> None:
    event = {"lon": 179.0, "lat": 0.0}
    (feature,) = ab.to_geojson([{"t": 1, "u": event, "v": {"lon": -179.0, "lat": 2.0}, "probability": 1.0}])["features"]
    assert feature["geometry"] == {
        "type": "MultiLineString",
        "coordinates": [[[179.0, 0.0], [180.0, 1.0]], [[-180.0, 1.0], [-179.0, 2.0]]],
    }
    (feature,) = ab.to_geojson([{"t": 1, "u": event, "v": event, "probability": 1.0}])["features"]
    assert feature["geometry"] == {"type": "Point", "coordinates": [179.0, 0.0]}


def test_geojson_has_the_tracks_of_a_monitor() -> None:
    data = [
        {"car": car, "t": 0.0, "lon": 10.0, "lon_rate": 0.1, "lat": 50.0, "lat_rate": 0.0} for car in ("a", "b", "c")
    ]
    features = ab.to_geojson(given.near(), data=data)["features"]
    assert len(features) == 6
    assert features[0]["geometry"]["coordinates"] == [[10.7, 50.0], [11.3, 50.0]]
    assert features[0]["properties"]["object"] == "a"
    with pytest.raises(DataError, match="pass its predictions as data="):
        ab.to_geojson(given.near())


def test_geojson_needs_degrees() -> None:
    with pytest.raises(DataError, match="GeoJSON has longitudes and latitudes"):
        ab.to_geojson(given.pumps())
