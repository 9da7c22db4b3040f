"""The probability that two entities stand in a quantified relation, exactly, for any number of lost events.

An *entity* is a sequence of point events; the first opens a segment, the next closes it, and so on. A recorded event
has an instant. Lost events come in *runs*; how many of a run have happened by some instant is a random count.

The sweep goes over the instants at which something is known of either entity. Between two of them it carries
f[i, j, q, c]: the probability that i events of the first entity's open run and j of the second's have happened, that
the open segment of the first is of *class* q (what will become of it, see `segment_classes`), and that c of its
closed segments are *hits*. Within a gap, the events of both runs are placed by the series of exp(gap x rates), which
ends because only so many are lost. All terms are positive, so that what is tiny is as exact as what is not.

Times are 64-bit codes that sort as the instants do; lengths are taken of what the codes stand for.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from anabranch.relate.kernel.classes import Classes
from anabranch.relate.kernel.gaps import length_between, rates_of_ragged_run, rates_of_run
from anabranch.relate.kernel.marks import CLOSES, EVENT, OPENS, Entities

I8 = npt.NDArray[np.int8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


@njit(cache=True)
def relate_pairs(
    pairs: I64, first: Entities, second: Entities, classes: Classes, hits_needed: int, doubles: bool
) -> tuple[F64, F64]:
    """For each pair, the probability that enough segments of the first entity are hits, and that fewer are.

    Parameters
    ----------
    pairs : (n, 2) numbers of entities in `first` and `second`
    """
    room = longest = 0
    for k in range(len(pairs)):
        longest_a, longest_b = first.longest[pairs[k, 0]], second.longest[pairs[k, 1]]
        room = max(room, (longest_a + 1) * (longest_b + 1))
        longest = max(longest, longest_a, longest_b)
    n_classes, n_counts = np.int64(classes.count.max()), hits_needed + 1
    weights = np.zeros((3, room * n_classes * n_counts))
    rates = np.zeros((4, longest + 1))
    enough, fewer = np.empty(len(pairs)), np.empty(len(pairs))
    for k in range(len(pairs)):
        a, b = pairs[k]
        shape = (first.longest[a] + 1, second.longest[b] + 1, n_classes, n_counts)
        size = shape[0] * shape[1] * shape[2] * shape[3]
        f = weights[0, :size].reshape(shape)
        term = weights[1, :size].reshape(shape)
        more = weights[2, :size].reshape(shape)
        enough[k], fewer[k] = _relate(a, b, first, second, classes, hits_needed, doubles, f, term, more, rates)
    return enough, fewer


@njit(cache=True)
def _relate(
    a: int, b: int, first: Entities, second: Entities, classes: Classes, needed: int, doubles: bool,
    f: F64, term: F64, more: F64, rates: F64,
) -> tuple[float, float]:  # fmt: skip
    """One pair. No count below `low` or above `high` has any weight; who has enough hits is done with."""
    # Taken out of their tuples once: to Numba, taking an array is a count of references.
    first_event, marks_a, lo_a, hi_a, t_a, what_of_a, lost_a, _ = first
    second_event, marks_b, lo_b, hi_b, t_b, what_of_b, lost_b, _ = second
    first_row, count, after, hit, hit_tie, begun, begun_tie = classes
    n_segments = (first_event[a + 1] - first_event[a]) // 2
    row = first_row[second_event[b + 1] - second_event[b]]
    mark_a, mark_b, end_a, end_b = marks_a[a], marks_b[b], marks_a[a + 1], marks_b[b + 1]
    i0 = j0 = open_a = open_b = reach_a = reach_b = low = high = 0
    enough, fewer = 0.0, 0.0
    f[:] = 0.0
    f[0, 0, 0, 0] = 1.0
    before = now = 0
    while low <= high:
        dead = needed - (n_segments - i0 // 2)
        if dead > low:  # so few that all segments to come are not enough
            fewer += _give_up(f, open_a, open_b, low, min(dead, high + 1))
            low = dead
            continue
        before, now = now, _earlier(mark_a, end_a, t_a, mark_b, end_b, t_b)
        if open_a + open_b > 0:
            x, y = first_event[a] + i0, second_event[b] + j0
            _fill_rates(rates, 0, lo_a, hi_a, x, open_a, t_a, what_of_a, mark_a, before, now, doubles)
            _fill_rates(rates, 2, lo_b, hi_b, y, open_b, t_b, what_of_b, mark_b, before, now, doubles)
            most = min(needed - 1, high + (i0 + open_a) // 2 - i0 // 2)
            reach, level = reach_a + reach_b, row + j0
            _place(f, term, more, open_a, open_b, reach, i0, level, count, after, hit, begun, low, most, rates)
            done, low, high = _settle(f, open_a, open_b, i0, level, count, low, most, rates)
            enough += done
            reach_a, reach_b = open_a, open_b
        what_a = what_b = 0
        if mark_a < end_a and t_a[mark_a] == now:
            what_a = what_of_a[mark_a]
            mark_a += 1
        if mark_b < end_b and t_b[mark_b] == now:
            what_b = what_of_b[mark_b]
            mark_b += 1
        if what_a & CLOSES:
            for j in range(open_b + 1):
                _move(f, open_a, j, 0, j, low, high)
            i0, open_a, reach_a = i0 + open_a, 0, 0
        if what_b & CLOSES:
            for i in range(open_a + 1):
                _move(f, i, open_b, i, 0, low, high)
            j0, open_b, reach_b = j0 + open_b, 0, 0
        if what_a & EVENT:
            if what_b & EVENT:
                done, low, high = _record_first(f, more, 0, i0, row + j0, begun_tie, hit_tie, count, low, high)
            else:
                done, low, high = _record_first(f, more, open_b, i0, row + j0, begun, hit, count, low, high)
            enough += done
            i0 += 1
        elif what_b & EVENT:
            _record_second(f, more, open_a, i0, row + j0, after, count, low, high)
        if what_b & EVENT:
            j0 += 1
        open_a = lost_a[mark_a - 1] if what_a & OPENS else open_a
        open_b = lost_b[mark_b - 1] if what_b & OPENS else open_b
    return enough, fewer


@njit(cache=True)
def _earlier(mark_a: int, end_a: int, t_a: I64, mark_b: int, end_b: int, t_b: I64) -> int:
    """The instant of the next mark."""
    if mark_b == end_b or (mark_a < end_a and t_a[mark_a] <= t_b[mark_b]):
        return t_a[mark_a]
    return t_b[mark_b]


@njit(cache=True)
def _move(f: F64, i: int, j: int, i_to: int, j_to: int, low: int, high: int) -> None:
    for q in range(f.shape[2]):
        for c in range(low, high + 1):
            f[i_to, j_to, q, c] = f[i, j, q, c]
            f[i, j, q, c] = 0.0


@njit(cache=True)
def _fill_rates(
    rates: F64, place: int, lo: I64, hi: I64, event: int, n_lost: int, t: I64, what: I8, mark: int,
    before: int, now: int, doubles: bool,
) -> None:  # fmt: skip
    """Write the weights of an entity's open run in the gap to two rows of `rates`; `mark` is the entity's next one."""
    if n_lost == 0:
        rates[place, 0], rates[place + 1, 0] = 0.0, 1.0
        return
    last = event + n_lost - 1
    if lo[event] == lo[last] and hi[event] == hi[last]:
        left, gap = length_between(before, hi[event], doubles), length_between(before, now, doubles)
        rates_of_run(n_lost, left, gap, rates, place)
        return
    end = mark
    while not what[end] & CLOSES:
        end += 1
    marks = t[mark - 1 : end + 1].copy() if t[mark] > now else t[mark : end + 1].copy()
    marks[0] = now
    rates_of_ragged_run(lo[event : last + 1], hi[event : last + 1], marks, before, doubles, rates, place)


@njit(cache=True)
def _place(
    f: F64, term: F64, more: F64, open_a: int, open_b: int, reach: int, i0: int, row: int,
    count: I32, after: I32, hit: I8, begun: I32, low: int, high: int, rates: F64,
) -> None:  # fmt: skip
    """Add to f what comes of it when events of the open runs happen, in any number and order.

    Term n of the series has n of them placed. Only i + j from n to n + reach can have weight in it: `reach` is the
    most that had happened before.
    """
    top = f.shape[3] - 1
    for i in range(min(open_a, reach) + 1):
        for j in range(min(open_b, reach - i) + 1):
            for q in range(count[row + j] if (i0 + i) & 1 else 1):
                for c in range(low, high + 1):
                    term[i, j, q, c] = f[i, j, q, c]
            term[i, j, 0, top] = 0.0
    for n in range(1, open_a + open_b + 1):
        for i in range(max(0, n - open_b), min(open_a, n + reach) + 1):
            weight_a = rates[0, i - 1] / n if i > 0 else 0.0
            is_open = (i0 + i) & 1
            for j in range(max(0, n - i), min(open_b, n + reach - i) + 1):
                weight_b = rates[2, j - 1] / n if j > 0 else 0.0
                n_classes = count[row + j] if is_open else 1
                for q in range(n_classes):
                    for c in range(low, high + 1):
                        more[i, j, q, c] = 0.0
                more[i, j, 0, top] = 0.0
                if weight_a > 0.0:
                    if is_open:
                        _add(more, i, j, begun[row + j], weight_a, term, i - 1, j, 0, low, high)
                    else:
                        _close(more, i, j, weight_a, term, i - 1, j, row + j, hit, count, low, high)
                    more[i, j, 0, top] += weight_a * term[i - 1, j, 0, top]
                if weight_b > 0.0:
                    if is_open:
                        for q in range(count[row + j - 1]):
                            _add(more, i, j, after[row + j - 1, q], weight_b, term, i, j - 1, q, low, high)
                    else:
                        _add(more, i, j, 0, weight_b, term, i, j - 1, 0, low, high)
                    more[i, j, 0, top] += weight_b * term[i, j - 1, 0, top]
                f[i, j, 0, top] += more[i, j, 0, top]
                for q in range(n_classes):
                    _add(f, i, j, q, 1.0, more, i, j, q, low, high)
        term, more = more, term


@njit(cache=True, inline="always")
def _add(
    to: F64,
    i: int,
    j: int,
    q: int,
    factor: float,
    weights: F64,
    i_from: int,
    j_from: int,
    q_from: int,
    low: int,
    high: int,
) -> None:
    """Add the weights of one cell, for all counts, to those of another."""
    for c in range(low, high + 1):
        to[i, j, q, c] += factor * weights[i_from, j_from, q_from, c]


@njit(cache=True, inline="always")
def _close(
    to: F64,
    i: int,
    j: int,
    factor: float,
    weights: F64,
    i_from: int,
    j_from: int,
    row: int,
    hit: I8,
    count: I32,
    low: int,
    high: int,
) -> None:
    """Close the open segments of one cell: hits count one more. Who has enough is noted at the top."""
    for q in range(count[row]):
        if hit[row, q]:
            for c in range(high, low - 1, -1):
                to[i, j, 0, c + 1] += factor * weights[i_from, j_from, q, c]
        else:
            _add(to, i, j, 0, factor, weights, i_from, j_from, q, low, high)


@njit(cache=True)
def _settle(
    f: F64, open_a: int, open_b: int, i0: int, row: int, count: I32, low: int, high: int, rates: F64
) -> tuple[float, int, int]:
    """The gap is over: weights become probabilities.

    Gives the probability that enough hits were counted in it, and the least and the most that others have.
    """
    top = f.shape[3] - 1
    enough, least, most = 0.0, top, 0
    for i in range(open_a + 1):
        for j in range(open_b + 1):
            stay = rates[1, i] * rates[3, j]
            enough += stay * f[i, j, 0, top]
            f[i, j, 0, top] = 0.0
            for q in range(count[row + j] if (i0 + i) & 1 else 1):
                for c in range(low, high + 1):
                    f[i, j, q, c] *= stay
                    if f[i, j, q, c] > 0.0:
                        least, most = min(least, c), max(most, c)
    return enough, least, most


@njit(cache=True)
def _record_first(
    f: F64, more: F64, open_b: int, i0: int, row: int, begun: I32, hit: I8, count: I32, low: int, high: int
) -> tuple[float, int, int]:
    """An event of the first entity: its segment opens or closes.

    Gives the probability that this hit was enough, and the least and the most that others have.
    """
    if not i0 & 1:
        for j in range(open_b + 1):
            if begun[row + j] > 0:
                for c in range(low, high + 1):
                    f[0, j, begun[row + j], c] = f[0, j, 0, c]
                    f[0, j, 0, c] = 0.0
        return 0.0, low, high
    top = f.shape[3] - 1
    enough, least, most = 0.0, top, 0
    for j in range(open_b + 1):
        for q in range(count[row + j]):
            for c in range(low, high + 1):
                more[0, 0, q, c] = f[0, j, q, c]
                f[0, j, q, c] = 0.0
        _close(f, 0, j, 1.0, more, 0, 0, row + j, hit, count, low, high)
        enough += f[0, j, 0, top]
        f[0, j, 0, top] = 0.0
        for c in range(low, min(high + 1, top - 1) + 1):
            if f[0, j, 0, c] > 0.0:
                least, most = min(least, c), max(most, c)
    return enough, least, most


@njit(cache=True)
def _record_second(
    f: F64, more: F64, open_a: int, i0: int, row: int, after: I32, count: I32, low: int, high: int
) -> None:
    """An event of the second entity alone: there is less that the open segments of the first can become."""
    for i in range(open_a + 1):
        if (i0 + i) & 1:
            for q in range(count[row]):
                for c in range(low, high + 1):
                    more[0, 0, q, c] = f[i, 0, q, c]
                    f[i, 0, q, c] = 0.0
            for q in range(count[row]):
                _add(f, i, 0, after[row, q], 1.0, more, 0, 0, q, low, high)


@njit(cache=True)
def _give_up(f: F64, open_a: int, open_b: int, low: int, dead: int) -> float:
    """The probability of counts that can no longer be enough, which are taken out."""
    fewer = 0.0
    for i in range(open_a + 1):
        for j in range(open_b + 1):
            for q in range(f.shape[2]):
                for c in range(low, dead):
                    fewer += f[i, j, q, c]
                    f[i, j, q, c] = 0.0
    return fewer
