"""The oracle of MONITOR, compared with WHERE evaluated literally at instants of a grid and for random true values."""

from __future__ import annotations

import itertools
import math
import operator
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from anabranch.binding.typed import Constant, Operation, Reference, Typed, walk
from anabranch.monitor.query import BoundMonitor
from tests.cases import Case
from tests.drawn import examples
from tests.local import bound_query
from tests.monitor.strategies import MAY, MUST, monitor_cases
from tests.oracles.conditions import evaluate, holds
from tests.oracles.monitor import answers, constraints, groups_of, matches
from tests.oracles.monitor_predictions import Prediction
from tests.oracles.monitor_regions import SEARCH_ERROR, Point, Region, searched

Row = dict[str, Any]


# ---------------------------------------------------------------- instants on a grid


class Literal:
    """Evaluates WHERE and WITHIN literally at one pair of instants; predictions are those of the oracle."""

    def __init__(self, query: BoundMonitor, case: Case, pair: tuple[Prediction, Prediction]) -> None:
        self.query = query
        self.pair = pair
        self.relations = {name: set(rows) for name, rows in case.relations.items()}
        self.atoms = [node for condition in query.conditions for node in walk(condition) if _is_atom(node)]

    def applies(self, point: Point) -> bool:
        """Whether both predictions apply, and the instants are within the window."""
        within = self.query.within if len(self.query.operands) == 2 else 0
        inside = all(prediction.time <= at < prediction.end for prediction, at in zip(self.pair, point, strict=True))
        return inside and abs(point[0] - point[1]) <= within

    def bindings(self, point: Point) -> dict[tuple[str, int], dict[str, Any]]:
        """The columns of the operands, with predicted values."""
        columns_by_operand = {}
        for operand, prediction, at in zip(self.query.operands, self.pair, point, strict=False):
            lines = {name: line.start + line.rate * at for name, line in prediction.lines.items() if line is not None}
            columns_by_operand[operand.name, 1] = {**prediction.columns, **dict.fromkeys(prediction.lines), **lines}
        return columns_by_operand

    def is_expected(self, point: Point) -> bool:
        """Whether the predictions satisfy WHERE."""
        bindings = self.bindings(point)
        return self.applies(point) and all(
            holds(condition, bindings, self.relations) for condition in self.query.conditions
        )

    def satisfied_by_random_values(self, point: Point, count: int, chance: np.random.Generator) -> Any:
        """Whether each of `count` random true values satisfies WHERE, as an array."""
        random_values = {}
        for (name, _), columns in self.bindings(point).items():
            prediction = self.pair[[operand.name for operand in self.query.operands].index(name)]
            for column, line in prediction.lines.items():
                if line is not None:
                    error = float(line.error)
                    random_values[name, column] = float(columns[column]) + chance.uniform(-error, error, count)
        satisfied = np.ones(count, dtype=bool)
        for condition in self.query.conditions:
            if any((node.owner, node.name) in random_values for node in walk(condition) if isinstance(node, Reference)):
                satisfied &= _array(condition, random_values)
        return satisfied

    def is_true_between(self, start: Point, end: Point) -> bool:
        """Whether the predictions satisfy WHERE at all points between two points.

        WHERE is evaluated at the points where a constraint changes, and in the middle between them.
        """
        shares = {Fraction(0), Fraction(1)}
        for atom in self.atoms:
            (linear, limit) = sorted(atom.arguments, key=lambda side: isinstance(side, Constant))
            linear = linear.arguments[0] if isinstance(linear, Operation) and linear.op == "abs" else linear
            at, to = (evaluate(linear, self.bindings(point), {}) for point in (start, end))
            for level in (limit.value, -limit.value) if at != to else ():
                shares.add((Fraction(level) - at) / (to - at))
        inside = sorted(share for share in shares if 0 <= share <= 1)
        inside += [(one + other) / 2 for one, other in itertools.pairwise(inside)]
        return all(
            self.is_expected(tuple(a + share * (b - a) for a, b in zip(start, end, strict=True))) for share in inside
        )


def _is_atom(node: Typed) -> bool:
    """Whether a node is a comparison of values with a number."""
    return (
        isinstance(node, Operation)
        and node.op in _ARRAYS
        and any(isinstance(side, Constant) and isinstance(side.value, int | float) for side in node.arguments)
        and any(isinstance(part, Reference) and part.name in ("x", "y", "z") for part in walk(node))
    )


_ARRAYS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "<>": operator.ne,
}  # fmt: skip


def _array(tree: Typed, values: Mapping[tuple[str, str], Any]) -> Any:
    """The value of a condition for arrays of values."""
    if isinstance(tree, Constant):
        return tree.value
    if isinstance(tree, Reference):
        return values[tree.owner or "", tree.name]
    assert isinstance(tree, Operation)
    arguments = [_array(argument, values) for argument in tree.arguments]
    return {**_ARRAYS, "-": operator.sub, "abs": abs, "negate": operator.neg}[tree.op](*arguments)


def grid(pair: tuple[Prediction, Prediction], within: float, steps: int = 8) -> list[Point]:
    """Instants of both predictions, including their ends; only the diagonal if the instants must be the same."""
    first, second = ([p.time + (p.end - p.time) * Fraction(k, steps) for k in range(steps + 1)] for p in pair)
    if not within:
        return [(at, at) for at in sorted({*first, *second})]
    return list(itertools.product(first, second))


def literal_pairs(query: BoundMonitor, case: Case) -> Iterator[tuple[Literal, list[Region], list[Point]]]:
    """Each pair of predictions of a case that satisfies WHERE, with its regions and a grid of points."""
    for pair, regions in matches(query, case.rows, case.relations):
        yield Literal(query, case, pair), regions, grid(pair, query.within if len(query.operands) == 2 else 0)


def indexes_at(regions: Sequence[Region], point: Point) -> list[int]:
    """The indexes of the regions that contain a point."""
    return [index for index, region in enumerate(regions) if any(piece.contains(point) for piece in region.pieces)]


@examples(30)
@given(case=monitor_cases(semantics=["EXPECTED"]))
def test_the_regions_have_the_instants_at_which_where_is_true(case: Case) -> None:
    for literal, regions, points in literal_pairs(bound_query(case.workbook, case.query), case):
        inside = []
        for point in points:
            indexes = indexes_at(regions, point)
            assert len(indexes) == literal.is_expected(point)
            inside += [(point, indexes[0])] if indexes else []
            for index in indexes:
                assert regions[index].valid[0] <= max(point) <= regions[index].valid[1]
        # Two points are in the same region if and (here) only if WHERE is true between them.
        chosen = inside[:: max(1, len(inside) // 8)]
        for (one, region_index), (other, other_region_index) in itertools.combinations(chosen, 2):
            assert literal.is_true_between(one, other) == (region_index == other_region_index)


@examples(30)
@given(case=monitor_cases(semantics=["EXPECTED"]))
def test_where_is_true_up_to_every_corner_and_validity_includes_them(case: Case) -> None:
    for literal, regions, _ in literal_pairs(bound_query(case.workbook, case.query), case):
        for region in regions:
            corners = region.boundary
            assert corners is not None
            middle = tuple(sum(along) / len(corners) for along in zip(*corners, strict=True))
            assert literal.is_expected(middle)
            for corner in corners:
                near = tuple(c + (m - c) / 1024 for c, m in zip(corner, middle, strict=True))
                assert literal.is_expected(near)
            # The later instant has its extremes at corners, or where a side crosses the diagonal.
            many = [
                _between(a, b, k) for a, b in itertools.combinations_with_replacement(corners, 2) for k in range(33)
            ]
            later = [max(point) for point in many]
            start, end = region.valid
            assert max(later) == end
            assert start <= min(later) <= start + (end - start) / 8


def _between(one: Point, other: Point, share: int) -> Point:
    return tuple(a + (b - a) * Fraction(share, 32) for a, b in zip(one, other, strict=True))


def test_adjacent_regions_are_not_connected() -> None:
    # Every step from one region to the next crosses a line at which WHERE is false.
    workbook = """
        CREATE STREAM e KEY (id STRING) VALUE (x DOUBLE, y DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR 0 PERIOD 4;
        CREATE QUERY q AS MONITOR a, b FROM e
        WHERE ABS(a.x - b.x) <> 1 AND a.y <> 2 AND a.id < b.id WITHIN 9;
    """
    query = bound_query(workbook, "q")
    rows = [
        {"id": "a", "t": 0, "x": 0, "x_rate": 1, "y": 0, "y_rate": 1},
        {"id": "b", "t": 0, "x": 2, "x_rate": 0, "y": 0, "y_rate": 0},
    ]
    case = Case(workbook, "q", {"e": rows})
    ((pair, regions),) = matches(query, case.rows)
    literal = Literal(query, case, pair)
    points = [point for point in grid(pair, 9, 10) if literal.is_expected(point)]
    linked = {point: {point} for point in points}
    for one, other in itertools.combinations(points, 2):
        near = max(abs(a - b) for a, b in zip(one, other, strict=True)) <= Fraction(4, 10)
        if near and linked[one] is not linked[other] and literal.is_true_between(one, other):
            linked[one] |= linked[other]
            linked |= dict.fromkeys(linked[other], linked[one])
    parts = {id(part): part for part in linked.values()}.values()
    assert len(parts) == len(regions) == 4
    assert all(len({indexes_at(regions, point)[0] for point in part}) == 1 for part in parts)


# ---------------------------------------------------------------- random true values


def exact_constraints_hold(literal: Literal, point: Point) -> bool:
    """Whether the constraints on exact values are satisfied: they are not part of a probability."""
    bindings = literal.bindings(point)
    streams = {
        operand.name: prediction for operand, prediction in zip(literal.query.operands, literal.pair, strict=False)
    }
    errors = {
        (name, column): line is None or line.error
        for name, prediction in streams.items()
        for column, line in prediction.lines.items()
    }
    return all(
        holds(condition, bindings, literal.relations)
        for condition in literal.query.conditions
        if not any(errors.get((node.owner, node.name)) for node in walk(condition) if isinstance(node, Reference))
    )


def probability(region_groups: Sequence[Any], point: Point) -> Fraction:
    return math.prod((group.probability(point) for group in region_groups), start=Fraction(1))


@examples(25)
@given(case=monitor_cases(semantics=["EXPECTED", "MAY"], thresholds=False))
def test_the_probability_at_an_instant_is_that_of_random_true_values(case: Case) -> None:
    chance = np.random.default_rng(7)
    query = bound_query(case.workbook, case.query)
    for literal, regions, _ in itertools.islice(literal_pairs(query, case), 3):
        for region in regions:
            (piece, *_) = region.pieces
            middle = tuple(sum(along) / len(piece.corners) for along in zip(*piece.corners, strict=True))
            observed = literal.satisfied_by_random_values(middle, 20_000, chance).mean()
            assert float(probability(region.groups, middle)) == pytest.approx(observed, abs=0.016)


@examples(25)
@given(case=monitor_cases(thresholds=False))
def test_no_instant_of_a_region_is_more_probable_than_the_region(case: Case) -> None:
    query = bound_query(case.workbook, case.query)
    chance = random.Random(7)
    for _, regions in itertools.islice(matches(query, case.rows, case.relations), 4):
        for region in regions:
            most = region.probability
            assert 0 <= most <= 1
            for piece, _ in itertools.product(region.pieces, range(60)):
                weights = [Fraction(chance.randrange(1, 100)) ** 3 for _ in piece.corners]
                total = sum(weights)
                point = tuple(
                    sum(w * at for w, at in zip(weights, along, strict=True)) / total
                    for along in zip(*piece.corners, strict=True)
                )
                assert probability(region.groups, point) <= most + (0 if isinstance(most, Fraction) else SEARCH_ERROR)


def test_the_search_finds_the_highest_point_of_a_polygon() -> None:
    corners = [(0.0, 0.0), (5.0, 1.0), (6.0, 4.0), (1.0, 3.0)]
    for x, y in ((2.3, 1.7), (5.0, 1.0), (0.5, 1.5), (3.5, 3.5)):
        value = searched(corners, lambda point, x=x, y=y: 1 / (1 + abs(point[0] - x) + (point[1] - y) ** 2))
        assert value == pytest.approx(1, abs=SEARCH_ERROR)
    # A maximum on a side, on a segment and at a point.
    assert searched(corners, lambda point: point[1] / 8 + point[0] / 100) == pytest.approx(0.56, abs=SEARCH_ERROR)
    assert searched(corners[:2], lambda point: 1 - abs(point[0] - math.pi) / 9) == pytest.approx(1, abs=SEARCH_ERROR)
    assert searched(corners[:1], lambda point: 0.25 + point[0]) == 0.25


@examples(30)
@given(case=monitor_cases(thresholds=False))
def test_must_is_probability_1_and_may_is_probability_above_0(case: Case) -> None:
    query = bound_query(case.workbook, case.query)
    _, numbers = constraints(query)
    chance = np.random.default_rng(7)
    may, must = (list(literal_pairs(replace(query, semantics=semantics), case)) for semantics in (MAY, MUST))
    for (literal, may_be, points), (_, must_be, _) in zip(may, must, strict=True):
        groups = groups_of(literal.pair, numbers)
        assert groups is not None
        for point in points:
            if literal.applies(point):
                p = probability(groups, point) if exact_constraints_hold(literal, point) else 0
                assert len(indexes_at(may_be, point)) == (p > 0)
                assert len(indexes_at(must_be, point)) == (p == 1)
                satisfied = literal.satisfied_by_random_values(point, 50, chance)
                assert p > 0 or not satisfied.any()
                assert p < 1 or satisfied.all()


@examples(25)
@given(case=monitor_cases(operands=[1]))
def test_answers_about_one_operand(case: Case) -> None:
    query = bound_query(case.workbook, case.query)
    for answer in answers(query, case.rows, case.relations):
        assert list(answer) == ["a", "valid_from", "valid_to", "probability"]
        assert isinstance(answer["probability"], Fraction) or len(constraints(query)[1]) > 1
