"""The CONSTRAIN benchmark on synthetic measurements: its comparisons, its tables and its charts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.__main__ import main
from benchmarks.constrain import charts, figures, index, joins, strategies
from benchmarks.constrain.data import PROPERTIES, Measurements, events_of, part_of
from benchmarks.constrain.queries import Query, Shape, draw_configurations
from benchmarks.constrain.strategies import checksum, compare_strategies, sorted_alerts
from benchmarks.constrain.tuning import MAX_SHARE, selective, tune

from anabranch.constrain.analysis import STRATEGIES
from tests.benchmarks.charts import chart_names


def synthetic_events(buoys: int = 12, days: int = 40) -> pa.Table:
    """Buoys in a line, one row per day, with random values."""
    rng = np.random.default_rng(3)
    buoy, day = (grid.ravel() for grid in np.meshgrid(np.arange(buoys), np.arange(days), indexing="ij"))
    columns = {
        "year": np.full(len(day), 90),
        "month": 1 + day // 28,
        "day": 1 + day % 28,
        "lat": np.zeros(len(day)),
        "lon": 150.0 + 4.0 * buoy,
    }
    values = {name: rng.normal(20.0, 5.0, len(day)) for name in PROPERTIES}
    values["humidity"][::3] = np.nan
    return events_of(pa.table(columns | values))


@pytest.fixture(scope="module")
def measurements() -> Measurements:
    return Measurements(synthetic_events())


@pytest.fixture(scope="module")
def queries(measurements: Measurements) -> list[Query]:
    return selective(measurements, 3, seed=7, verbosity=0.02)


@pytest.fixture
def small_data(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run the benchmark on little data."""
    monkeypatch.setattr(figures, "read_measurements", synthetic_events)
    monkeypatch.setattr(figures, "QUERIES", (2, 4))
    monkeypatch.setattr(figures, "VERBOSITIES", (0.01, 0.02))
    monkeypatch.setattr(figures, "LENGTHS", (5, 10))
    monkeypatch.setattr(figures, "VARIABLES", (2, 3))
    monkeypatch.setattr(figures, "LINKS", (2, 3))
    monkeypatch.setattr(strategies, "ROUNDS", 1)
    cached = (
        figures.measurements, figures.first_queries, figures.many_queries,
        figures.queries_by_verbosity, figures.queries_by_length, figures.queries_by_variables,
        figures.queries_by_links,
    )  # fmt: skip
    for function in cached:
        function.cache_clear()
    yield
    for function in cached:
        function.cache_clear()


def test_a_missing_value_is_not_an_event(measurements: Measurements) -> None:
    assert len(measurements) == 12 * 40 * 5 - 160
    assert (np.diff(measurements.events["day"].to_numpy()) >= 0).all()
    assert len(set(measurements.events["buoy"].to_pylist())) == 12


def test_a_part_has_whole_days(measurements: Measurements) -> None:
    days = measurements.events["day"].to_numpy()
    part = part_of(measurements.events, 0.2)["day"].to_numpy()
    assert 0.15 * len(days) < len(part) < 0.25 * len(days)
    assert len(part) == np.isin(days, part).sum()


def test_selective_queries_replace_only_unselective_ones(measurements: Measurements, queries: list[Query]) -> None:
    assert all(query.share < MAX_SHARE for query in queries)
    assert [len(query.configuration.ranges) for query in queries] == [2, 3, 4]
    first = tune(measurements, draw_configurations(3, seed=7), 0.02)
    result = selective(measurements, 3, seed=7, verbosity=0.02, first=first)
    is_kept = [one == other for one, other in zip(result, first, strict=True)]
    assert is_kept == [query.share < MAX_SHARE for query in first]


def test_configurations_of_two_lengths_differ_only_in_the_length() -> None:
    for short, long in zip(draw_configurations(9, 7, Shape(5)), draw_configurations(9, 7, Shape(20)), strict=True):
        assert short != long
        assert short.with_length(20) == long


def test_more_links_are_added_to_those_that_connect_all_variables() -> None:
    few = draw_configurations(9, 7, Shape(variables=4))
    many = draw_configurations(9, 7, Shape(variables=4, links=6))
    for one, other in zip(few, many, strict=True):
        assert len(one.links) == 3
        assert {(link.first, link.second) for link in other.links} == set(combinations(range(4), 2))
        assert other.with_links(3) == one


def test_an_impossible_verbosity_is_an_error(measurements: Measurements) -> None:
    with pytest.raises(ValueError, match="1 of 1 configurations"):
        selective(measurements, 1, seed=7, verbosity=1e6)


def test_strategies_have_the_same_alerts(measurements: Measurements, queries: list[Query]) -> None:
    by_sum = compare_strategies(measurements, queries)
    by_alert = compare_strategies(measurements, queries, one_by_one=True)
    assert tuple(by_sum) == STRATEGIES
    assert by_sum["TIGHT"].alerts == by_alert["NOINDEX"].alerts > 0
    assert by_sum["TIGHT"].peak <= by_sum["LOOSE"].peak


def test_a_checksum_does_not_depend_on_the_order_of_alerts() -> None:
    rows = np.array([[1, 2], [3, 4], [5, 6]])
    whole = checksum([(0, rows), (1, rows)])
    assert checksum([(1, rows[::-1]), (0, rows[1:]), (0, rows[:1])]) == whole
    for other in ([(0, rows)], [(0, rows), (2, rows)], [(0, rows), (1, rows[:, ::-1])], [(0, rows), (1, rows + 1)]):
        assert checksum(other) != whole
    assert np.array_equal(sorted_alerts([(0, rows[2:]), (0, rows[:2])])[0], rows)


def test_different_alerts_are_an_error(
    measurements: Measurements, queries: list[Query], monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = iter([0, 1, 0])
    original = strategies._alerts

    def without_some(run: object) -> object:
        alerts, peak = original(run)
        return alerts[next(removed) :], peak

    monkeypatch.setattr(strategies, "_alerts", without_some)
    with pytest.raises(AssertionError, match="alerts of TIGHT"):
        compare_strategies(measurements, queries)


@pytest.mark.usefixtures("small_data", "wide_terminal")
def test_tables_and_charts(chart_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["constrain.verbosity", "constrain.queries", "constrain.length", "--rounds", "1"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for text in ("2.0%: TIGHT", "4 queries: LOOSE", "none drawn again", "10 days: NOINDEX", "load average"):
        assert text in printed
    assert len(chart_names(chart_folder)) == 6


@pytest.mark.usefixtures("small_data", "wide_terminal")
def test_strategies_have_the_same_alerts_for_any_number_of_variables_and_links(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["constrain.variables", "constrain.constraints", "--rounds", "1"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for text in ("3 variables: TIGHT", "2 variables: alerts", "3 linked pairs of 3 variables: LOOSE keeps at most"):
        assert text in printed


def test_trees_and_lists_find_the_same_events(
    measurements: Measurements, queries: list[Query], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "INTERVALS", (100, 1_000))
    kept = index.KeptEvents.of(measurements, queries)
    results = dict(index.search_all(kept))
    assert len({(result.probes, result.hits) for result in results.values()}) == 1
    assert results["lists"].hits > 0
    assert results["cKDTree"].interval in (100, 1_000)
    assert kept.most() > 0


def test_axes_end_at_round_numbers() -> None:
    assert [charts.round_up(value) for value in (0.011, 1.0, 3.3)] == pytest.approx([0.02, 1.0, 5.0])
    assert set(STRATEGIES) == charts.COLOURS.keys()


def test_joins_have_every_condition(measurements: Measurements, queries: list[Query]) -> None:
    for query in queries:
        variables = len(query.configuration.ranges)
        for sql in (joins.join_sql(measurements, query), joins.slots_sql(measurements, query)):
            assert sql.count("asin") == sql.count("BETWEEN") == variables - 1
            assert sql.count("<>") == variables * (variables - 1) / 2
