"""The joint probability of forms that share values, if the values are connected like a tree: `a - b`, `b - c`, `c - d`.

Given the true value of b, the parts of the tree on both sides of it are independent. So the tree is integrated from its
ends to its middle, one value after the other. Each value has a *curve*: the probability that it is at most x and that
all values beyond it satisfy their forms. The curve of a value follows from those of its neighbours beyond it. This
takes one integral for each value; the general method nests them.

A curve consists of pieces, between the points where it may bend, and each piece is a Chebyshev series. It is exact for
uniform errors, whose curves are polynomials there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev, legendre

from anabranch.arrays import F64, I64, Bools
from anabranch.compiled import compiled, compiled_inline
from anabranch.monitor.kernel.distributions import CUTS, NONE, ZERO, density, signed_sums, sorted_few
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
    order : the values with an error; the last one is the middle
    link, parent : (V,) the form between a value and the next one on the way to the middle, and that value; or -1
    """

    order: I64
    link: I64
    parent: I64


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
    tree, is_tree = _tree(g, constraints, e)
    if not is_tree:
        return joint_probability(g, center, constraints, e)
    # Of four values, at most two are on one side of the middle.
    nodes, matrix = _NODES, _SERIES
    if len(tree.order) <= 4 and constraints.shares.shape[1] == 1:
        nodes, matrix = _FEW_NODES, _FEW_SERIES
    for v in tree.order:
        if constraints.spreads[v, 0] > 0.0:  # a sum of several errors has no normal ones
            nodes, matrix = _NORMAL_NODES, _NORMAL_SERIES
    most = _most_ends(g, tree, constraints, e)
    total = ZERO
    for v in tree.order:
        total += most[v]
    n = len(e)
    curves = Curves(
        np.zeros(n, np.int64), np.zeros(n, np.int64), np.empty(total), np.empty(total), np.empty((total, len(matrix)))
    )
    start = ZERO
    for v in tree.order:
        curves.first[v] = start
        start += _add_ends(v, g, tree, center, constraints, e, curves)
        curves.last[v] = start - 1
        _integrate(v, g, tree, center, constraints, e, curves, nodes, matrix)
    return min(1.0, max(0.0, curves.below[start - 1]))


# ---------------------------------------------------------------- trees


@compiled
def _tree(g: int, constraints: Constraints, e: F64) -> tuple[Tree, bool]:
    """The values of a group as a tree, and whether they are one: values with one neighbour are removed repeatedly."""
    n = len(e)
    neighbours, remains = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    for f in range(constraints.groups.shape[1]):
        if constraints.groups[g, f]:
            u, v = constraints.forms[f, 0], constraints.forms[f, 1]
            remains[u] |= e[u] > 0.0
            if v >= 0:
                remains[v] |= e[v] > 0.0
                if e[u] > 0.0 and e[v] > 0.0:
                    neighbours[u] += 1
                    neighbours[v] += 1
    count, left = ZERO, remains.sum()
    tree = Tree(np.empty(left, np.int64), np.full(n, NONE), np.full(n, NONE))
    while left > 1:
        before, was_left = neighbours.copy(), left
        for v in range(n):
            if remains[v] and before[v] == 1 and neighbours[v] == 1:
                _remove(v, g, constraints, e, tree, neighbours, remains)
                tree.order[count] = v
                count, left = count + 1, left - 1
        if left == was_left:
            return tree, False
    for v in range(n):
        if remains[v]:
            tree.order[count] = v
    return tree, True


@compiled_inline
def _remove(v: int, g: int, constraints: Constraints, e: F64, tree: Tree, neighbours: I64, remains: Bools) -> None:
    """Remove a value with one neighbour, which becomes its parent."""
    remains[v] = False
    for f in range(constraints.groups.shape[1]):
        other = _other(f, v, constraints)
        if constraints.groups[g, f] and other >= 0 and remains[other]:
            tree.link[v], tree.parent[v] = f, other
            neighbours[other] -= 1


@compiled_inline
def _other(f: int, v: int, constraints: Constraints) -> int:
    """The value of which a form is the difference to v; -1 if there is none, and -2 if v is not in the form."""
    if constraints.forms[f, 0] == v:
        return constraints.forms[f, 1]
    return constraints.forms[f, 0] if constraints.forms[f, 1] == v else NONE - 1


# ---------------------------------------------------------------- where curves bend


@compiled
def _most_ends(g: int, tree: Tree, constraints: Constraints, e: F64) -> I64:
    """An upper bound for the number of ends of pieces of each value."""
    most = np.zeros(len(e), np.int64)
    for v in tree.order:
        most[v] += 2 + len(CUTS) + (1 << constraints.shares.shape[1])
        for f in range(constraints.groups.shape[1]):
            if constraints.groups[g, f] and _other(f, v, constraints) > -2:
                most[v] += 2 * (constraints.first[f + 1] - constraints.first[f])
        if tree.parent[v] >= 0:
            f = tree.link[v]
            most[tree.parent[v]] += 2 * (constraints.first[f + 1] - constraints.first[f]) * most[v]
    return most


@compiled
def _add_ends(v: int, g: int, tree: Tree, center: F64, constraints: Constraints, e: F64, curves: Curves) -> int:
    """Write the ends of the pieces of a value; returns their number."""
    ends, n = curves.ends[curves.first[v] :], ZERO
    if constraints.shares.shape[1] > 1:
        for share in signed_sums(constraints.shares[v], constraints.shares.shape[1]):
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


@compiled
def _ordered(ends: F64, n: int, low: float, high: float) -> int:
    """Replace ends by those between two numbers and these two, in ascending order; returns their number.

    Of ends that differ by a rounding error, one is kept.
    """
    ordered, kept = sorted_few(ends, n), ZERO + 1
    same = 1e-13 * (abs(low) + abs(high))
    ends[0] = low
    for k in range(n):
        if ordered[k] > ends[kept - 1] + same and ordered[k] < high - same:
            ends[kept] = ordered[k]
            kept += 1
    ends[kept] = high
    return kept + 1


# ---------------------------------------------------------------- integrals


@compiled
def _integrate(
    v: int, g: int, tree: Tree, center: F64, constraints: Constraints, e: F64, curves: Curves, nodes: F64, matrix: F64
) -> None:
    """Compute the curve of a value from its density and from the curves of the values beyond it."""
    values, below = np.empty(len(nodes)), 0.0
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
            # A call with all constraints takes longer than the density of one error.
            values[node] = half * (
                density(x - center[v], e[v], constraints.spreads[v, 0])
                if constraints.shares.shape[1] == 1
                else value_density(v, x - center[v], constraints, e)
            )
            for child in tree.order:
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
