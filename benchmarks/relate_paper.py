"""The contestants of the RELATE benchmark: the algorithms of the SimpMatch paper, compiled as the product's kernel is.

The paper is "Interval-based Queries over Lossy IoT Event Streams". What it describes, and what it compares itself with:

- `possible_worlds`: its tree of possible worlds, with pruning and caching (Algorithms 1 and 2). Exact.
- `sase`, `sase_around`: the same tree with SASE+'s discrete timestamps in the place of its formula (Algorithm 3).
- `baseline_ignore`, `baseline_static`: lost events passed over, or some of them put at a fixed place (section 4.2).

All take the same first nine arguments: times, lo and hi of the events of a, then of b (times NaN where lost; lo and hi
are read for lost events alone), the outer and the inner quantifier (k for AT LEAST k, 0 for ALL), and the relations as
bits in the order of SIMPLE. The baselines return 0 or 1; the trees a probability and the number of nodes they added,
with NaN for the probability where that number reached `limit`.

How the paper is read
---------------------
The probability of an order
    Theorem 1 holds for two runs of lost events that lie whole between the same two recorded instants. Where other
    recorded instants fall between, a run is split over several *gaps*, and the density of its times, m! / L^m, must be
    counted once, not once a gap. So each lost event of a run carries the m-th part of it, c = (m!)^(1/m) / L, and a gap
    d long with n_a and n_b events, in one order, has weight d^(n_a + n_b) / (n_a + n_b)! c_a^n_a c_b^n_b. The product
    over the gaps is the probability of a world. The weight is cached by (gap, n_a, n_b).
First and last events
    Lost ones lie between their recorded neighbour and a known bound. Bounds, and windows that are narrower than the
    recorded neighbours, cut time like recorded events do, but add no node. Runs of one entity may not share a gap:
    neighbouring lost events have one window, or windows that do not overlap.
Ties
    Two recorded events of one time may follow each other either way by the paper's CHECKORDER, which would count every
    world twice. Here they happen together, and the tie decides between MEETS and PRECEDES and the like.
MATCHESQUERY
    A branch ends as soon as the order so far leaves too few segments of a that can still be satisfied: closed ones that
    are not, the open one and those to come if too few segments of b can stand in the relation to them. Algorithm 2 goes
    on to the leaves where the query already holds for sure; the text on selectivity (section 4.3) speaks of pruning
    there. `sure=True` does so, and adds all completions in closed form.
Algorithm 3
    As printed it returns 0 for two or more lost events (its last test is never met), and its density, one over the
    *sum* of the domains' sizes, is none. Here every nondecreasing choice of timestamps for the events of a run is
    equally likely: what becomes order statistics as timestamps get dense. Paths are counted for each timestamp they
    end at rather than made one by one, and a domain holds no timestamp outside the event's window: both are kinder than
    printed. As printed, equal timestamps fit either order, so that the probabilities of all worlds add up to somewhat
    more than 1. Nothing is cached, because the weight now depends on the order. See `sase` for what it tends to.
BaselineStatic
    By the text a lost end is put at the *earlier* of "begin + mean duration" and the next observed event; the paper's
    example has it later than that event. The text is followed. Where a segment has lost both ends it is left out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from anabranch.language.bind_relate import SIMPLE

I8 = npt.NDArray[np.int8]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

(
    PRECEDES, MEETS, OVERLAPS, STARTS, DURING, FINISHES, EQUALS,
    PRECEDED_BY, MET_BY, OVERLAPPED_BY, STARTED_BY, CONTAINS, FINISHED_BY,
) = (1 << i for i in range(len(SIMPLE)))  # fmt: skip

#: What may hold of a segment that has yet to open, by what the other one is now.
TO_AN_OPEN_ONE = DURING | FINISHES | OVERLAPPED_BY | MET_BY | PRECEDED_BY
ANY = (1 << len(SIMPLE)) - 1

#: What can become of a segment of a: none of its completions satisfies it, some may, all do.
UNKNOWN, NEVER, MAYBE, SURELY = 0, 1, 2, 3

NO_LIMIT = 1 << 62


# ------------------------------------------------------------ relations and quantifiers


@njit(cache=True)
def relation(x: float, x_end: float, y: float, y_end: float) -> int:
    """The bit of the one relation between two intervals, by times or by ranks."""
    if x_end <= y:
        return PRECEDES if x_end < y else MEETS
    if y_end <= x:
        return PRECEDED_BY if y_end < x else MET_BY
    if x < y:
        return OVERLAPS if x_end < y_end else (CONTAINS if x_end > y_end else FINISHED_BY)
    if x > y:
        return DURING if x_end < y_end else (OVERLAPPED_BY if x_end > y_end else FINISHES)
    return STARTS if x_end < y_end else (STARTED_BY if x_end > y_end else EQUALS)


@njit(cache=True)
def holds(a: F64, a_end: F64, b: F64, b_end: F64, outer: int, inner: int, relations: int) -> float:
    """Whether the query holds (1 or 0) for segments of which all ends are known."""
    outer = outer if outer > 0 else len(a)
    inner = inner if inner > 0 else len(b)
    satisfied = 0
    for x in range(len(a)):
        count = 0
        for y in range(len(b)):
            if relation(a[x], a_end[x], b[y], b_end[y]) & relations:
                count += 1
        if count >= inner:
            satisfied += 1
    return 1.0 if satisfied >= outer else 0.0


# ------------------------------------------------------------ the baselines


@njit(cache=True)
def baseline_ignore(
    times_a: F64, lo_a: F64, hi_a: F64, times_b: F64, lo_b: F64, hi_b: F64, outer: int, inner: int, relations: int
) -> float:
    """BaselineIgnore: the query over what was recorded, without events that repeat the kind of the one before."""
    a, a_end = ignored(times_a)
    b, b_end = ignored(times_b)
    return holds(a, a_end, b, b_end, outer, inner, relations)


@njit(cache=True)
def ignored(times: F64) -> tuple[F64, F64]:
    """The segments from each first opening event to the next closing one; what has no counterpart is dropped."""
    begins, ends = np.empty(len(times)), np.empty(len(times))
    count = 0
    is_open = False
    for i in range(len(times)):
        if math.isnan(times[i]):
            continue
        if i % 2 == 0 and not is_open:
            begins[count] = times[i]
            is_open = True
        elif i % 2 == 1 and is_open:
            ends[count] = times[i]
            count += 1
            is_open = False
    return begins[:count], ends[:count]


@njit(cache=True)
def baseline_static(
    times_a: F64, lo_a: F64, hi_a: F64, times_b: F64, lo_b: F64, hi_b: F64, outer: int, inner: int, relations: int
) -> float:
    """BaselineStatic: the query over segments whose lost end lies a mean duration from the other one."""
    a, a_end = reconstructed(times_a, lo_a, hi_a)
    b, b_end = reconstructed(times_b, lo_b, hi_b)
    return holds(a, a_end, b, b_end, outer, inner, relations)


@njit(cache=True)
def reconstructed(times: F64, lo: F64, hi: F64) -> tuple[F64, F64]:
    """The segments with at least one recorded end.

    The other end is the mean duration of the entity's whole segments away, or at the nearest recorded event if that is
    nearer; where no segment is whole, it is at that event, or at the end of its window.
    """
    mean, whole = 0.0, 0
    for i in range(0, len(times) - 1, 2):
        if not math.isnan(times[i]) and not math.isnan(times[i + 1]):
            mean += times[i + 1] - times[i]
            whole += 1
    mean = mean / whole if whole else np.inf
    begins, ends = np.empty(len(times) // 2), np.empty(len(times) // 2)
    count = 0
    for i in range(0, len(times) - 1, 2):
        begin, end = times[i], times[i + 1]
        if math.isnan(begin) and math.isnan(end):
            continue
        if math.isnan(end):
            end = min(begin + mean, _next_recorded(times, i + 2, 1))
            end = end if end < np.inf else hi[i + 1]
        elif math.isnan(begin):
            begin = max(end - mean, _next_recorded(times, i - 1, -1))
            begin = begin if begin > -np.inf else lo[i]
        begins[count], ends[count] = begin, end
        count += 1
    return begins[:count], ends[:count]


@njit(cache=True)
def _next_recorded(times: F64, i: int, step: int) -> float:
    """The first recorded time from i on, forwards or backwards; infinite where there is none."""
    while 0 <= i < len(times):
        if not math.isnan(times[i]):
            return float(times[i])
        i += step
    return np.inf if step > 0 else -np.inf


# ------------------------------------------------------------ gaps


class Side(NamedTuple):
    """The events of one entity as the tree sees them.

    By event: `times` (NaN where lost), `lo` and `hi` (clipped to the order; the time where recorded), `first` and
    `after` (the run a lost event is in: its first event, and the first one after it).

    By gap, the one before bound g: `run` and `run_end` (the first event of the run that can have events in it, and the
    first event after; equal where there is none), `density` (of each event of that run), `need` (how many events must
    have happened before the bound), `recorded` (the event recorded at the bound, or -1).
    """

    times: F64
    lo: F64
    hi: F64
    first: I64
    after: I64
    run: I64
    run_end: I64
    density: F64
    need: I64
    recorded: I64


@njit(cache=True)
def _clipped(times: F64, lo: F64, hi: F64) -> tuple[F64, F64, I64, I64]:
    """Windows within the order of the events, and the runs of lost events that share one."""
    size = len(times)
    low, high = np.where(np.isnan(times), lo, times), np.where(np.isnan(times), hi, times)
    first, after = np.arange(size), np.arange(1, size + 1)
    for i in range(1, size):
        low[i] = max(low[i], low[i - 1])
    for i in range(size - 2, -1, -1):
        high[i] = min(high[i], high[i + 1])
    for i in range(1, size):
        if math.isnan(times[i]) and math.isnan(times[i - 1]):
            if low[i] == low[i - 1] and high[i] == high[i - 1]:
                first[i] = first[i - 1]
            elif high[i - 1] > low[i]:
                raise ValueError("the tree takes one window for neighbouring lost events, or windows apart")
    for i in range(size - 2, -1, -1):
        if first[i + 1] == first[i]:
            after[i] = after[i + 1]
    return low, high, first, after


@njit(cache=True)
def _own_bounds(times: F64, lo: F64, hi: F64, first: I64) -> F64:
    """The recorded times of an entity and the ends of its runs, in order."""
    bounds = np.empty(2 * len(times))
    count = 0
    for i in range(len(times)):
        if not math.isnan(times[i]):
            bounds[count] = times[i]
            count += 1
        elif first[i] == i:
            bounds[count], bounds[count + 1] = lo[i], hi[i]
            count += 2
    return bounds[:count]


@njit(cache=True)
def _merged(x: F64, y: F64) -> F64:
    """Two sorted arrays as one, each value once."""
    merged = np.empty(len(x) + len(y))
    i, j, count = 0, 0, 0
    while i < len(x) or j < len(y):
        if j == len(y) or (i < len(x) and x[i] <= y[j]):
            value = x[i]
            i += 1
        else:
            value = y[j]
            j += 1
        if count == 0 or merged[count - 1] < value:
            merged[count] = value
            count += 1
    return merged[:count]


@njit(cache=True)
def _side(times: F64, low: F64, high: F64, first: I64, after: I64, bounds: F64) -> Side:
    """What an entity can and must do in each gap."""
    size, gaps = len(times), len(bounds)
    run, run_end, need = np.zeros(gaps, np.int64), np.zeros(gaps, np.int64), np.zeros(gaps, np.int64)
    recorded, density = np.full(gaps, -1, np.int64), np.zeros(gaps)
    at = 0
    for g in range(gaps):
        # Here `at` is the first event that may still be ahead of the bound before this gap.
        if at < size and math.isnan(times[at]) and g > 0 and low[at] <= bounds[g - 1]:
            m = after[at] - first[at]
            run[g], run_end[g] = first[at], after[at]
            density[g] = math.exp(math.lgamma(m + 1.0) / m) / (high[at] - low[at])
        while at < size and math.isnan(times[at]) and high[at] <= bounds[g]:
            at += 1
        need[g] = at
        if at < size and times[at] == bounds[g]:
            recorded[g] = at
            at += 1
    return Side(times, low, high, first, after, run, run_end, density, need, recorded)


@njit(cache=True)
def _sides(times_a: F64, lo_a: F64, hi_a: F64, times_b: F64, lo_b: F64, hi_b: F64) -> tuple[Side, Side, F64]:
    """Both entities, and the bounds between which their lost events lie."""
    low_a, high_a, first_a, after_a = _clipped(times_a, lo_a, hi_a)
    low_b, high_b, first_b, after_b = _clipped(times_b, lo_b, hi_b)
    bounds = _merged(_own_bounds(times_a, low_a, high_a, first_a), _own_bounds(times_b, low_b, high_b, first_b))
    a = _side(times_a, low_a, high_a, first_a, after_a, bounds)
    return a, _side(times_b, low_b, high_b, first_b, after_b, bounds), bounds


# ------------------------------------------------------------ MATCHESQUERY

# The rank of an event of a is 2j where j events of b came before it, 2j + 1 where it ties with event j of b. So event j
# of b has rank 2j + 1, and the order of all events is the order of ranks.


class Query(NamedTuple):
    """The query, and what becomes of segments of a by the ranks of their ends.

    `closed` has the fate of a segment by the ranks of its two ends, `opened` that of an open one by the rank of its
    beginning and the number of events of b by now; both are filled as they are asked for. `to_come` has the fate of
    segments that have yet to open by the number of events of b.
    """

    outer: int
    inner: int
    relations: int
    segments_a: int
    segments_b: int
    closed: I8
    opened: I8
    to_come: I8


@njit(cache=True)
def _query(size_a: int, size_b: int, outer: int, inner: int, relations: int) -> Query:
    """The query over entities of so many events, ALL replaced by their number of segments."""
    segments_a, segments_b = size_a // 2, size_b // 2
    closed = np.zeros((2 * size_b + 1, 2 * size_b + 1), np.int8)
    opened = np.zeros((2 * size_b + 1, size_b + 1), np.int8)
    to_come = np.zeros(size_b + 1, np.int8)
    outer = outer if outer > 0 else segments_a
    inner = inner if inner > 0 else segments_b
    for j in range(size_b + 1):
        to_come[j] = _fate_to_come(inner, relations, segments_b, j)
    return Query(outer, inner, relations, segments_a, segments_b, closed, opened, to_come)


@njit(cache=True)
def _fate_closed(inner: int, relations: int, segments_b: int, begin: int, end: int) -> int:
    """SURELY where a segment between these ranks is satisfied, NEVER where it is not."""
    count = 0
    for y in range(segments_b):
        if relation(begin, end, 4 * y + 1, 4 * y + 3) & relations:
            count += 1
    return SURELY if count >= inner else NEVER


@njit(cache=True)
def _fate_open(inner: int, relations: int, segments_b: int, begin: int, j: int) -> int:
    """What can become of a segment open since rank `begin` when j events of b have happened."""
    may, must = 0, 0
    for y in range(segments_b):
        possible = _possible(begin, 2 * j, 4 * y + 1, 4 * y + 3)
        may += 1 if possible & relations else 0
        must += 1 if not possible & ~relations else 0
    return SURELY if must >= inner else (MAYBE if may >= inner else NEVER)


@njit(cache=True)
def _possible(begin: int, now: int, y: int, y_end: int) -> int:
    """The relations that a segment open since `begin` can still have to one from y to y_end, at rank `now`."""
    if y_end <= begin:
        return PRECEDED_BY if y_end < begin else MET_BY
    if y_end < now:
        return CONTAINS if begin < y else (STARTED_BY if begin == y else OVERLAPPED_BY)
    if y < begin:
        return DURING | FINISHES | OVERLAPPED_BY
    if y == begin:
        return STARTS | EQUALS | STARTED_BY
    if y < now:
        return OVERLAPS | FINISHED_BY | CONTAINS
    return PRECEDES | MEETS | OVERLAPS | FINISHED_BY | CONTAINS


@njit(cache=True)
def _fate_to_come(inner: int, relations: int, segments_b: int, j: int) -> int:
    """What can become of a segment that has yet to open when j events of b have happened."""
    past = min(j // 2, segments_b)
    now = j % 2 if past < segments_b else 0
    later = segments_b - past - now
    may, must = 0, 0
    if relations & PRECEDED_BY:
        may, must = past, past
    if relations & TO_AN_OPEN_ONE:
        may += now
    if not TO_AN_OPEN_ONE & ~relations:
        must += now
    if relations:
        may += later
    if relations == ANY:
        must += later
    return SURELY if must >= inner else (MAYBE if may >= inner else NEVER)


# ------------------------------------------------------------ COMPUTEPROB


class Cache(NamedTuple):
    """The weights of gaps by the numbers of events in them; NaN where not asked for yet.

    That of gap g with x events of a and y of b is at starts[g] + x * widths[g] + y.
    """

    starts: I64
    widths: I64
    weights: F64


@njit(cache=True)
def _cache(a: Side, b: Side) -> Cache:
    """Room for every number of events that each gap can have."""
    widths = b.run_end - b.run + 1
    starts = np.zeros(len(widths) + 1, np.int64)
    starts[1:] = np.cumsum((a.run_end - a.run + 1) * widths)
    return Cache(starts, widths, np.full(starts[-1], np.nan))


@njit(cache=True)
def _power(x: float, n: int) -> float:
    """x^n / n!, without its overflowing parts."""
    product = 1.0
    for k in range(1, n + 1):
        product *= x / k
    return product


@njit(cache=True)
def _weight(d: float, density_a: float, in_a: int, density_b: float, in_b: int) -> float:
    """The weight of a gap d long with so many events in one order: d^n / n! times the density of each."""
    product = _power(d * density_a, in_a)
    for k in range(1, in_b + 1):
        product *= d * density_b / (in_a + k)
    return product


@njit(cache=True)
def _tails(side: Side, bounds: F64) -> F64:
    """The total weight of all ways to go on from the bound before gap g, by g and the number of events before it."""
    tails = np.ones((len(bounds) + 1, len(side.times) + 1))
    for g in range(1, len(bounds) + 1):
        if g < len(bounds):
            for i in range(side.run[g], side.run_end[g]):
                tails[g, i] = _power((side.hi[i] - bounds[g - 1]) * side.density[g], side.run_end[g] - i)
            # An event recorded at the bound itself may not be counted: the run then is all to come.
            tails[g, : side.run[g]] = tails[g, side.run[g]]
        tails[g, : side.need[g - 1]] = 0.0
    return tails


@njit(cache=True)
def _rest(d: float, density_a: float, density_b: float, in_a: int, in_b: int, tails_a: F64, tails_b: F64) -> float:
    """The total weight of all ways to go on within a gap and after it; in_a and in_b events are in it already.

    `tails_a` has the weight of what comes after the gap by how many more events of a are in it, `tails_b` that of b.
    """
    total = 0.0
    first = _weight(d, density_a, in_a, density_b, in_b)
    for x in range(len(tails_a)):
        if x > 0:
            first *= d * density_a / (in_a + in_b + x)
        # The weight for one order, times the number of orders of x and y more events.
        weight = first
        for y in range(len(tails_b)):
            if y > 0:
                weight *= d * density_b / (in_a + in_b + x + y) * (x + y) / y
            total += weight * tails_a[x] * tails_b[y]
    return total


# ------------------------------------------------------------ Algorithm 3


class Domain(NamedTuple):
    """The timestamps that each lost event of an entity may have.

    `stamps` has them in order, `sizes` says how many there are. A run's events together have one over the number of
    nondecreasing choices as the weight of each; `share` is the part of one event.
    """

    stamps: F64
    sizes: I64
    share: F64


@njit(cache=True)
def _even_stamps(side: Side, delta: int) -> tuple[F64, I64]:
    """For each lost event delta timestamps, evenly over its window."""
    stamps, sizes = np.empty((len(side.times), delta)), np.zeros(len(side.times), np.int64)
    for i in range(len(side.times)):
        if math.isnan(side.times[i]):
            sizes[i] = delta
            for s in range(delta):
                stamps[i, s] = side.lo[i] + (s + 0.5) / delta * (side.hi[i] - side.lo[i])
    return stamps, sizes


@njit(cache=True)
def _stamps_around(side: Side, guess: F64, delta: int, step: float) -> tuple[F64, I64]:
    """For each lost event delta timestamps to each side of a guess, and the guess; those within its window."""
    stamps, sizes = np.empty((len(side.times), 2 * delta + 1)), np.zeros(len(side.times), np.int64)
    for i in range(len(side.times)):
        if math.isnan(side.times[i]):
            for s in range(-delta, delta + 1):
                stamp = guess[i] + s * step
                if side.lo[i] <= stamp <= side.hi[i]:
                    stamps[i, sizes[i]] = stamp
                    sizes[i] += 1
    return stamps, sizes


@njit(cache=True)
def expected_times(times: F64, lo: F64, hi: F64) -> F64:
    """A guess for `sase_around`: the mean time of each lost event, by the order statistics of its run."""
    low, high, first, after = _clipped(times, lo, hi)
    guess = times.copy()
    for i in range(len(times)):
        if math.isnan(times[i]):
            guess[i] = low[i] + (high[i] - low[i]) * (i - first[i] + 1) / (after[i] - first[i] + 1)
    return guess


@njit(cache=True)
def _domain(side: Side, stamps: F64, sizes: I64) -> Domain:
    """Timestamps with the weight of each event."""
    share = np.zeros(len(sizes))
    path = np.empty(len(sizes), np.int64)
    ways, more = np.empty(stamps.shape[1]), np.empty(stamps.shape[1])
    domain = Domain(stamps, sizes, np.ones(len(sizes)))
    for i in range(len(sizes)):
        if math.isnan(side.times[i]) and side.first[i] == i:
            size = side.after[i] - i
            for k in range(size):
                path[k] = i + k
            count = _paths(path[:size], domain, domain, side.lo[i], side.hi[i], ways, more)
            share[i : side.after[i]] = count ** (-1.0 / size) if count > 0 else 0.0
    return Domain(stamps, sizes, share)


@njit(cache=True)
def _paths(path: I64, of_a: Domain, of_b: Domain, low: float, high: float, ways: F64, more: F64) -> float:
    """The weight of all nondecreasing choices of timestamps for the events of a path, each from low to high.

    Event i of a is i in the path, event j of b is -1 - j. Paths are counted by the timestamp they end at.
    """
    for k in range(len(path)):
        domain = of_a if path[k] >= 0 else of_b
        at = path[k] if path[k] >= 0 else -1 - path[k]
        before = path[k - 1] if k > 0 else 0
        domain_before = of_a if before >= 0 else of_b
        before = before if before >= 0 else -1 - before
        total, p = (1.0 if k == 0 else 0.0), 0
        for s in range(domain.sizes[at]):
            stamp = domain.stamps[at, s]
            while k > 0 and p < domain_before.sizes[before] and domain_before.stamps[before, p] <= stamp:
                total += ways[p]
                p += 1
            more[s] = total * domain.share[at] if low <= stamp <= high else 0.0
        ways, more = more, ways
    last = path[-1]
    return float(np.sum(ways[: of_a.sizes[last] if last >= 0 else of_b.sizes[-1 - last]]))


# ------------------------------------------------------------ the tree

# The columns of the stack: events of a and of b so far, the gap, events of each in it, the rank at which the open
# segment of a began (or -1), the satisfied segments of a, and what is to be tried next.
BY_A, BY_B, GAP, IN_A, IN_B, BEGIN, SATISFIED, NEXT = 0, 1, 2, 3, 4, 5, 6, 7

# What can happen next: a lost event of a, a lost event of b, what is recorded at the bound.
LOST_A, LOST_B, BOUND = 0, 1, 2


@njit(cache=True)
def _walk(
    a: Side, b: Side, bounds: F64, query: Query, limit: int, sure: bool, discrete: bool, of_a: Domain, of_b: Domain
) -> tuple[float, int]:
    """EXPANDNODE, depth first: the probability of the query, and how many nodes were added.

    A level of the stack is a lost event on the path; a recorded event, the last thing to be tried at a node, takes the
    place of its node. Weights multiply up to the bound passed last; `mass` has the product.
    """
    # Arrays by themselves: passing them on in tuples, node by node, would cost ten times as much as the rest.
    run_a, end_a, need_a, recorded_a, density_a = a.run, a.run_end, a.need, a.recorded, a.density
    run_b, end_b, need_b, recorded_b, density_b = b.run, b.run_end, b.need, b.recorded, b.density
    outer, inner, relations, segments_a, segments_b, closed, opened, to_come = query
    starts, widths, weights = _cache(a, b)
    tails_a = _tails(a, bounds) if sure else np.empty((0, 0))
    tails_b = _tails(b, bounds) if sure else np.empty((0, 0))
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
                product *= _paths(sequence, of_a, of_b, bounds[g - 1], bounds[g], ways, more)
            elif in_a + in_b > 0:
                at = starts[g] + in_a * widths[g] + in_b
                if math.isnan(weights[at]):
                    weights[at] = _weight(bounds[g] - bounds[g - 1], density_a[g], in_a, density_b[g], in_b)
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
                closed[begin, rank] = _fate_closed(inner, relations, segments_b, begin, rank)
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
                opened[begin, j] = _fate_open(inner, relations, segments_b, begin, j)
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
                product *= _rest(d, density_a[g], density_b[g], in_a, in_b, further_a, further_b)
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


@njit(cache=True)
def possible_worlds(
    times_a: F64,
    lo_a: F64,
    hi_a: F64,
    times_b: F64,
    lo_b: F64,
    hi_b: F64,
    outer: int,
    inner: int,
    relations: int,
    limit: int = NO_LIMIT,
    sure: bool = False,
) -> tuple[float, int]:
    """SimpMatch: the probability of the query, and the nodes of the tree; NaN where they reach the limit.

    With `sure` a branch also ends where the query holds whatever follows. Exponential in the lost events either way.
    """
    a, b, bounds = _sides(times_a, lo_a, hi_a, times_b, lo_b, hi_b)
    none = Domain(np.empty((0, 0)), np.empty(0, np.int64), np.empty(0))
    query = _query(len(times_a), len(times_b), outer, inner, relations)
    return _walk(a, b, bounds, query, limit, sure, False, none, none)


@njit(cache=True)
def sase(
    times_a: F64,
    lo_a: F64,
    hi_a: F64,
    times_b: F64,
    lo_b: F64,
    hi_b: F64,
    outer: int,
    inner: int,
    relations: int,
    delta: int,
    limit: int = NO_LIMIT,
) -> tuple[float, int]:
    """The tree with delta timestamps for each lost event, evenly over its window.

    It tends to the exact probability as delta grows; the error falls like 1 / delta. It can be above 1.
    """
    a, b, bounds = _sides(times_a, lo_a, hi_a, times_b, lo_b, hi_b)
    stamps_a, sizes_a = _even_stamps(a, delta)
    stamps_b, sizes_b = _even_stamps(b, delta)
    query = _query(len(times_a), len(times_b), outer, inner, relations)
    of_a, of_b = _domain(a, stamps_a, sizes_a), _domain(b, stamps_b, sizes_b)
    return _walk(a, b, bounds, query, limit, False, True, of_a, of_b)


@njit(cache=True)
def sase_around(
    times_a: F64,
    lo_a: F64,
    hi_a: F64,
    times_b: F64,
    lo_b: F64,
    hi_b: F64,
    outer: int,
    inner: int,
    relations: int,
    guess_a: F64,
    guess_b: F64,
    delta: int,
    step: float,
    limit: int = NO_LIMIT,
) -> tuple[float, int]:
    """The tree with the paper's domain: for each lost event the timestamps up to delta steps away from a guess.

    The paper's guess is the true time, which nobody has; `expected_times` are known. As delta grows the domain becomes
    every timestamp of the window, and the probability that of times in steps: only a smaller step comes nearer to the
    exact one.
    """
    a, b, bounds = _sides(times_a, lo_a, hi_a, times_b, lo_b, hi_b)
    stamps_a, sizes_a = _stamps_around(a, guess_a, delta, step)
    stamps_b, sizes_b = _stamps_around(b, guess_b, delta, step)
    query = _query(len(times_a), len(times_b), outer, inner, relations)
    of_a, of_b = _domain(a, stamps_a, sizes_a), _domain(b, stamps_b, sizes_b)
    return _walk(a, b, bounds, query, limit, False, True, of_a, of_b)
