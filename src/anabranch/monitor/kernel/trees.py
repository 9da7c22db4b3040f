"""The joint probability of forms that share values, if the values are connected like a tree: `a - b`, `b - c`, `c - d`.

Given the true value of b, the parts of the tree on both sides of it are independent. So the tree is integrated from its
ends to its middle, one value after the other. Each value has a *curve*: the probability that it is at most x and that
all values beyond it satisfy their forms. The curve of a value follows from those of its neighbours beyond it. This
takes one integral for each value; the general method nests them.

A curve consists of pieces, between the points where it may bend, and each piece is a Chebyshev series. It is exact for
uniform errors, whose curves are polynomials there.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev, legendre

from anabranch.arrays import F64, I64
from anabranch.compiled import compiled, compiled_inline, compiled_uncounted
from anabranch.monitor.kernel.distributions import CUTS, NONE, ZERO, density, sort_few
from anabranch.monitor.kernel.probabilities import Constraints, joint_probability, value_density


def _series_of_integral(nodes: F64, weights: F64) -> F64:
    """The matrix that turns values at the nodes into the Chebyshev series of their integral from -1 on."""
    degree = len(nodes)
    of_nodes = legendre.legvander(nodes, degree - 1) * weights[:, None] * (np.arange(degree) + 0.5)
    at = chebyshev.chebpts1(degree + 1)
    integrals = legendre.legval(at, legendre.legint(of_nodes.T, lbnd=-1))
    return np.ascontiguousarray(np.linalg.solve(chebyshev.chebvander(at, degree), integrals.T))


def _gauss(count: int) -> tuple[F64, F64]:
    """Gauss-Legendre points, and the matrix of the integral of a function that is known at them."""
    nodes, weights = legendre.leggauss(count)
    return nodes, _series_of_integral(nodes, weights)


#: With n points, the curves of n uniform errors are exact, and so is the integral of the value in the middle over the
#: curves of 2n - 1. With 20, the part of a normal distribution between two CUTS is interpolated to 1e-12.
_FEW_NODES, _FEW_SERIES = _gauss(2)
_NODES, _SERIES = _gauss(8)
_NORMAL_NODES, _NORMAL_SERIES = _gauss(20)


class Tree(NamedTuple):
    """The values of a group, from the ends of the tree to its middle.

    Attributes
    ----------
    order : (V,) the values with an error first; the last of them is the middle
    link, parent : (V,) the form between a value and the next one on the way to the middle, and that value; or -1
    neighbours : (V,) how many values that are not in the order yet have a form with a value; -1 if it is in the order
    """

    order: I64
    link: I64
    parent: I64
    neighbours: I64


class Curves(NamedTuple):
    """The curves of all values: pieces `first[v]` to `last[v]` are those of value v.

    Piece k is from `ends[k]` to `ends[k + 1]`. The curve is `below[k]` at its begin, and rises by a Chebyshev series,
    of which `series[k]` has the coefficients.
    """

    first: I64
    last: I64
    ends: F64
    below: F64
    series: F64


@compiled
def group_probability(g: int, center: F64, constraints: Constraints, e: F64) -> float:
    """The probability that all forms of a group are in their sets."""
    n = len(e)
    integers = np.empty((7, n), np.int64)
    tree = Tree(integers[0], integers[1], integers[2], integers[3])
    count = _write_tree(g, constraints, e, tree)
    if count < 0:
        return joint_probability(g, center, constraints, e)
    # Of four values, at most two are on one side of the middle.
    nodes, matrix = _NODES, _SERIES
    if count <= 4 and constraints.shares.shape[1] == 1:
        nodes, matrix = _FEW_NODES, _FEW_SERIES
    for k in range(count):
        if constraints.spreads[tree.order[k], 0] > 0.0:  # a sum of several errors has no normal ones
            nodes, matrix = _NORMAL_NODES, _NORMAL_SERIES
    total = _most_ends(g, tree, count, constraints, integers[4])
    room = np.empty((3, max(total, len(nodes))))
    curves = Curves(integers[5], integers[6], room[0], room[1], np.empty((total, len(matrix))))
    return _of_tree(g, tree, count, center, constraints, e, curves, room[2], nodes, matrix)


@compiled_uncounted
def _of_tree(
    g: int, tree: Tree, count: int, center: F64, constraints: Constraints, e: F64, curves: Curves, values: F64,
    nodes: F64, matrix: F64,
) -> float:  # fmt: skip
    """The probability of a tree: the end of the curve of the value in its middle."""
    start = ZERO
    for k in range(count):
        v = tree.order[k]
        curves.first[v] = start
        start += _add_ends(v, g, tree, center, constraints, e, curves)
        curves.last[v] = start - 1
        _integrate(v, g, tree, count, center, constraints, e, curves, values, nodes, matrix)
    return min(1.0, max(0.0, curves.below[start - 1]))


# ---------------------------------------------------------------- trees


@compiled_uncounted
def _write_tree(g: int, constraints: Constraints, e: F64, tree: Tree) -> int:
    """Write the values of a group as a tree; returns how many have an error, or -1 if they are no tree.

    Values with one neighbour are removed repeatedly, from all ends at the same time.
    """
    for v in range(len(e)):
        tree.link[v], tree.parent[v], tree.neighbours[v] = NONE, NONE, NONE
    for f in range(constraints.groups.shape[1]):
        if constraints.groups[g, f]:
            u, v = constraints.forms[f, 0], constraints.forms[f, 1]
            is_pair = v >= 0 and e[u] > 0.0 and e[v] > 0.0
            if e[u] > 0.0:
                tree.neighbours[u] = max(ZERO, tree.neighbours[u]) + (1 if is_pair else 0)
            if v >= 0 and e[v] > 0.0:
                tree.neighbours[v] = max(ZERO, tree.neighbours[v]) + (1 if is_pair else 0)
    left, count = ZERO, ZERO
    for v in range(len(e)):
        left += 1 if tree.neighbours[v] >= 0 else 0
    while left > 1:
        first = count
        for v in range(len(e)):
            if tree.neighbours[v] == 1 and not _is_next_to_removed(v, first, count, tree):
                _remove(v, g, constraints, tree)
                tree.order[count] = v
                count, left = count + 1, left - 1
        if count == first:
            return NONE
    for v in range(len(e)):
        if tree.neighbours[v] >= 0:
            tree.order[count] = v
            count += 1
    return count


@compiled_inline
def _is_next_to_removed(v: int, first: int, count: int, tree: Tree) -> bool:
    """Whether a value has lost a neighbour in this round, so that it is no end of the tree yet."""
    for k in range(first, count):
        if tree.parent[tree.order[k]] == v:
            return True
    return False


@compiled_inline
def _remove(v: int, g: int, constraints: Constraints, tree: Tree) -> None:
    """Remove a value with one neighbour, which becomes its parent."""
    tree.neighbours[v] = NONE
    for f in range(constraints.groups.shape[1]):
        other = _other(f, v, constraints)
        if constraints.groups[g, f] and other >= 0 and tree.neighbours[other] >= 0:
            tree.link[v], tree.parent[v] = f, other
            tree.neighbours[other] -= 1


@compiled_inline
def _other(f: int, v: int, constraints: Constraints) -> int:
    """The value of which a form is the difference to v; -1 if there is none, and -2 if v is not in the form."""
    if constraints.forms[f, 0] == v:
        return constraints.forms[f, 1]
    return constraints.forms[f, 0] if constraints.forms[f, 1] == v else NONE - 1


# ---------------------------------------------------------------- where curves bend


@compiled_uncounted
def _most_ends(g: int, tree: Tree, count: int, constraints: Constraints, most: I64) -> int:
    """An upper bound for the number of ends of pieces of all values; `most` is scratch, for each value."""
    total = ZERO
    for v in range(len(most)):
        most[v] = 2 + len(CUTS) + (1 << constraints.shares.shape[1])
    for k in range(count):
        v = tree.order[k]
        for f in range(constraints.groups.shape[1]):
            if constraints.groups[g, f] and _other(f, v, constraints) > -2:
                most[v] += 2 * (constraints.first[f + 1] - constraints.first[f])
        if tree.parent[v] >= 0:
            f = tree.link[v]
            most[tree.parent[v]] += 2 * (constraints.first[f + 1] - constraints.first[f]) * most[v]
        total += most[v]
    return total


@compiled_uncounted
def _add_ends(v: int, g: int, tree: Tree, center: F64, constraints: Constraints, e: F64, curves: Curves) -> int:
    """Write the ends of the pieces of a value; returns their number."""
    ends, n = curves.ends[curves.first[v] :], ZERO
    for signs in range(1 << constraints.shares.shape[1] if constraints.shares.shape[1] > 1 else 0):
        share = 0.0
        for part in range(constraints.shares.shape[1]):
            share += constraints.shares[v, part] * (1.0 if signs >> part & 1 else -1.0)
        n = _add(ends, n, center[v] + e[v] * share)
    if constraints.spreads[v, 0] > 0.0:
        for cut in CUTS:
            n = _add(ends, n, center[v] + cut * constraints.spreads[v, 0])
    for f in range(constraints.groups.shape[1]):
        if constraints.groups[g, f]:
            other = _other(f, v, constraints)
            sign = 1.0 if constraints.forms[f, 0] == v else -1.0
            for j in range(constraints.first[f], constraints.first[f + 1]):
                for side in range(2):
                    bound = sign * constraints.sets[j, side]
                    if other == -1:
                        n = _add(ends, n, bound)
                    elif other >= 0 and e[other] == 0.0:
                        n = _add(ends, n, center[other] + bound)
                    elif other >= 0 and tree.parent[other] == v:
                        for k in range(curves.first[other], curves.last[other] + 1):
                            n = _add(ends, n, curves.ends[k] + bound)
    return _ordered(ends, n, center[v] - e[v], center[v] + e[v])


@compiled_inline
def _add(ends: F64, n: int, end: float) -> int:
    """Add an end, unless it is infinite; returns the number of ends."""
    if abs(end) < np.inf:
        ends[n] = end
        return n + 1
    return n


@compiled_uncounted
def _ordered(ends: F64, n: int, low: float, high: float) -> int:
    """Replace ends by those between two numbers and these two, in ascending order; returns their number.

    Of ends that differ by a rounding error, one is kept.
    """
    same, kept = 1e-13 * (abs(low) + abs(high)), ZERO
    for k in range(n):
        if low + same < ends[k] < high - same:
            ends[kept] = ends[k]
            kept += 1
    ends[kept] = low
    n, kept = kept + 1, ZERO + 1
    sort_few(ends, n)
    for k in range(1, n):
        if ends[k] > ends[kept - 1] + same:
            ends[kept] = ends[k]
            kept += 1
    ends[kept] = high
    return kept + 1


# ---------------------------------------------------------------- integrals


@compiled_uncounted
def _integrate(
    v: int, g: int, tree: Tree, count: int, center: F64, constraints: Constraints, e: F64, curves: Curves, values: F64,
    nodes: F64, matrix: F64,
) -> None:  # fmt: skip
    """Compute the curve of a value from its density and from the curves of the values beyond it.

    `values` is scratch, with room for all nodes.
    """
    below, spread, is_sum = 0.0, constraints.spreads[v, 0], constraints.shares.shape[1] > 1
    height = 0.0 if is_sum else density(0.0, e[v], spread)
    for k in range(curves.first[v], curves.last[v] + 1):
        curves.below[k] = below
        if k == curves.last[v]:
            return
        half, middle = 0.5 * (curves.ends[k + 1] - curves.ends[k]), 0.5 * (curves.ends[k + 1] + curves.ends[k])
        if not _is_allowed(v, middle, g, center, constraints, e):
            curves.series[k] = 0.0
            continue
        for node in range(len(nodes)):
            x = middle + half * nodes[node]
            if is_sum:
                values[node] = half * value_density(v, x - center[v], constraints, e)
            else:
                values[node] = half * height
                if spread > 0.0:
                    values[node] *= math.exp(-0.5 * ((x - center[v]) / spread) ** 2)
            for child in tree.order[:count]:
                if tree.parent[child] == v:
                    values[node] *= _given_neighbour(child, tree.link[child], x, constraints, curves)
        for i in range(len(matrix)):
            curves.series[k, i] = 0.0
            for node in range(len(nodes)):
                curves.series[k, i] += matrix[i, node] * values[node]
            below += curves.series[k, i]  # every Chebyshev polynomial is 1 at 1


@compiled_inline
def _is_allowed(v: int, x: float, g: int, center: F64, constraints: Constraints, e: F64) -> bool:
    """Whether the forms of a value alone, and those with an exact value, are in their sets if its true value is `x`."""
    for f in range(constraints.groups.shape[1]):
        other = _other(f, v, constraints)
        if not constraints.groups[g, f] or other < -1 or (other >= 0 and e[other] > 0.0):
            continue
        number = x if other < 0 else x - center[other] if constraints.forms[f, 0] == v else center[other] - x
        is_inside = False
        for j in range(constraints.first[f], constraints.first[f + 1]):
            is_inside |= constraints.sets[j, 0] < number < constraints.sets[j, 1]
        if not is_inside:
            return False
    return True


@compiled_inline
def _given_neighbour(v: int, f: int, x: float, constraints: Constraints, curves: Curves) -> float:
    """The probability that a form is in its set, and all beyond, if the other value of the form is `x`."""
    total = 0.0
    for j in range(constraints.first[f], constraints.first[f + 1]):
        low, high = constraints.sets[j, 0], constraints.sets[j, 1]
        if constraints.forms[f, 0] == v:
            total += _at_most(v, x + high, curves) - _at_most(v, x + low, curves)
        else:
            total += _at_most(v, x - low, curves) - _at_most(v, x - high, curves)
    return total


@compiled_inline
def _at_most(v: int, x: float, curves: Curves) -> float:
    """The curve of a value at `x`."""
    low, high = curves.first[v], curves.last[v]
    if x <= curves.ends[low]:
        return 0.0
    if x >= curves.ends[high]:
        return curves.below[high]
    while high - low > 1:
        middle = (low + high) // 2
        if x < curves.ends[middle]:
            high = middle
        else:
            low = middle
    at = (2.0 * x - curves.ends[low] - curves.ends[high]) / (curves.ends[high] - curves.ends[low])
    # Clenshaw's recurrence for a sum of Chebyshev polynomials
    one, two = 0.0, 0.0
    for i in range(curves.series.shape[1] - 1, 0, -1):
        one, two = curves.series[low, i] + 2.0 * at * one - two, one
    return curves.below[low] + curves.series[low, 0] + at * one - two
