"""The exact probability that a quantified relation holds between two entities, for any number of lost events.

An *entity* is a sequence of point events: the first opens a segment, the second closes it, and so on. A recorded event
has an instant. Consecutive lost events form a *run*; the number of its events that have happened by an instant is
random.

The sweep visits the instants at which something is known about either entity. Between two of them it keeps the weights
f[i, j, q, c]: the probability that i events of the first entity's open run and j of the second's have happened, that
the open segment of the first entity has *class* q (its possible outcomes, see `segment_classes`), and that c of its
closed segments are *hits*. Within a gap, the events of both runs are placed by the series of exp(gap x rates), which is
finite because the number of lost events is. All terms are positive, so tiny probabilities have the same relative
precision as large ones.

Times are 64-bit codes in the order of the instants; lengths are computed from the decoded times.
"""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I8, I32, I64
from anabranch.compiled import compiled, compiled_inline
from anabranch.relate.kernel.classes import Classes
from anabranch.relate.kernel.gaps import length_between, rates_of_ragged_run, rates_of_run, volumes_of_run
from anabranch.relate.kernel.marks import CLOSES, EVENT, OPENS, Entities, next_instant

#: Weights are w[layer, i, j, q, c]. Layer CARRIED is kept from gap to gap, the other two hold the terms of a series.
#: The last count c is the number of hits that are needed; it has weight only within a gap, and no class.
CARRIED = 0


@compiled
def relate_pairs(
    pairs: I64, first: Entities, second: Entities, classes: Classes, floor: int, needed: int, doubles: bool
) -> F64:
    """For each pair, the probabilities of the numbers of segments of the first entity that are hits.

    Parameters
    ----------
    pairs : (n, 2) numbers of entities in `first` and `second`
    floor, needed : the first column is for `floor` or fewer hits, the last one for `needed` or more
    """
    room = longest = 0
    for k in range(len(pairs)):
        longest_a, longest_b = first.longest[pairs[k, 0]], second.longest[pairs[k, 1]]
        room = max(room, (longest_a + 1) * (longest_b + 1))
        longest = max(longest, longest_a, longest_b)
    n_classes, n_counts = np.int64(classes.count.max()), needed + 1
    weights = np.zeros(3 * room * n_classes * n_counts)
    rates = np.zeros((4, longest + 1))
    volumes = np.zeros((2, 2 * longest + 2, longest + 1))
    counts = np.zeros((len(pairs), needed - floor + 1))
    for k in range(len(pairs)):
        a, b = pairs[k]
        shape = (3, first.longest[a] + 1, second.longest[b] + 1, n_classes, n_counts)
        size = 3 * shape[1] * shape[2] * shape[3] * shape[4]
        w = weights[:size].reshape(shape)
        _relate(a, b, first, second, classes, classes.of_pair[k], doubles, w, rates, volumes, counts[k])
    return counts


@compiled
def _relate(
    a: int, b: int, first: Entities, second: Entities, classes: Classes, table: int, doubles: bool,
    w: F64, rates: F64, volumes: F64, counts: F64,
) -> None:  # fmt: skip
    """Write the probabilities of one pair to `counts`; `table` is the index of the table of its first segment.

    i0 and j0 are the numbers of events before the open runs of entities a and b. `open` is the length of an open run,
    of which `sure` events have certainly happened and `reach` can have happened; `ragged` says whether its windows
    differ. Only counts from `low` to `high` have weight; the weight of enough hits is added to `counts` at once.
    """
    # Unpacked once, because Numba counts a reference for each access to an array in a tuple.
    first_event, marks_a, lo_a, hi_a, t_a, flags_of_a, lost_a, _ = first
    second_event, marks_b, lo_b, hi_b, t_b, flags_of_b, lost_b, _ = second
    first_row, _, step, count, after, hit, hit_tie, begun, begun_tie = classes
    n_segments = (first_event[a + 1] - first_event[a]) // 2
    rows = first_row[table : table + step * (n_segments - 1) + 1]
    needed = w.shape[4] - 1
    floor = needed - (len(counts) - 1)
    mark_a, mark_b, end_a, end_b = marks_a[a], marks_b[b], marks_a[a + 1], marks_b[b + 1]
    i0 = j0 = open_a = open_b = reach_a = reach_b = sure_a = sure_b = low = high = 0
    ragged_a = ragged_b = False
    w[CARRIED] = 0.0
    w[CARRIED, 0, 0, 0, 0] = 1.0
    before = now = 0
    while low <= high and (mark_a < end_a or mark_b < end_b):
        dead = floor + 1 - (n_segments - i0 // 2)
        if dead > low:  # counts below `dead` cannot exceed `floor` with all later segments
            _remove(w, open_a, open_b, low, min(dead, high + 1), floor, counts)
            low = dead
            continue
        before, now = now, next_instant(mark_a, end_a, t_a, mark_b, end_b, t_b)
        if open_a + open_b > 0:
            gap, x, y = length_between(before, now, doubles), first_event[a] + i0, second_event[b] + j0
            if ragged_a:
                _rates_of_ragged_run(rates, 0, lo_a, hi_a, x, open_a, t_a, mark_a, volumes, before, now, doubles)
            else:
                rates_of_run(open_a, length_between(before, hi_a[x], doubles) if open_a else 1.0, gap, rates, 0)
            if ragged_b:
                _rates_of_ragged_run(rates, 2, lo_b, hi_b, y, open_b, t_b, mark_b, volumes, before, now, doubles)
            else:
                rates_of_run(open_b, length_between(before, hi_b[y], doubles) if open_b else 1.0, gap, rates, 2)
            # In a run whose windows differ, some events have certainly happened, and some cannot have happened yet.
            while ragged_a and hi_a[x + sure_a] <= before:
                sure_a += 1
            while ragged_b and hi_b[y + sure_b] <= before:
                sure_b += 1
            reach = reach_a - sure_a + reach_b - sure_b
            reach_a, reach_b = open_a, open_b
            while ragged_a and lo_a[x + reach_a - 1] >= now:
                reach_a -= 1
            while ragged_b and lo_b[y + reach_b - 1] >= now:
                reach_b -= 1
            most = min(needed - 1, high + (i0 + reach_a) // 2 - (i0 + sure_a) // 2)
            _series(
                w, sure_a, sure_b, reach_a, reach_b, reach, i0, j0, rows, step, count, after, hit, begun, low, most,
                rates,
            )  # fmt: skip
            done, low, high = _end_gap(w, sure_a, sure_b, reach_a, reach_b, i0, j0, rows, step, count, low, most, rates)
            counts[-1] += done
        flags_a = flags_b = 0
        if mark_a < end_a and t_a[mark_a] == now:
            flags_a = flags_of_a[mark_a]
            mark_a += 1
        if mark_b < end_b and t_b[mark_b] == now:
            flags_b = flags_of_b[mark_b]
            mark_b += 1
        if flags_a & CLOSES:
            for j in range(open_b + 1):
                _move(w, open_a, j, 0, j, low, high)
            i0, open_a, reach_a, sure_a, ragged_a = i0 + open_a, 0, 0, 0, False
        if flags_b & CLOSES:
            for i in range(open_a + 1):
                _move(w, i, open_b, i, 0, low, high)
            j0, open_b, reach_b, sure_b, ragged_b = j0 + open_b, 0, 0, 0, False
        if flags_a & EVENT:
            row = rows[step * (i0 >> 1)] + j0
            if flags_b & EVENT:
                done, low, high = _record_first(w, 0, i0, row, begun_tie, hit_tie, count, low, high)
            else:
                done, low, high = _record_first(w, open_b, i0, row, begun, hit, count, low, high)
            counts[-1] += done
            i0 += 1
        elif flags_b & EVENT:
            _record_second(w, open_a, i0, j0, rows, step, after, count, low, high)
        if flags_b & EVENT:
            j0 += 1
        if flags_a & OPENS:
            open_a = lost_a[mark_a - 1]
            ragged_a = _differ(lo_a, hi_a, first_event[a] + i0, open_a)
            if ragged_a:
                _write_volumes(volumes, 0, lo_a, hi_a, first_event[a] + i0, open_a, t_a, flags_of_a, mark_a, doubles)
        if flags_b & OPENS:
            open_b = lost_b[mark_b - 1]
            ragged_b = _differ(lo_b, hi_b, second_event[b] + j0, open_b)
            if ragged_b:
                _write_volumes(volumes, 2, lo_b, hi_b, second_event[b] + j0, open_b, t_b, flags_of_b, mark_b, doubles)
    _remove(w, open_a, open_b, low, high + 1, floor, counts)


@compiled_inline
def _move(w: F64, i: int, j: int, i_to: int, j_to: int, low: int, high: int) -> None:
    for q in range(w.shape[3]):
        for c in range(low, high + 1):
            w[CARRIED, i_to, j_to, q, c] = w[CARRIED, i, j, q, c]
            w[CARRIED, i, j, q, c] = 0.0


@compiled_inline
def _differ(lo: I64, hi: I64, event: int, n_lost: int) -> bool:
    """Whether the windows of a run differ; they do not decrease, so the first and the last one suffice."""
    last = event + n_lost - 1
    return lo[event] != lo[last] or hi[event] != hi[last]


@compiled
def _write_volumes(
    volumes: F64, row: int, lo: I64, hi: I64, event: int, n_lost: int, t: I64, flags: I8, mark: int, doubles: bool
) -> None:
    """Write the volumes of a run at all its marks; it opened at the mark before `mark`."""
    end, last = mark, event + n_lost
    while not flags[end] & CLOSES:
        end += 1
    volumes_of_run(lo[event:last], hi[event:last], t[mark - 1 : end + 1], doubles, volumes[row // 2])


@compiled
def _rates_of_ragged_run(
    rates: F64, row: int, lo: I64, hi: I64, event: int, n_lost: int, t: I64, mark: int, volumes: F64,
    before: int, now: int, doubles: bool,
) -> None:  # fmt: skip
    """Write the rates of an open run whose windows differ; `mark` is the next mark of the entity."""
    last = event + n_lost
    following = volumes[row // 2, mark - _first_mark(t, mark, lo[event]), : n_lost + 1]
    whole = length_between(lo[event], hi[last - 1], doubles)
    rates_of_ragged_run(lo[event:last], hi[event:last], following, t[mark], whole, before, now, doubles, rates, row)


@compiled_inline
def _first_mark(t: I64, mark: int, begins: int) -> int:
    """The mark at which a run opened, at the instant `begins`; it is before `mark`."""
    while t[mark - 1] > begins:
        mark -= 1
    return mark - 1


@compiled_inline
def _series(
    w: F64, sure_a: int, sure_b: int, most_a: int, most_b: int, reach: int, i0: int, j0: int, rows: I64, step: int,
    count: I32, after: I32, hit: I8, begun: I32, low: int, high: int, rates: F64,
) -> None:  # fmt: skip
    """Add the weights that result if events of the open runs happen in a gap, in any number and order.

    Counts of events go from `sure` to `most`. Term n of the series has n events placed. In it, only cells with i + j
    from n to n + reach (beyond the sure events) can have weight, where `reach` is the most that could have happened
    before. A cell is computed from the cells with one event less; `row` is that of the segment of the first entity that
    its last event opens or closes. The loops are written out because calls and views would cost more than the
    arithmetic.
    """
    top = w.shape[4] - 1
    old, new = 1, 2
    span_a, span_b, sure_both = most_a - sure_a, most_b - sure_b, sure_a + sure_b
    for i in range(sure_a, sure_a + min(span_a, reach) + 1):
        row = rows[step * (max(0, i0 + i - 1) >> 1)] + j0
        for j in range(sure_b, min(most_b, sure_both + reach - i) + 1):
            w[old, i, j, 0, top] = 0.0
            for q in range(count[row + j] if (i0 + i) & 1 else 1):
                for c in range(low, high + 1):
                    w[old, i, j, q, c] = w[CARRIED, i, j, q, c]
    for n in range(1, span_a + span_b + 1):
        for i in range(sure_a + max(0, n - span_b), min(most_a, sure_a + n + reach) + 1):
            by_a = rates[0, i - 1] / n if i > sure_a else 0.0
            is_open = (i0 + i) & 1
            row = rows[step * (max(0, i0 + i - 1) >> 1)] + j0
            for j in range(max(sure_b, sure_both + n - i), min(most_b, sure_both + n + reach - i) + 1):
                by_b = rates[2, j - 1] / n if j > sure_b else 0.0
                for q in range(count[row + j] if is_open else 1):
                    for c in range(low, high + 1):
                        w[new, i, j, q, c] = 0.0
                w[new, i, j, 0, top] = 0.0
                if by_a > 0.0 and is_open:  # the placed event of the first entity opens a segment
                    q = begun[row + j]
                    for c in range(low, high + 1):
                        w[new, i, j, q, c] = by_a * w[old, i - 1, j, 0, c]
                elif by_a > 0.0:  # it closes a segment: a hit is counted
                    for q in range(count[row + j]):
                        is_hit = hit[row + j, q]
                        for c in range(low, high + 1):
                            w[new, i, j, 0, c + is_hit] += by_a * w[old, i - 1, j, q, c]
                if by_a > 0.0:
                    w[new, i, j, 0, top] += by_a * w[old, i - 1, j, 0, top]
                if by_b > 0.0:
                    for q in range(count[row + j - 1] if is_open else 1):
                        next_class = after[row + j - 1, q] if is_open else 0
                        for c in range(low, high + 1):
                            w[new, i, j, next_class, c] += by_b * w[old, i, j - 1, q, c]
                    w[new, i, j, 0, top] += by_b * w[old, i, j - 1, 0, top]
                for q in range(count[row + j] if is_open else 1):
                    for c in range(low, high + 1):
                        w[CARRIED, i, j, q, c] += w[new, i, j, q, c]
                w[CARRIED, i, j, 0, top] += w[new, i, j, 0, top]
        old, new = new, old


@compiled_inline
def _end_gap(
    w: F64, sure_a: int, sure_b: int, most_a: int, most_b: int, i0: int, j0: int, rows: I64, step: int, count: I32,
    low: int, high: int, rates: F64,
) -> tuple[float, int, int]:  # fmt: skip
    """End a gap: multiply the weights by the probabilities that no more events are in it.

    Returns the probability that there were enough hits in the gap, and the smallest and largest other count.
    """
    top = w.shape[4] - 1
    enough, least, most = 0.0, top, 0
    for i in range(sure_a, most_a + 1):
        row = rows[step * (max(0, i0 + i - 1) >> 1)] + j0
        for j in range(sure_b, most_b + 1):
            stay = rates[1, i] * rates[3, j]
            enough += stay * w[CARRIED, i, j, 0, top]
            w[CARRIED, i, j, 0, top] = 0.0
            for q in range(count[row + j] if (i0 + i) & 1 else 1):
                for c in range(low, high + 1):
                    w[CARRIED, i, j, q, c] *= stay
                    if w[CARRIED, i, j, q, c] > 0.0:
                        least, most = min(least, c), max(most, c)
    return enough, least, most


@compiled_inline
def _record_first(
    w: F64, open_b: int, i0: int, row: int, begun: I32, hit: I8, count: I32, low: int, high: int
) -> tuple[float, int, int]:
    """Process a recorded event of the first entity: its segment opens or closes.

    Returns the probability that there are now enough hits, and the smallest and largest other count.
    """
    top = w.shape[4] - 1
    enough, least, most = 0.0, top, 0
    for j in range(open_b + 1):
        if not i0 & 1:
            q = begun[row + j]
            for c in range(low, high + 1):
                weight = w[CARRIED, 0, j, 0, c]
                w[CARRIED, 0, j, 0, c] = 0.0
                w[CARRIED, 0, j, q, c] = weight
            continue
        for q in range(count[row + j]):
            for c in range(low, high + 1):
                w[1, 0, 0, q, c] = w[CARRIED, 0, j, q, c]
                w[CARRIED, 0, j, q, c] = 0.0
        for q in range(count[row + j]):
            for c in range(low, high + 1):
                w[CARRIED, 0, j, 0, c + hit[row + j, q]] += w[1, 0, 0, q, c]
        enough += w[CARRIED, 0, j, 0, top]
        w[CARRIED, 0, j, 0, top] = 0.0
        for c in range(low, min(high + 1, top - 1) + 1):
            if w[CARRIED, 0, j, 0, c] > 0.0:
                least, most = min(least, c), max(most, c)
    return (enough, least, most) if i0 & 1 else (0.0, low, high)


@compiled_inline
def _record_second(
    w: F64, open_a: int, i0: int, j0: int, rows: I64, step: int, after: I32, count: I32, low: int, high: int
) -> None:
    """Process a recorded event of the second entity only: open segments of the first change their class."""
    for i in range(open_a + 1):
        if (i0 + i) & 1:
            row = rows[step * ((i0 + i) >> 1)] + j0
            for q in range(count[row]):
                for c in range(low, high + 1):
                    w[1, 0, 0, q, c] = w[CARRIED, i, 0, q, c]
                    w[CARRIED, i, 0, q, c] = 0.0
            for q in range(count[row]):
                for c in range(low, high + 1):
                    w[CARRIED, i, 0, after[row, q], c] += w[1, 0, 0, q, c]


@compiled_inline
def _remove(w: F64, open_a: int, open_b: int, low: int, end: int, floor: int, counts: F64) -> None:
    """Remove the weights of the counts from `low` to below `end`, and add them to `counts`."""
    for i in range(open_a + 1):
        for j in range(open_b + 1):
            for q in range(w.shape[3]):
                for c in range(low, end):
                    counts[max(0, c - floor)] += w[CARRIED, i, j, q, c]
                    w[CARRIED, i, j, q, c] = 0.0
