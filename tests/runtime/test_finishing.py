"""Finishing rules give the same results on Spark and Arrow; pairing groups rows in blocks."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.drawn import drawn
from tests.rows import all_rows, answer_table, codes_of, comparable, drawn_answers, rules

from anabranch.binding.per import PerWindow
from anabranch.columns.calibration import CalibrationMap
from anabranch.columns.times import TimeKind
from anabranch.runtime.blocks import in_blocks
from anabranch.runtime.finishing import finish_frame, to_frame
from anabranch.runtime.per import instants_of
from anabranch.transport.finishing import AnyOf, BlockSide, Finishing, Pairing, ResultColumn, SumOf, finish_table
from anabranch.transport.per import KeyColumn, PerRule

INSTANT, P = TimeKind.TIMESTAMP.arrow_type, ("probability", pa.float64())
EVENTS = pa.table(
    {
        "query": pa.array([0, 1, 1, 0], pa.int32()),
        "t": [1, 2, 3, 4],
        "events_0": pa.array([[{"k": 1}], [{"k": 2}, {"k": 3}], [None, {"k": 4}], [{"k": 5}]]),
        "probability": [1.0, 0.5, 0.25, 0.125],
    }
)
CHAINS = pa.table(
    {"t": [1, 1, 2, 3, 3], "a.b": ["x", "x", "x", "y", "y"], "log_none": [*map(math.log, (0.5, 0.5, 0.9, 1.0, 0.3))]}
)
COUNTS = pa.table(
    {
        "t_from": [1, 1, 1, 2, 3],
        "a.b": ["x", "x", "x", "x", "y"],
        "counts": [[0.5, 0.2, 0.3], [0.1, 0.9, 0.0], [0.7, 0.2, 0.1], [0.9, 0.1, 0.0], [0.0, 0.0, 1.0]],
        "expected": [0.8, 0.9, 0.4, 0.1, 2.5],
    }
)
CHAIN_COLUMNS = (ResultColumn("a.b", "a.b"), ResultColumn("p", "probability"))


def by_row(table: pa.Table) -> list[str]:
    return sorted(repr({name: _rounded(value) for name, value in row.items()}) for row in table.to_pylist())


def _rounded(value: object) -> object:
    return round(value, 12) if isinstance(value, float) else value


@pytest.mark.parametrize(
    ("rules", "answers"),
    [
        (Finishing(), EVENTS),
        (Finishing(query=1, columns=(ResultColumn("t", "t"), ResultColumn("v", "events_0", 1))), EVENTS),
        (Finishing(columns=(ResultColumn("vs", "events_0", 0, 1), ResultColumn("how", constant="exact"))), EVENTS),
        (Finishing(any_of=AnyOf(("t", "a.b"), 0.0), columns=CHAIN_COLUMNS), CHAINS),
        (Finishing(any_of=AnyOf(("t", "a.b"), 0.5)), CHAINS),
        (Finishing(sum_of=SumOf(("t_from", "a.b"), 2, 0.0)), COUNTS),
        (Finishing(sum_of=SumOf(("t_from", "a.b"), 2, 0.99)), COUNTS),
    ],
)
def test_spark_and_arrow_give_the_same_results(spark: SparkSession, rules: Finishing, answers: pa.Table) -> None:
    expected = finish_table(rules, answers)
    columns = ["t", "a.b", "probability"] if rules.any_of and rules.columns is None else expected.column_names
    finished = finish_frame(rules, to_frame(spark, answers)).toArrow()
    assert finished.column_names == columns
    assert by_row(finished) == by_row(expected.select(columns))


def test_spark_and_arrow_calibrate_to_the_same_bit(spark: SparkSession) -> None:
    rng = np.random.default_rng(5)
    xs, ys = (np.sort(rng.random(40)).tolist() for _ in range(2))
    chosen = CalibrationMap(tuple(zip([0.0, *xs], [1e-300, *ys], strict=True)))
    probabilities = [*rng.random(300).tolist(), 0.0, 1.0, *xs, None]
    answers = pa.table({"probability": pa.array(probabilities, pa.float64())})
    expected = finish_table(Finishing(calibration=chosen), answers)
    finished = finish_frame(Finishing(calibration=chosen), to_frame(spark, answers)).toArrow()
    assert sorted(finished.to_pylist(), key=str) == sorted(expected.to_pylist(), key=str)


def test_a_limit_keeps_the_most_probable_rows_in_order(spark: SparkSession) -> None:
    """Rows of equal probability are ordered by their other columns, so the result does not depend on partitions."""
    rows = [
        {"v": {"k": k}, "path": [0.5, 1.0], "probability": p}
        for k, p in zip("fedcba", (0.5, 0.5, 1.0, 0.5, 0.1, 0.5), strict=True)
    ]
    answers = to_frame(spark, pa.Table.from_pylist(rows)).repartition(3)
    kept = finish_frame(Finishing(limit=4), answers).toArrow().to_pylist()
    assert [(row["v"]["k"], row["probability"]) for row in kept] == [("d", 1.0), ("a", 0.5), ("c", 0.5), ("e", 0.5)]


def test_spark_and_arrow_give_the_same_rows_of_several_answers(spark: SparkSession) -> None:
    instants = range(-12, 30, 3)
    for rule, answers in drawn(st.tuples(rules(), drawn_answers(30)), 16):
        table = answer_table(rule, answers)
        expected = all_rows(rule, table, instants)
        packets = pa.table({"instants": [None, codes_of(instants, rule.time_kind).tobytes()]})
        of_streams = instants_of(to_frame(spark, packets), rule.time_kind)
        finished = finish_frame(Finishing(per=rule), to_frame(spark, table), of_streams).toArrow()
        assert finished.schema.names == [name for name in expected.schema.names if name != "status"]
        assert comparable(rule, finished.to_pylist()) == comparable(rule, expected.to_pylist())
        assert finished.schema.field("t_from").type == expected.schema.field("t_from").type


def test_spark_and_arrow_have_the_same_windows_of_local_time(spark: SparkSession) -> None:
    """Every half hour around both changes of the clock, as instants and as validities of three hours."""
    begins = [datetime(2026, month, day, tzinfo=UTC) for month, day in ((3, 28), (10, 24))]
    starts = [begin + timedelta(minutes=30 * step) for begin in begins for step in range(120)]
    rows = [{"valid_from": t, "valid_to": t + timedelta(hours=3), "a": {"id": "k"}, "probability": 0.5} for t in starts]
    answers = pa.Table.from_pylist(rows).cast(
        pa.schema([("valid_from", INSTANT), ("valid_to", INSTANT), ("a", pa.struct([("id", pa.string())])), P])
    )
    for hours, span in ((24, ("valid_from", "valid_from")), (24, ("valid_from", "valid_to")), (1, ("valid_to",) * 2)):
        per = PerWindow(hours * 3600.0, zone="Europe/Zurich")
        rule = PerRule(per, (KeyColumn("a", ("id",)),), span, TimeKind.TIMESTAMP, TimeKind.TIMESTAMP)
        finished = finish_frame(Finishing(per=rule), to_frame(spark, answers)).toArrow()
        assert comparable(rule, finished.to_pylist()) == comparable(rule, all_rows(rule, answers).to_pylist())


@pytest.mark.parametrize("equal", [True, False])
def test_any_two_rows_that_can_pair_share_exactly_one_block(spark: SparkSession, equal: bool) -> None:
    table = pa.table({"stream": pa.array([0] * 8 + [1] * 8, pa.int32()), "k": [*range(8), *map(float, range(8))]})
    # Streams with different numeric types: equal numbers must still share a block.
    sides = (BlockSide(0, ("k",), (True,)), BlockSide(1, ("k",), (True,)))
    pairing = Pairing(sides, equal, lambda members: members, table.schema)
    members = in_blocks(pairing, to_frame(spark, table)).toArrow()
    paired: list[tuple[float, float]] = []
    for block in pc.unique(members["block"]).to_pylist():
        rows = members.filter(pc.equal(members["block"], block)).to_pylist()
        firsts, seconds = ([row["k"] for row in rows if row["side"] == side] for side in (0, 1))
        paired += product(firsts, seconds)
    assert len(paired) == len(set(paired))
    needed = {(k, k) for k in range(8)} if equal else set(product(range(8), range(8)))
    assert needed <= set(paired)


def test_the_pairs_of_a_block_are_decided_by_spark(spark: SparkSession) -> None:
    def decide(members: pa.Table) -> pa.Table:
        return pa.table({"n": pa.array([members.num_rows], pa.int64())})

    side = BlockSide(0, ("k",), (False,))
    rules = Finishing(pairing=Pairing((side, side), True, decide, pa.schema([("n", pa.int64())])))
    table = pa.table({"stream": pa.array([0, 0], pa.int32()), "k": ["a", "a"]})
    assert finish_frame(rules, to_frame(spark, table)).toArrow().to_pylist() == [{"n": 4}]
