"""Boxes, convex hulls and arrow heads."""

from __future__ import annotations

import math

import pytest

from anabranch.drawing.geometry import Box, arrow_barbs, convex_hull


def test_overlap_of_boxes() -> None:
    box = Box(0, 0, 4, 2)
    assert box.overlap(Box(1, 1, 4, 2)) == 3
    assert box.overlap(Box(4, 0, 4, 2)) == 0, "they touch"
    assert box.padded(1) == Box(0, 0, 6, 4)
    assert box.contains((2, 1))
    assert not box.contains((2.1, 0))


def test_the_hull_has_no_inner_points_and_no_points_on_its_sides() -> None:
    square = [(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0)]
    assert sorted(convex_hull([*square, (1.0, 1.0), (1.0, 0.0)])) == sorted(square)
    assert convex_hull([(0, 0), (1, 1), (2, 2)]) == [(0, 0), (2, 2)]
    assert convex_hull([(1, 1), (1, 1)]) == [(1, 1)]


def test_an_arrow_head_lies_behind_its_tip() -> None:
    left, right = arrow_barbs((0, 0), (10, 0), length=2, spread=math.pi / 6)
    assert left == pytest.approx((10 - math.sqrt(3), -1))
    assert right == pytest.approx((10 - math.sqrt(3), 1))
