"""The report, the tables of the documentation, and the predictions for more cores."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from benchmarks import document, scale
from benchmarks.harness import Record
from benchmarks.papers import ALGORITHM, FIGURES, OURS, PAPER, points
from benchmarks.report.__main__ import main as report_main
from benchmarks.report.page import report
from benchmarks.results import RESULTS, Results
from benchmarks.tables import growth, latencies, micro_batches, operators, peers, stages

from tests.benchmarks.measured import saved


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return saved(tmp_path)


# ------------------------------------------------------------ the page


def test_the_page_has_a_chart_for_each_specification_and_needs_no_network(results: Results) -> None:
    page = report(results)
    specifications = json.loads(re.search(r'id="specifications">(.*?)</script>', page)[1])
    assert len(specifications) == 4, "stages, a growth curve, a peer, a figure"
    assert [f'id="chart-{number}"' in page for number in range(4)] == [True] * 4
    assert not re.search(r'(src|href)="(https?:)?//', page)
    assert "a &lt;task&gt;" in page
    assert "a <task>" not in page


def test_a_section_without_measurements_says_so(tmp_path: Path) -> None:
    page = report(saved(tmp_path, []))
    assert page.count("Not measured.") == 5


def test_the_command_writes_beside_the_results(results: Results, tmp_path: Path, capsys) -> None:
    assert report_main([str(tmp_path)]) == 0
    assert "Where the time goes" in (tmp_path / "report.html").read_text()
    with pytest.raises(SystemExit):
        report_main([str(tmp_path / "nothing")])


# ------------------------------------------------------------ figures of the papers


def test_a_figure_has_ours_the_algorithms_and_what_the_paper_states(results: Results) -> None:
    (figure,) = [figure for figure in FIGURES if figure.part == "constrain.queries"]
    found = {(point.series, point.x): (point.y, point.source) for point in points(figure, results)}
    assert found["NOINDEX", 100.0] == (10_000.0, OURS)
    assert found["stated in the paper", 100.0] == (15_000, PAPER)


@pytest.mark.parametrize(
    ("part", "metric", "x", "series", "source"),
    [
        ("relate.throughput", "40% lost: tree, estimated", 40.0, "tree", ALGORITHM),
        ("relate.lost", "14 lost: Anabranch", 14.0, "Anabranch", OURS),
        ("objects.archived", "100 objects: sampling", 100.0, "sampling", ALGORITHM),
        ("monitor.policies", "2.5 s, LEAST CONTRIBUTION: recall", 2.5, "LEAST CONTRIBUTION", OURS),
        (
            "monitor.values",
            "MUST, only in the western 25%: processor time",
            250.0,
            "MUST, only in the western 25%",
            OURS,
        ),
        ("classes.safe", "1,000 instants", 1_000.0, "instants", OURS),
    ],
)
def test_metrics_belong_to_figures(part: str, metric: str, x: float, series: str, source: str) -> None:
    (figure,) = [figure for figure in FIGURES if figure.part == part]
    record = {"benchmark": part, "workload": "250 vehicles", "metric": metric, "unit": figure.unit, "value": 2.0}
    (point, *_) = points(figure, Results([record]))
    assert (point.x, point.series, point.y, point.source) == (x, series, 2.0, source)


# ------------------------------------------------------------ tables


def test_tables_have_the_measured_values(results: Results) -> None:
    assert stages(results)[1][:2] == ["PATTERN", "0.25"], "0.5 s for two million rows"
    assert growth(results)[1] == ["pattern", "keys", "100", "400", "4", "1.00"]
    assert peers(results)[1:] == [
        ["a <task>", "a <peer>", "0.5", "1", "", "100"],
        ["", "**Anabranch**", "1.5", "3", "", "100"],
    ]


def test_a_region_is_replaced_if_it_was_measured(results: Results) -> None:
    page = "before\n<!-- results: peers -->\nold\n<!-- end -->\n<!-- results: idle -->\nkept\n<!-- end -->\nafter\n"
    new = document.document(page, results)
    assert "old" not in new
    assert "| | **Anabranch** | 1.5 | 3 | | 100 |" in new
    assert "commit abc123, 2026-11-18" in new
    assert "<!-- results: idle -->\nkept\n<!-- end -->\nafter" in new
    assert document.document(new, results) == new


def test_the_regions_of_the_pages_have_tables() -> None:
    for name in document.PAGES:
        names = re.findall(r"<!-- results: (\S+) -->", (document.DOCS / name).read_text())
        assert names
        assert set(names) <= set(document.TABLES)


def test_streams_have_tables_by_size_and_by_rate(tmp_path: Path) -> None:
    sizes = {"PATTERN": ("1,000 rows, 9 keys", "100,000 rows, 9 keys"), "RELATE": ("1,000 rows, 9 keys",)}
    records = [
        Record("streaming.batches", f"{kind}: micro-batches of {size}", metric, value, "")
        for kind, of_kind in sizes.items()
        for size in of_kind
        for metric, value in (("Spark, 2 cores, one micro-batch", 0.5), ("Spark, 2 cores, sustained", 200.0))
    ]
    waits = (("median latency", 1.5), ("99% of rows", 2.5))
    records += [Record("streaming.rates", "PATTERN: 1,000 rows/s, 9 keys", *wait, "s") for wait in waits]
    results = saved(tmp_path, records)
    assert micro_batches(results) == [
        ["kind", "1,000 rows, 9 keys, s", "100,000 rows, 9 keys, s", "rows/s"],
        ["PATTERN", "0.5", "0.5", "200"],
        ["RELATE", "0.5", "", ""],
    ]
    assert latencies(results) == [["kind, s", "1,000 rows/s"], ["PATTERN", "1.5 / 2.5"]]


def test_the_operators_of_a_stream_have_a_table_by_buckets(tmp_path: Path) -> None:
    records = [
        Record("streaming.operators", f"{kind}: micro-batches", f"{buckets} buckets", time, "ms")
        for kind, of_kind in {"PATTERN": {16: 100.0, 4: 25.0}, "RELATE": {16: 200.0, 4: 50.0}}.items()
        for buckets, time in of_kind.items()
    ]
    assert operators(saved(tmp_path, records)) == [
        ["processor time, ms", "PATTERN", "RELATE"],
        ["16 buckets", "100", "200"],
        ["4 buckets", "25", "50"],
    ]


def test_the_tables_of_the_documentation_are_those_of_the_results() -> None:
    assert document.main([str(RESULTS), "--check"]) == 0


def test_the_command_writes_the_pages(results: Results, tmp_path: Path) -> None:
    for name in document.PAGES:
        (tmp_path / name).write_text("<!-- results: cost -->\n<!-- end -->\n")
    assert document.main([str(tmp_path), "--docs", str(tmp_path), "--check"]) == 1
    assert document.main([str(tmp_path), "--docs", str(tmp_path)]) == 0
    assert document.main([str(tmp_path), "--docs", str(tmp_path), "--check"]) == 0
    assert "| PATTERN | 2 | 4 | 10 |" in (tmp_path / "scale.md").read_text()


# ------------------------------------------------------------ scale


def test_more_cores_divide_rows_and_keys_but_not_a_run_or_a_key(results: Results) -> None:
    (model,) = scale.models(results)
    assert model.seconds(10**6, 10**6, cores=2) == pytest.approx(2.0 + (4.0 + 10.0) / 2)
    # Decode and kernel are 0.5 s each for two million rows.
    assert model.seconds(10**6, 0, cores=10**6, hottest=0.5) == pytest.approx(2.0 + 0.5 * 0.5, abs=1e-4)
    assert model.useful_cores(hottest=0.5) == pytest.approx(4.0 / (0.5 * 0.5))
    assert model.shuffled == pytest.approx(10.0)


def test_the_command_prints_both_tables(results: Results, tmp_path: Path, capsys) -> None:
    assert scale.main([str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert "a million rows, s" in output
    assert "1,000 cores, hot key" in output
