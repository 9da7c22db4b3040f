"""The benchmark of CONSTRAIN on made-up measurements: what it compares, what it prints, and the pictures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from benchmarks import constrain, constrain_charts, constrain_index, constrain_spark
from benchmarks.__main__ import main
from benchmarks.constrain import Outcome, checksum, compare, sorted_alerts
from benchmarks.constrain_workloads import (
    MOST,
    PROPERTIES,
    Measured,
    Query,
    draw_configurations,
    measurements_of,
    part_of,
    selective,
    tune,
)

from anabranch.constrain.analysis import STRATEGIES


def made_up(buoys: int = 12, days: int = 40) -> pa.Table:
    """Buoys in a row, a row a day, with values of chance."""
    rng = np.random.default_rng(3)
    buoy, day = (each.ravel() for each in np.meshgrid(np.arange(buoys), np.arange(days), indexing="ij"))
    columns = {
        "year": np.full(len(day), 90),
        "month": 1 + day // 28,
        "day": 1 + day % 28,
        "lat": np.zeros(len(day)),
        "lon": 150.0 + 4.0 * buoy,
    }
    values = {name: rng.normal(20.0, 5.0, len(day)) for name in PROPERTIES}
    values["humidity"][::3] = np.nan
    return measurements_of(pa.table(columns | values))


@pytest.fixture(scope="module")
def measured() -> Measured:
    return Measured(made_up())


@pytest.fixture(scope="module")
def queries(measured: Measured) -> list[Query]:
    return selective(measured, 3, seed=7, verbosity=0.02)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The whole benchmark on little data, with pictures of its own."""
    monkeypatch.setattr(constrain_charts, "PICTURES", tmp_path)
    monkeypatch.setattr(constrain, "read_measurements", made_up)
    monkeypatch.setattr(constrain, "QUERIES", (2, 4))
    monkeypatch.setattr(constrain, "VERBOSITIES", (0.01, 0.02))
    monkeypatch.setattr(constrain, "LENGTHS", (5, 10))
    monkeypatch.setattr(constrain, "ROUNDS", 1)
    made = (
        constrain.measurements, constrain.plain_queries, constrain.many_queries,
        constrain.queries_by_verbosity, constrain.queries_by_length,
    )  # fmt: skip
    for each in made:
        each.cache_clear()
    yield tmp_path
    for each in made:
        each.cache_clear()


def test_a_missing_value_is_no_event(measured: Measured) -> None:
    assert len(measured) == 12 * 40 * 5 - 160
    assert (np.diff(measured.events["day"].to_numpy()) >= 0).all()
    assert len(set(measured.events["buoy"].to_pylist())) == 12


def test_a_part_is_whole_days(measured: Measured) -> None:
    days = measured.events["day"].to_numpy()
    part = part_of(measured.events, 0.2)["day"].to_numpy()
    assert 0.15 * len(days) < len(part) < 0.25 * len(days)
    assert len(part) == np.isin(days, part).sum()


def test_queries_that_are_drawn_again_select(measured: Measured, queries: list[Query]) -> None:
    assert all(query.share < MOST for query in queries)
    assert [len(query.configuration.wanted) for query in queries] == [2, 3, 4]
    drawn = draw_configurations(3, seed=7)
    plain = tune(measured, drawn, 0.02)
    kept = selective(measured, 3, seed=7, verbosity=0.02, plain=plain)
    assert [one == other for one, other in zip(kept, plain, strict=True)] == [query.share < MOST for query in plain]


def test_a_configuration_of_another_length_is_the_same_but_for_that() -> None:
    for short, long in zip(draw_configurations(9, 7, 5), draw_configurations(9, 7, 20), strict=True):
        assert short != long
        assert short.lasting(20) == long


def test_impossible_queries_are_given_up(measured: Measured) -> None:
    with pytest.raises(ValueError, match="1 of 1 configurations"):
        selective(measured, 1, seed=7, verbosity=1e6)


def test_strategies_have_the_same_alerts(measured: Measured, queries: list[Query]) -> None:
    by_sum, by_set = compare(measured, queries), compare(measured, queries, whole=True)
    assert tuple(by_sum) == STRATEGIES
    assert by_sum["TIGHT"].alerts == by_set["NOINDEX"].alerts > 0
    assert by_sum["TIGHT"].peak <= by_sum["LOOSE"].peak


def test_a_checksum_is_of_alerts_not_of_their_order() -> None:
    rows = np.array([[1, 2], [3, 4], [5, 6]])
    whole = checksum([(0, rows), (1, rows)])
    assert checksum([(1, rows[::-1]), (0, rows[1:]), (0, rows[:1])]) == whole
    for other in ([(0, rows)], [(0, rows), (2, rows)], [(0, rows), (1, rows[:, ::-1])], [(0, rows), (1, rows + 1)]):
        assert checksum(other) != whole
    assert np.array_equal(sorted_alerts([(0, rows[2:]), (0, rows[:2])])[0], rows)


def test_other_alerts_are_noticed(measured: Measured, queries: list[Query], monkeypatch: pytest.MonkeyPatch) -> None:
    lost = iter([0, 1, 0])
    real = constrain._solutions

    def losing(run: object) -> object:
        found, peak = real(run)
        return found[next(lost) :], peak

    monkeypatch.setattr(constrain, "_solutions", losing)
    with pytest.raises(AssertionError, match="alerts of TIGHT"):
        compare(measured, queries)


def test_tables_and_pictures(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["constrain.verbosity", "constrain.queries", "constrain.length"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for text in ("2.0%: TIGHT", "4 queries: LOOSE", "none again", "10 days: NOINDEX", "load of", "drawn again where"):
        assert text in printed
    pictures = sorted(small.glob("*.svg"))
    assert len(pictures) == 6
    for picture in pictures:
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")  # noqa: S314 - we have just written it


def test_trees_find_what_lists_find(measured: Measured, queries: list[Query], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constrain_index, "EVERY", (100, 1_000))
    kept = constrain_index.Kept.of(measured, queries)
    searched = dict(constrain_index.contest(kept))
    assert len({(each.probes, each.found) for each in searched.values()}) == 1
    assert searched["lists"].found > 0
    assert searched["cKDTree"].every in (100, 1_000)
    assert kept.most() > 0


def test_axes_end_at_round_numbers() -> None:
    outcomes = {name: Outcome(rate=3.3e6, peak=1, alerts=1) for name in STRATEGIES}
    assert [constrain_charts._above(value) for value in (0.011, 1.0, 3.3)] == pytest.approx([0.02, 1.0, 5.0])
    assert outcomes.keys() == constrain_charts.COLOURS.keys()


def test_joins_name_every_condition(measured: Measured, queries: list[Query]) -> None:
    for query in queries:
        variables = len(query.configuration.wanted)
        for sql in (constrain_spark.join_sql(measured, query), constrain_spark.slots_sql(measured, query)):
            assert sql.count("asin") == sql.count("BETWEEN") == variables - 1
            assert sql.count("<>") == variables * (variables - 1) / 2
