"""EXPANDNODE: the tree of possible worlds, with the paper's formula or with discrete timestamps."""

from __future__ import annotations

import math

import numpy as np

from anabranch.arrays import F64
from anabranch.compiled import compiled
from reproductions.simpmatch.gaps import Side, make_sides
from reproductions.simpmatch.inputs import PairInput
from reproductions.simpmatch.query import MAYBE, SURELY, UNKNOWN, Query, closed_outcome, make_query, open_outcome
from reproductions.simpmatch.timestamps import Domain, even_stamps, make_domain, stamps_around, weight_of_paths
from reproductions.simpmatch.weights import make_cache, remaining_weights, weight_of_completions, weight_of_gap

NO_LIMIT = 1 << 62

# The columns of the stack: events of a and of b so far, the gap, events of each in it, the rank at which the open
# segment of a began (or -1), the satisfied segments of a, and what to try next.
BY_A, BY_B, GAP, IN_A, IN_B, BEGIN, SATISFIED, NEXT = 0, 1, 2, 3, 4, 5, 6, 7

# What can happen next: a lost event of a, a lost event of b, or the events recorded at the bound.
LOST_A, LOST_B, BOUND = 0, 1, 2


@compiled
def _walk(
    a: Side, b: Side, bounds: F64, query: Query, limit: int, stop_early: bool, discrete: bool,
    of_a: Domain, of_b: Domain,
) -> tuple[float, int]:  # fmt: skip
    """EXPANDNODE, depth first: return the probability of the query, and how many nodes were added.

    A level of the stack is a lost event on the path. A recorded event, which is tried last at a node, replaces that
    node. `mass` has the product of the weights up to the last bound. It is one function because a node takes 1.5 times
    as long if its steps are separate functions.
    """
    # Arrays are unpacked once: passing them in tuples, node by node, would cost ten times as much as the rest.
    run_a, end_a, need_a, recorded_a, density_a = a.run, a.run_end, a.need, a.recorded, a.density
    run_b, end_b, need_b, recorded_b, density_b = b.run, b.run_end, b.need, b.recorded, b.density
    outer, inner, relations, segments_a, segments_b, closed, opened, future = query
    starts, widths, weights = make_cache(a, b)
    tails_a = remaining_weights(a, bounds) if stop_early else np.empty((0, 0))
    tails_b = remaining_weights(b, bounds) if stop_early else np.empty((0, 0))
    most = np.sum(np.isnan(a.times)) + np.sum(np.isnan(b.times)) + 1
    stack, mass, path = np.zeros((most, 8), np.int64), np.ones(most), np.empty(most, np.int64)
    widest = max(of_a.stamps.shape[1], of_b.stamps.shape[1])
    ways, next_ways = np.empty(widest), np.empty(widest)
    if segments_a * (future[0] >= MAYBE) < outer:
        return 0.0, 0
    if len(bounds) == 0 or (stop_early and segments_a * (future[0] == SURELY) >= outer):
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
        # CHECKORDER: which of the three can be next.
        if following == LOST_A and not run_a[g] <= i < end_a[g]:
            following = LOST_B
        if following == LOST_B and not run_b[g] <= j < end_b[g]:
            following = BOUND
        if following == BOUND and (i < need_a[g] or j < need_b[g]):
            depth -= 1
            continue
        stack[depth, NEXT] = following + 1
        # ADD, and COMPUTEPROB at a bound. `rank` is the rank of the event of a that was added, or -1.
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
                product *= weight_of_paths(sequence, of_a, of_b, bounds[g - 1], bounds[g], ways, next_ways)
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
                closed[begin, rank] = closed_outcome(inner, relations, segments_b, begin, rank)
            satisfied += 1 if closed[begin, rank] == SURELY else 0
            begin = -1
        elif rank >= 0 and i // 2 < segments_a:
            begin = rank
        i += 1 if rank >= 0 else 0
        # MATCHESQUERY: how many segments of a may be satisfied in the end, and how many certainly will.
        left = segments_a - i // 2 - (1 if begin >= 0 else 0)
        may = satisfied + (left if future[j] >= MAYBE else 0)
        must = satisfied + (left if future[j] == SURELY else 0)
        if begin >= 0:
            if opened[begin, j] == UNKNOWN:
                opened[begin, j] = open_outcome(inner, relations, segments_b, begin, j)
            may += 1 if opened[begin, j] >= MAYBE else 0
            must += 1 if opened[begin, j] == SURELY else 0
        if may < outer:
            depth -= 1
        elif g == len(bounds):
            total += product
            depth -= 1
        elif stop_early and must >= outer:
            if in_a + in_b > 0:
                further_a = tails_a[g + 1, i : max(i, end_a[g]) + 1]
                further_b = tails_b[g + 1, j : max(j, end_b[g]) + 1]
                d = bounds[g] - bounds[g - 1]
                product *= weight_of_completions(d, density_a[g], density_b[g], in_a, in_b, further_a, further_b)
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
def possible_worlds(pair: PairInput, limit: int, stop_early: bool) -> tuple[float, int]:
    """SimpMatch: return the probability of the query and the nodes of the tree; NaN if they reach the limit.

    With `stop_early` a branch also ends where the query is certain to hold. Exponential in the lost events either way.
    """
    a, b, bounds = make_sides(pair)
    none = Domain(np.empty((0, 0)), np.empty(0, np.int64), np.empty(0))
    return _walk(a, b, bounds, make_query(pair), limit, stop_early, False, none, none)


@compiled
def sase(pair: PairInput, delta: int, limit: int) -> tuple[float, int]:
    """Evaluate the tree with delta timestamps for each lost event, spread evenly over its window.

    The result converges to the exact probability as delta grows, with an error of order 1 / delta. It can be above 1.
    """
    a, b, bounds = make_sides(pair)
    of_a, of_b = make_domain(a, *even_stamps(a, delta)), make_domain(b, *even_stamps(b, delta))
    return _walk(a, b, bounds, make_query(pair), limit, False, True, of_a, of_b)


@compiled
def sase_around(pair: PairInput, guess_a: F64, guess_b: F64, delta: int, step: float, limit: int) -> tuple[float, int]:
    """Evaluate the tree with the paper's domain: the timestamps up to delta steps away from a guess for a lost event.

    The paper's guess is the true time, which is not known in practice; `expected_times` are. As delta grows the domain
    becomes every timestamp of the window, so only a smaller step brings the result closer to the exact probability.
    """
    a, b, bounds = make_sides(pair)
    of_a = make_domain(a, *stamps_around(a, guess_a, delta, step))
    of_b = make_domain(b, *stamps_around(b, guess_b, delta, step))
    return _walk(a, b, bounds, make_query(pair), limit, False, True, of_a, of_b)
