"""EXPANDNODE: the tree of possible worlds, with the paper's formula or with discrete timestamps."""

from __future__ import annotations

import math

import numpy as np

from anabranch.compiled import compiled
from benchmarks.relate_paper.asked import F64, Asked
from benchmarks.relate_paper.gaps import Side, make_sides
from benchmarks.relate_paper.query import MAYBE, SURELY, UNKNOWN, Query, fate_closed, fate_open, make_query
from benchmarks.relate_paper.stamps import Domain, even_stamps, make_domain, stamps_around, weight_of_paths
from benchmarks.relate_paper.weights import make_cache, weight_of_gap, weight_of_rest, weights_to_come

NO_LIMIT = 1 << 62

# The columns of the stack: events of a and of b so far, the gap, events of each in it, the rank at which the open
# segment of a began (or -1), the satisfied segments of a, and what is to be tried next.
BY_A, BY_B, GAP, IN_A, IN_B, BEGIN, SATISFIED, NEXT = 0, 1, 2, 3, 4, 5, 6, 7

# What can happen next: a lost event of a, a lost event of b, what is recorded at the bound.
LOST_A, LOST_B, BOUND = 0, 1, 2


@compiled
def _walk(
    a: Side, b: Side, bounds: F64, query: Query, limit: int, sure: bool, discrete: bool, of_a: Domain, of_b: Domain
) -> tuple[float, int]:
    """EXPANDNODE, depth first: the probability of the query, and how many nodes were added.

    A level of the stack is a lost event on the path; a recorded event, the last thing to be tried at a node, takes the
    place of its node. Weights multiply up to the bound passed last; `mass` has the product. It is one function because
    a node takes half as long again where its steps are functions of their own.
    """
    # Arrays by themselves: passing them on in tuples, node by node, would cost ten times as much as the rest.
    run_a, end_a, need_a, recorded_a, density_a = a.run, a.run_end, a.need, a.recorded, a.density
    run_b, end_b, need_b, recorded_b, density_b = b.run, b.run_end, b.need, b.recorded, b.density
    outer, inner, relations, segments_a, segments_b, closed, opened, to_come = query
    starts, widths, weights = make_cache(a, b)
    tails_a = weights_to_come(a, bounds) if sure else np.empty((0, 0))
    tails_b = weights_to_come(b, bounds) if sure else np.empty((0, 0))
    most = np.sum(np.isnan(a.times)) + np.sum(np.isnan(b.times)) + 1
    stack, mass, path = np.zeros((most, 8), np.int64), np.ones(most), np.empty(most, np.int64)
    widest = max(of_a.stamps.shape[1], of_b.stamps.shape[1])
    ways, more = np.empty(widest), np.empty(widest)
    if segments_a * (to_come[0] >= MAYBE) < outer:
        return 0.0, 0
    if len(bounds) == 0 or (sure and segments_a * (to_come[0] == SURELY) >= outer):
        return 1.0, 0
    stack[0, BEGIN] = -1
    total, nodes, depth = 0.0, 0, 0
    while depth >= 0:
        if nodes >= limit:
            return np.nan, nodes
        i, j, g = stack[depth, BY_A], stack[depth, BY_B], stack[depth, GAP]
        in_a, in_b = stack[depth, IN_A], stack[depth, IN_B]
        begin, satisfied, following = stack[depth, BEGIN], stack[depth, SATISFIED], stack[depth, NEXT]
        product = mass[depth]
        # CHECKORDER: what of the three can be next.
        if following == LOST_A and not run_a[g] <= i < end_a[g]:
            following = LOST_B
        if following == LOST_B and not run_b[g] <= j < end_b[g]:
            following = BOUND
        if following == BOUND and (i < need_a[g] or j < need_b[g]):
            depth -= 1
            continue
        stack[depth, NEXT] = following + 1
        # ADD, and COMPUTEPROB at a bound. `rank` is that of the event of a that was added, if one was.
        rank = -1
        if following == LOST_A:
            path[depth] = i
            rank = 2 * j
            in_a += 1
            nodes += 1
            depth += 1
        elif following == LOST_B:
            path[depth] = -1 - j
            j += 1
            in_b += 1
            nodes += 1
            depth += 1
        else:
            if in_a + in_b > 0 and discrete:
                sequence = path[depth - in_a - in_b : depth]
                product *= weight_of_paths(sequence, of_a, of_b, bounds[g - 1], bounds[g], ways, more)
            elif in_a + in_b > 0:
                at = starts[g] + in_a * widths[g] + in_b
                if math.isnan(weights[at]):
                    weights[at] = weight_of_gap(bounds[g] - bounds[g - 1], density_a[g], in_a, density_b[g], in_b)
                product *= weights[at]
            tied = 1 if recorded_b[g] >= 0 else 0
            if recorded_a[g] >= 0:
                rank = 2 * j + tied
                nodes += 1
            nodes += tied
            j += tied
            g, in_a, in_b = g + 1, 0, 0
        if rank >= 0 and i % 2 == 1:
            if closed[begin, rank] == UNKNOWN:
                closed[begin, rank] = fate_closed(inner, relations, segments_b, begin, rank)
            satisfied += 1 if closed[begin, rank] == SURELY else 0
            begin = -1
        elif rank >= 0 and i // 2 < segments_a:
            begin = rank
        i += 1 if rank >= 0 else 0
        # MATCHESQUERY: how many segments of a may come to be satisfied, and how many surely will.
        left = segments_a - i // 2 - (1 if begin >= 0 else 0)
        may = satisfied + (left if to_come[j] >= MAYBE else 0)
        must = satisfied + (left if to_come[j] == SURELY else 0)
        if begin >= 0:
            if opened[begin, j] == UNKNOWN:
                opened[begin, j] = fate_open(inner, relations, segments_b, begin, j)
            may += 1 if opened[begin, j] >= MAYBE else 0
            must += 1 if opened[begin, j] == SURELY else 0
        if may < outer:
            depth -= 1
        elif g == len(bounds):
            total += product
            depth -= 1
        elif sure and must >= outer:
            if in_a + in_b > 0:
                further_a = tails_a[g + 1, i : max(i, end_a[g]) + 1]
                further_b = tails_b[g + 1, j : max(j, end_b[g]) + 1]
                d = bounds[g] - bounds[g - 1]
                product *= weight_of_rest(d, density_a[g], density_b[g], in_a, in_b, further_a, further_b)
            else:
                product *= tails_a[g, i] * tails_b[g, j]
            total += product
            depth -= 1
        else:
            stack[depth, BY_A], stack[depth, BY_B], stack[depth, GAP] = i, j, g
            stack[depth, IN_A], stack[depth, IN_B] = in_a, in_b
            stack[depth, BEGIN], stack[depth, SATISFIED], stack[depth, NEXT] = begin, satisfied, LOST_A
            mass[depth] = product
    return total, nodes


@compiled
def possible_worlds(asked: Asked, limit: int, sure: bool) -> tuple[float, int]:
    """SimpMatch: the probability of the query, and the nodes of the tree; NaN where they reach the limit.

    With `sure` a branch also ends where the query holds whatever follows. Exponential in the lost events either way.
    """
    a, b, bounds = make_sides(asked)
    none = Domain(np.empty((0, 0)), np.empty(0, np.int64), np.empty(0))
    return _walk(a, b, bounds, make_query(asked), limit, sure, False, none, none)


@compiled
def sase(asked: Asked, delta: int, limit: int) -> tuple[float, int]:
    """The tree with delta timestamps for each lost event, evenly over its window.

    It tends to the exact probability as delta grows; the error falls like 1 / delta. It can be above 1.
    """
    a, b, bounds = make_sides(asked)
    of_a, of_b = make_domain(a, *even_stamps(a, delta)), make_domain(b, *even_stamps(b, delta))
    return _walk(a, b, bounds, make_query(asked), limit, False, True, of_a, of_b)


@compiled
def sase_around(asked: Asked, guess_a: F64, guess_b: F64, delta: int, step: float, limit: int) -> tuple[float, int]:
    """The tree with the paper's domain: for each lost event the timestamps up to delta steps away from a guess.

    The paper's guess is the true time, which nobody has; `expected_times` are known. As delta grows the domain becomes
    every timestamp of the window, and the probability that of times in steps: only a smaller step comes nearer to the
    exact one.
    """
    a, b, bounds = make_sides(asked)
    of_a = make_domain(a, *stamps_around(a, guess_a, delta, step))
    of_b = make_domain(b, *stamps_around(b, guess_b, delta, step))
    return _walk(a, b, bounds, make_query(asked), limit, False, True, of_a, of_b)
