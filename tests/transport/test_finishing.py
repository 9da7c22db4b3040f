"""Finishing rules as Arrow: selection of a query, combination of chains, and result columns."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from anabranch.transport.finishing import AnyOf, BlockSide, Finishing, Pairing, ResultColumn, SumOf, finish_table


def test_no_rules_keep_the_answers() -> None:
    answers = pa.table({"t": [1, 2]})
    assert finish_table(Finishing(), answers) is answers


def test_the_answers_of_one_query_of_a_group_in_its_own_columns() -> None:
    answers = pa.table({"query": [0, 1, 1], "events_0": [[7], [8, 9], [None, 3]], "probability": [1.0, 0.5, 0.25]})
    columns = (
        ResultColumn("b", "events_0", 1),
        ResultColumn("both", "events_0", 0, 2),
        ResultColumn("probability", "probability"),
        ResultColumn("method", constant="exact"),
    )
    rows = finish_table(Finishing(query=1, columns=columns), answers).to_pylist()
    assert rows == [
        {"b": 9, "both": [8, 9], "probability": 0.5, "method": "exact"},
        {"b": 3, "both": [None, 3], "probability": 0.25, "method": "exact"},
    ]


def test_any_of_combines_independent_rows_and_drops_answers_below_the_threshold() -> None:
    none = [math.log(1 - p) for p in (0.5, 0.5, 0.2, 0.0)]
    answers = pa.table({"t": [1, 1, 2, 3], "g": ["a", "a", "a", "a"], "log_none": none})
    finished = finish_table(Finishing(any_of=AnyOf(("t", "g"), least=0.3)), answers)
    assert finished.select(["t", "g"]).to_pylist() == [{"t": 1, "g": "a"}]
    assert finished["probability"].to_pylist() == pytest.approx([0.75])


def test_a_certain_row_makes_the_combination_certain() -> None:
    answers = pa.table({"t": [1, 1], "log_none": [-math.inf, math.log(0.5)]})
    assert finish_table(Finishing(any_of=AnyOf(("t",), 0.0)), answers)["probability"].to_pylist() == [1.0]


def test_sum_of_adds_independent_counts_and_drops_rows_that_cannot_reach_the_limit() -> None:
    counts = [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.9, 0.1, 0.0]]
    answers = pa.table({"t_from": [1, 1, 2], "counts": counts, "expected": [0.5, 0.5, 0.1]})
    finished = finish_table(Finishing(sum_of=SumOf(("t_from",), 2, 0.0)), answers)
    assert finished.to_pylist() == [{"t_from": 1, "probability": 0.25, "expected": 1.0}]
    assert finish_table(Finishing(sum_of=SumOf(("t_from",), 2, 0.0)), answers.schema.empty_table()).num_rows == 0


def test_pairs_are_formed_only_by_spark() -> None:
    side = BlockSide(0, ("k",), (False,))
    pairing = Pairing((side, side), True, lambda members: members, pa.schema([]))
    with pytest.raises(ValueError, match="pairs are formed by Spark"):
        finish_table(Finishing(pairing=pairing), pa.table({"t": [1]}))
