"""CONTAINS and TOUCHES of areas, lines and points, compared with their sets of points on a lattice.

All corners are integers and all edges are parallel to an axis. So two such geometries have a point in common, or one
inside both, if and only if they have such a point among the multiples of one half.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import Case
from tests.constrain.local import ConstrainRun, job_of
from tests.drawn import examples
from tests.local import bound_query

WORKBOOK = (
    "CREATE STREAM e KEY (id INTEGER) VALUE (area STRING) TIME t INTEGER WATERMARK 2;\n"
    "CREATE QUERY q AS CONSTRAIN u, v FROM e WHERE {} AND SPAN(u, v) <= 3;"
)
HALVES = [number / 2 for number in range(-2, 12)]


@dataclass(frozen=True)
class Box:
    """A rectangle, a line parallel to an axis, or a point."""

    x: tuple[int, int]
    y: tuple[int, int]

    def text(self) -> str:
        (left, right), (low, high) = self.x, self.y
        if left == right or low == high:
            ends = f"{left} {low}, {right} {high}"
            return f"POINT({left} {low})" if left == right and low == high else f"LINESTRING({ends})"
        return f"POLYGON(({left} {low}, {right} {low}, {right} {high}, {left} {high}, {left} {low}))"

    def points(self, inside: bool = False) -> set[tuple[float, float]]:
        """Its points on the lattice; those `inside` are not on its boundary."""
        axes = [[n for n in HALVES if _covers(ends, n, inside)] for ends in (self.x, self.y)]
        return set(product(*axes))


def _covers(ends: tuple[int, int], number: float, inside: bool) -> bool:
    first, last = ends
    return first < number < last if inside and first < last else first <= number <= last


ENDS = st.tuples(st.integers(0, 4), st.integers(0, 4)).map(lambda ends: tuple(sorted(ends)))
BOXES = st.lists(st.builds(Box, ENDS, ENDS), min_size=2, max_size=6)
TRUTH = {
    "CONTAINS(u.area, v.area)": lambda a, b: b.points() <= a.points(),
    "WITHIN(u.area, v.area)": lambda a, b: a.points() <= b.points(),
    "TOUCHES(u.area, v.area)": lambda a, b: bool(a.points() & b.points()) and not a.points(True) & b.points(True),
    "NOT TOUCHES(u.area, v.area)": lambda a, b: not a.points() & b.points() or bool(a.points(True) & b.points(True)),
}


@examples(50)
@given(BOXES, st.sampled_from(sorted(TRUTH)), st.sampled_from([1, 5]), st.booleans())
def test_areas_are_compared_as_sets_of_points(boxes: list[Box], condition: str, n_buckets: int, split: bool) -> None:
    rows = [{"id": number, "area": box.text(), "t": number % 3} for number, box in enumerate(boxes)]
    run = ConstrainRun(job_of(Case(WORKBOOK.format(condition), "q", {"e": rows})), n_buckets)
    run.run([{"e": [row]} for row in sorted(rows, key=lambda row: row["t"])] if split else [{"e": rows}])
    pairs = [(i, j) for i, j in product(range(len(boxes)), repeat=2) if i != j and TRUTH[condition](boxes[i], boxes[j])]
    assert sorted((answer["u"]["id"], answer["v"]["id"]) for answer in run.answers()) == pairs


@pytest.mark.parametrize(("condition", "expected"), [("TOUCHES({}, {})", True), ("CONTAINS({1}, {0})", True)])
def test_a_point_on_the_edge_is_contained_and_touches(condition: str, expected: bool) -> None:
    box = "'POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))'"
    workbook = (
        "CREATE STREAM e KEY (id INTEGER) TIME t INTEGER SPACE (x, y);\n"
        f"CREATE QUERY q AS CONSTRAIN u FROM e WHERE {condition.format('u', box)};"
    )
    rows = [{"id": 1, "t": 0, "x": 4.0, "y": 1.0}, {"id": 2, "t": 0, "x": 5.0, "y": 1.0}]
    run = ConstrainRun(job_of(Case(workbook, "q", {"e": rows})), 1)
    run.run([{"e": rows}])
    assert [answer["u"]["id"] for answer in run.answers()] == [1] * expected


def test_contains_is_within_with_its_arguments_exchanged() -> None:
    one, other = (bound_query(WORKBOOK.format(text), "q").conditions[0] for text in (
        "CONTAINS(u.area, v.area)", "WITHIN(v.area, u.area)",
    ))  # fmt: skip
    assert one == other
