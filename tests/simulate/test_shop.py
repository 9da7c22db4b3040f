"""The shop: reproducible data, the requested delays and losses, and calibrated scores."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest
from scipy import stats

from anabranch.arrays import F64, Bools
from anabranch.simulate import SCENARIOS
from anabranch.simulate.shop import (
    AGAIN,
    CHECKOUT,
    EXIT,
    MINUTE,
    READERS,
    SHELF,
    START,
    Options,
    Shop,
    Trips,
    simulate,
    simulate_trips,
    write,
)
from tests.simulate.workbooks import check_workbook

SMALL = Options(items=300, trips=2, noise=0.2)
MANY = Options(items=200_000)
LAWS = ("gamma", "exponential", "lognormal", "uniform")


@pytest.fixture(scope="module")
def shop() -> Shop:
    return simulate()


@pytest.fixture(scope="module")
def trips() -> Trips:
    return simulate_trips(MANY, np.random.default_rng(0))


def minutes(trips: Trips, first: int, last: int) -> F64:
    return (trips.times[:, last] - trips.times[:, first]) / 1e6 / MINUTE


def law_of(options: Options) -> Any:
    """Return the distribution that the workbook names, in minutes, from SciPy."""
    name, *numbers = re.findall(r"[A-Z]+\b(?=\()|[\d.]+", str(options.clock))
    first, second = (*map(float, numbers), 0.0)[:2]
    return {
        "GAMMA": lambda: stats.gamma(first, scale=second),
        "EXPONENTIAL": lambda: stats.expon(scale=first),
        "LOGNORMAL": lambda: stats.lognorm(second, scale=np.exp(first) / MINUTE),
        "UNIFORM": lambda: stats.uniform(first, second - first),
    }[name]()


# ---------------------------------------------------------------- options


def test_the_same_seed_gives_the_same_data() -> None:
    first, second, other = (simulate(SMALL, seed) for seed in (5, 5, 6))
    assert (first.reads, first.truth) == (second.reads, second.truth)
    assert first.reads != other.reads
    assert first.truth != other.truth


@pytest.mark.parametrize("law", LAWS)
def test_more_items_and_trips_do_not_change_the_others(law: str) -> None:
    few = simulate(replace(SMALL, checkout_law=law), 2)
    many = simulate(replace(SMALL, checkout_law=law, items=500, trips=3), 2)
    last = pc.max(few.truth["tag"])
    same = pc.and_(pc.less_equal(many.truth["tag"], last), pc.less_equal(many.truth["trip"], 2))
    assert many.truth.filter(same) == few.truth
    ends = {row["tag"]: row["shelf"] for row in many.truth.to_pylist() if row["trip"] == 3}
    before = [row for row in many.reads.to_pylist() if row["tag"] <= last.as_py() and row["t"] < ends[row["tag"]]]
    assert before == few.reads.to_pylist()


def test_default_options(shop: Shop) -> None:
    time = pa.timestamp("us", tz="UTC")
    assert shop.reads.schema.types == [pa.string(), pa.string(), time]
    assert shop.truth.schema.types == [pa.string(), pa.int32(), *[time] * 3, *[pa.bool_()] * 4]
    assert shop.truth.num_rows == pc.count_distinct(shop.truth["tag"]).as_py() == 5_000
    assert shop.truth["tag"][0].as_py() == "tag-0000001"
    assert START < pc.min(shop.reads["t"]).as_py()
    hours = (pc.max(shop.truth["shelf"]).as_py() - START).total_seconds() / 3_600
    assert hours == pytest.approx(10, rel=0.05)
    for rows, column in ((shop.reads, "t"), (shop.truth, "shelf")):
        assert rows.sort_by([(column, "ascending"), ("tag", "ascending")]) == rows


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"miss": 1.5}, "--miss must be from 0 to 1, not 1.5"),
        ({"items": 0}, "--items must be from 1 to 1000000, not 0"),
        ({"thieves": 0.1}, "there is no option --thieves; the options are: --items, --trips, .*"),
        ({"checkout_law": "cauchy"}, "--checkout-law must be gamma or exponential or lognormal or uniform, not cauchy"),
        ({"shortest": 30.0, "longest": 30.0}, "--shortest must be below --longest, not 30 with 30"),
        (
            {"checkout_law": "uniform", "checkout_sd": 10.0},
            "uniform times with --checkout-mean 16 and --checkout-sd 10 would begin below 0",
        ),
    ],
)
def test_invalid_options_are_errors(values: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        SCENARIOS["shop"].write(tmp_path / "x", 0, **values)
    assert not (tmp_path / "x").exists()


# ---------------------------------------------------------------- distributions


@pytest.mark.parametrize("law", LAWS)
def test_clocks_have_the_distribution_that_the_workbook_names(law: str) -> None:
    """Stays are so long that every clock rings."""
    options = replace(MANY, checkout_law=law, shortest=9_000.0, longest=9_001.0)
    trips = simulate_trips(options, np.random.default_rng(1))
    assert np.all(trips.happened[:, CHECKOUT])
    waited = minutes(trips, SHELF, CHECKOUT)
    assert stats.kstest(waited, law_of(options).cdf).pvalue > 0.01
    assert waited.mean() == pytest.approx(16, rel=0.01)
    assert waited.std() == pytest.approx(16 if law == "exponential" else 8, rel=0.02)


def test_stays_are_uniform_and_probabilities_as_requested(trips: Trips) -> None:
    assert stats.kstest(minutes(trips, SHELF, EXIT), stats.uniform(20, 70).cdf).pvalue > 0.01
    assert np.mean(trips.happened[:, EXIT]) == pytest.approx(0.9, abs=0.003)
    for event in (SHELF, CHECKOUT, EXIT):
        assert np.mean(trips.read[trips.happened[:, event], event]) == pytest.approx(0.9, abs=0.003)
    both_lost = np.mean(~trips.read[trips.happened[:, CHECKOUT]][:, (SHELF, CHECKOUT)].any(axis=1))
    assert both_lost == pytest.approx(0.01, abs=0.001), "losses are independent"


def test_each_reader_has_its_own_miss_rate() -> None:
    options = replace(MANY, miss=0.2, miss_shelf=0.0, miss_exit=0.5)
    trips = simulate_trips(options, np.random.default_rng(0))
    assert options.miss_rates == (0.0, 0.2, 0.5)
    for event, rate in enumerate(options.miss_rates):
        assert np.mean(~trips.read[trips.happened[:, event], event]) == pytest.approx(rate, abs=0.004)


def test_an_item_that_is_inside_when_its_clock_rings_is_paid_for(trips: Trips) -> None:
    waited, stay = minutes(trips, SHELF, CHECKOUT), minutes(trips, SHELF, EXIT)
    assert np.array_equal(trips.happened[:, CHECKOUT], waited < stay)
    assert np.array_equal(trips.stolen, (waited >= stay) & trips.happened[:, EXIT])
    share = 0.9 * law_of(MANY).sf(np.linspace(20, 90, 10_001)).mean()
    assert np.mean(trips.stolen) == pytest.approx(share, rel=0.05)


def test_no_window_contains_two_trips_of_a_tag() -> None:
    trips = simulate_trips(replace(SMALL, trips=5), np.random.default_rng(0))
    times = trips.times.reshape(5, 300, 4)
    assert np.all(times[1:, :, SHELF] - times[:-1, :, EXIT] > 90 * MINUTE * 1e6)


def test_noise_is_a_reading_at_the_shelf_while_the_item_is_away() -> None:
    options = replace(MANY, noise=0.3, miss_shelf=0.5)
    trips = simulate_trips(options, np.random.default_rng(0))
    assert np.mean(trips.read[:, AGAIN]) == pytest.approx(0.15, abs=0.003)
    past = minutes(trips, SHELF, AGAIN) / minutes(trips, SHELF, EXIT)
    assert stats.kstest(past, stats.uniform.cdf).pvalue > 0.01
    quiet = simulate_trips(replace(options, noise=0.0), np.random.default_rng(0))
    assert not quiet.happened[:, AGAIN].any()
    assert np.array_equal(quiet.read[:, :AGAIN], trips.read[:, :AGAIN])


# ---------------------------------------------------------------- scores


def by_score(scores: F64, true: Bools) -> list[tuple[float, float, float]]:
    """Return the mean score, the share of true ones and its standard error, for groups of similar scores."""
    groups = np.array_split(np.argsort(scores), 8)
    return [(scores[group].mean(), true[group].mean(), error_of(scores[group])) for group in groups]


def error_of(scores: F64) -> float:
    """Return the standard error of the share of events with these probabilities that happen."""
    return float(np.sqrt(np.sum(scores * (1 - scores))) / len(scores))


@pytest.mark.parametrize("law", LAWS)
def test_scores_of_stolen_items_are_calibrated(law: str) -> None:
    """Read at shelf and exit, not at the checkout: (1 - F) / (eps F + 1 - F), with F of the time between."""
    options = replace(MANY, checkout_law=law)
    trips = simulate_trips(options, np.random.default_rng(3))
    selected = trips.read[:, SHELF] & ~trips.read[:, CHECKOUT] & trips.read[:, EXIT]
    late = law_of(options).sf(minutes(trips, SHELF, EXIT)[selected])
    for score, share, error in by_score(late / (0.1 * (1 - late) + late), trips.stolen[selected]):
        assert score == pytest.approx(share, abs=3 * error)


def test_if_only_the_exit_read_an_item_its_stay_has_the_distribution_of_x() -> None:
    trips = simulate_trips(replace(MANY, miss_shelf=0.9), np.random.default_rng(3))
    selected = ~trips.read[:, SHELF] & ~trips.read[:, CHECKOUT] & trips.read[:, EXIT]
    delay = stats.uniform(0, 70).ppf((np.arange(10_000) + 0.5) / 10_000)
    late = law_of(MANY).sf(90 - delay)
    score = late.mean() / (0.1 * (1 - late) + late).mean()
    assert np.mean(trips.stolen[selected]) == pytest.approx(score, abs=3 * error_of(np.full(selected.sum(), score)))


def test_scores_of_loitering_are_calibrated(trips: Trips) -> None:
    """All clocks still run when the window closes, also those of items that are put back."""
    paid = trips.happened[:, CHECKOUT] & (minutes(trips, SHELF, CHECKOUT) <= 20)
    selected = trips.read[:, SHELF] & ~(trips.read[:, CHECKOUT] & paid)
    late = law_of(MANY).sf(20)
    score = late / (0.1 * (1 - late) + late)
    assert np.mean(~paid[selected]) == pytest.approx(score, abs=3 * error_of(np.full(selected.sum(), score)))


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("options", [Options(), replace(SMALL, noise=0.0), Options(items=50, miss=1.0, put_back=1.0)])
def test_truth_and_reads_agree(options: Options) -> None:
    shop = simulate(options, 4)
    truth = shop.truth.to_pylist()
    expected = Counter(
        (row["tag"], reader, row[reader]) for row in truth for reader in READERS[:3] if row[f"{reader}_read"]
    )
    assert expected == Counter(tuple(row.values()) for row in shop.reads.to_pylist())
    for row in truth:
        assert row["stolen"] == (row["checkout"] is None and row["exit"] is not None)
        happened = [row[reader] for reader in READERS[:3] if row[reader] is not None]
        assert sorted(set(happened)) == happened, "in order"
        assert not any(row[f"{reader}_read"] and row[reader] is None for reader in READERS[:3])


@pytest.mark.parametrize("law", LAWS)
def test_the_workbook_is_valid_and_its_files_exist(law: str, tmp_path: Path) -> None:
    small = simulate(replace(SMALL, checkout_law=law, checkout_sd=4.5, miss_shelf=0.0, miss=0.25, longest=75.5))
    workbook = write(small, tmp_path / "new" / "folder")
    assert workbook.name == "shop.abq"
    text = workbook.read_text(encoding="utf-8")
    assert "MISS x 0, y 0.25\n  DELAY x UNIFORM(0, 55.5 MINUTES), y " + law.upper() in text
    assert "WITHIN 75.5 MINUTES" in text
    assert check_workbook(workbook, ["shoplifting", "purchase", "loitering"]) == ["reads.parquet"]
    assert pyarrow.parquet.read_table(workbook.parent / "reads.parquet") == small.reads
    assert pyarrow.parquet.read_table(workbook.parent / "true_trips.parquet") == small.truth


def test_the_remark_counts_stolen_items_and_lost_readings(tmp_path: Path) -> None:
    scenario = SCENARIOS["shop"]
    scenario.write(
        tmp_path, 0, items=2_000, miss=0.0, miss_exit=1.0, put_back=0.0, checkout_law="uniform", checkout_sd=1.0
    )
    assert scenario.remark is not None
    remark = scenario.remark(tmp_path)
    assert remark == "0 of 2,000 items taken were stolen (0.0%), and 2,000 of 6,000 readings were lost (33.3%)"
