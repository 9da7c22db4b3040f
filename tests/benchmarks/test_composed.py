"""The benchmark of queries over answers on few rows: its rows, and that both levels give the answers of the parts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from benchmarks import composed
from benchmarks.harness import Options, Record
from pyspark.sql import SparkSession

QUICK = Options(quick=True, rounds=1)


pytestmark = pytest.mark.usefixtures("cache_folder")


@pytest.mark.parametrize("pair", [pair for pair in composed.PAIRS if not pair.streams], ids=lambda pair: pair.name)
def test_every_pair_has_answers_in_process(pair: composed.Pair) -> None:
    runs = composed.in_process(pair, composed.folder_of(QUICK))
    tables = [run() for run in (runs.composed, runs.inner, runs.outer)]
    assert all(isinstance(table, pa.Table) and table.num_rows for table in tables)
    if "one automaton" not in pair.name and "bounds" not in pair.name:
        assert tables[0].num_rows == tables[2].num_rows


def test_two_levels_are_compared_with_the_sum_of_their_parts(spark: SparkSession, tmp_path: Path) -> None:
    pair = next(pair for pair in composed.PAIRS if pair.name == "MONITOR, RELATE")
    values = {record.metric: record for record in composed.measure(spark, pair, composed.folder_of(QUICK), QUICK)}
    both, parts = values["Spark, 2 cores: both levels"], values["Spark, 2 cores: sum of the parts"]
    assert values["rows of the stream of answers"].value > 0
    assert both.ratio == pytest.approx(both.value / parts.value)


def test_growth_has_a_ratio_to_the_smallest_size() -> None:
    records: dict[str, list[Record]] = {}
    for record in composed.growth(QUICK):
        records.setdefault(record.workload, []).append(record)
    assert set(records) == set(composed.GROWING)
    assert all(sum(record.ratio is None for record in found) == 2 for found in records.values())
