"""Equalities between columns."""

from __future__ import annotations

from anabranch.binding.equalities import equated_columns, merge_overlapping
from anabranch.binding.typed import Constant, Operation, Reference
from anabranch.language.types import Type

A, B = Reference("a", "x", Type.INTEGER), Reference("b", "y", Type.INTEGER)


def test_only_an_equality_of_two_columns_equates_them() -> None:
    assert equated_columns(Operation("=", (A, B), Type.BOOLEAN)) == (A, B)
    assert equated_columns(Operation("<", (A, B), Type.BOOLEAN)) is None
    assert equated_columns(Operation("=", (A, Constant(1, Type.INTEGER)), Type.BOOLEAN)) is None
    assert equated_columns(A) is None


def test_overlapping_sets_are_merged_transitively() -> None:
    assert merge_overlapping([{1, 2}, {3, 4}, {5}, {2, 3}]) == [{5}, {1, 2, 3, 4}]
    assert merge_overlapping([set(), {1}, set()]) == [set(), {1}, set()]
