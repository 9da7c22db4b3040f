"""The probability that a quantified relation holds between two entities whose segments and gaps have distributions.

Between two recorded events, an entity goes through a *chain* of states: one for each lost event that has happened, and
for ERLANG one for each phase. Placements of the lost events have the density exp(-(sum of the rate of each state x the
time in it)), up to a constant. The sweep keeps a weight for each (state of the first entity's chain, state of the
second's, class of the open segment, hits so far). From one known instant to the next, the weights are multiplied by the
exponential of a sparse matrix: every state has a rate at which its weight decays, and at most one move of each entity.
The weights are relative; their sum over all placements normalises the result at the end.

All terms are sums of positive numbers, so nothing cancels. Only differences of rates matter, and the smallest is
subtracted. If rates x time is large, the exponential is computed by squaring, which takes the logarithm of it in steps.
"""

from __future__ import annotations

from math import ceil, exp, log2
from typing import Any, NamedTuple

import numpy as np

from anabranch.arrays import F64, I8, I32, I64
from anabranch.compiled import assign, compiled
from anabranch.relate.kernel.classes import Classes
from anabranch.relate.kernel.gaps import length_between
from anabranch.relate.kernel.marks import CLOSES, EVENT, OPENS, next_instant

#: Weights below this share of the largest are left out.
_NO_WEIGHT = 1e-60

#: A gap is crossed in steps; the first one has this many expected moves.
_FIRST_STEP = 50.0

#: A series is expanded over at most this many expected moves; its largest term is then far below the largest double.
_LONGEST_SERIES = 200.0

#: Terms below this share of their sum are left out.
_NEGLIGIBLE = 1e-18

#: The most states for which the exponential is computed as a dense matrix.
_MOST_DENSE = 600


class Chains(NamedTuple):
    """The events, marks and distributions of many entities.

    Attributes
    ----------
    events, marks, lo, hi, t, flags, lost : as in `Entities`
    longest : the most moves of a chain of each entity
    phases, rates : of the state that each event begins: the number of phases, and the rate of a phase
    """

    events: Any
    marks: Any
    lo: Any
    hi: Any
    t: Any
    flags: Any
    lost: Any
    longest: Any
    phases: Any
    rates: Any


class _Run(NamedTuple):
    """The chain of an open run, with room for the longest one.

    `happened` is the number of lost events that have happened in each state, `decay` its rate, and `intensity` that of
    the move to the next state, whose constants cancel.
    """

    happened: Any
    decay: Any
    intensity: Any


class _Sparse(NamedTuple):
    """A matrix with at most two moves per state: the decay of each state, and the target and rate of its moves."""

    decay: Any
    target: Any
    rate: Any


@compiled
def relate_chains(
    pairs: I64, first: Chains, second: Chains, classes: Classes, floor: int, needed: int, doubles: bool
) -> F64:
    """For each pair, the probabilities of the numbers of segments of the first entity that are hits.

    Parameters
    ----------
    pairs : (n, 2) numbers of entities in `first` and `second`
    floor, needed : the first column is for `floor` or fewer hits, the last one for `needed` or more
    """
    room = most_a = most_b = 0
    for k in range(len(pairs)):
        longest_a, longest_b = first.longest[pairs[k, 0]], second.longest[pairs[k, 1]]
        room = max(room, (longest_a + 1) * (longest_b + 1))
        most_a, most_b = max(most_a, longest_a), max(most_b, longest_b)
    n_classes, n_counts = np.int64(classes.count.max()), needed + 1
    size = room * n_classes * n_counts
    weights, run_a, run_b = np.zeros(size), _new_run(most_a), _new_run(most_b)
    sparse = _Sparse(np.zeros(size), np.zeros((size, 2), np.int64), np.zeros((size, 2)))
    vectors = np.zeros((3, size))
    counts = np.zeros((len(pairs), needed - floor + 1))
    for k in range(len(pairs)):
        a, b = pairs[k]
        shape = (first.longest[a] + 1, second.longest[b] + 1, n_classes, n_counts)
        w = weights[: shape[0] * shape[1] * shape[2] * shape[3]].reshape(shape)
        table = classes.of_pair[k]
        _relate(a, b, first, second, classes, table, doubles, w, run_a, run_b, sparse, vectors, counts[k])
    return counts


@compiled
def _new_run(most: int) -> _Run:
    return _Run(np.zeros(most + 1, np.int64), np.zeros(most + 1), np.zeros(most + 1))


@compiled
def _relate(
    a: int, b: int, first: Chains, second: Chains, classes: Classes, table: int, doubles: bool,
    w: F64, run_a: _Run, run_b: _Run, sparse: _Sparse, vectors: F64, counts: F64,
) -> None:  # fmt: skip
    """Write the probabilities of one pair to `counts`; `table` is the index of the table of its first segment.

    i0 and j0 are the numbers of events before the open runs, `moves` the numbers of moves of their chains.
    """
    n_segments = (first.events[a + 1] - first.events[a]) // 2
    rows = classes.first_row[table : table + classes.step * (n_segments - 1) + 1]
    mark_a, mark_b, end_a, end_b = first.marks[a], second.marks[b], first.marks[a + 1], second.marks[b + 1]
    i0 = j0 = moves_a = moves_b = before = now = 0
    needed = w.shape[3] - 1
    floor = needed - (len(counts) - 1)
    _close_run(run_a)
    _close_run(run_b)
    w[:] = 0.0
    w[0, 0, 0, 0] = 1.0
    while mark_a < end_a or mark_b < end_b:
        least, most = _counts(w, moves_a, moves_b)
        if least == needed or most + n_segments - i0 // 2 <= floor:
            break  # later events cannot change the answer
        before, now = now, next_instant(mark_a, end_a, first.t, mark_b, end_b, second.t)
        if moves_a + moves_b > 0:
            x, y = first.events[a] + i0, second.events[b] + j0
            reach_a = _possible(run_a, moves_a, first.lo, first.hi, x, before, now)
            reach_b = _possible(run_b, moves_b, second.lo, second.hi, y, before, now)
            gap = length_between(before, now, doubles)
            _cross(w, reach_a, reach_b, run_a, run_b, i0, j0, rows, classes, gap, sparse, vectors)
        flags_a = flags_b = 0
        if mark_a < end_a and first.t[mark_a] == now:
            flags_a = first.flags[mark_a]
            mark_a += 1
        if mark_b < end_b and second.t[mark_b] == now:
            flags_b = second.flags[mark_b]
            mark_b += 1
        if flags_a & CLOSES:
            for j in range(moves_b + 1):
                _keep_last(w[: moves_a + 1, j])
            i0, moves_a = i0 + run_a.happened[moves_a], 0
            _close_run(run_a)
        if flags_b & CLOSES:
            for i in range(moves_a + 1):
                _keep_last(w[i, : moves_b + 1])
            j0, moves_b = j0 + run_b.happened[moves_b], 0
            _close_run(run_b)
        tie = flags_a & flags_b & EVENT
        if flags_a & EVENT:
            begun, hit = (classes.begun_tie, classes.hit_tie) if tie else (classes.begun, classes.hit)
            level = _level(rows, classes.step, i0, j0)
            _record_first(w, moves_b, run_b.happened, i0 & 1, level, begun, hit, classes.count)
            i0 += 1
        elif flags_b & EVENT:
            _record_second(w, moves_a, run_a.happened, i0, j0, rows, classes)
        if flags_b & EVENT:
            j0 += 1
        if flags_a & OPENS:
            moves_a = _open_run(run_a, first, a, i0, mark_a - 1, doubles)
        if flags_b & OPENS:
            moves_b = _open_run(run_b, second, b, j0, mark_b - 1, doubles)
    for i in range(moves_a + 1):
        for j in range(moves_b + 1):
            for q in range(w.shape[2]):
                for c in range(needed + 1):
                    counts[max(0, c - floor)] += w[i, j, q, c]
    total = counts.sum()
    for c in range(len(counts)):
        counts[c] /= total


@compiled
def _level(rows: I64, step: int, n_before: int, j0: int) -> int:
    """The row after j0 events of the second entity, in the table of a segment of the first entity.

    It is the segment that is open after `n_before` events, or else the next one; after the last one, that one.
    """
    return rows[min(len(rows) - 1, step * (n_before >> 1))] + j0


@compiled
def _counts(w: F64, moves_a: int, moves_b: int) -> tuple[int, int]:
    """The smallest and the largest number of hits that have weight."""
    least, most = w.shape[3] - 1, 0
    for i in range(moves_a + 1):
        for j in range(moves_b + 1):
            for q in range(w.shape[2]):
                for c in range(w.shape[3]):
                    if w[i, j, q, c] > 0.0:
                        least, most = min(least, c), max(most, c)
    return least, most


# ---------------------------------------------------------------- chains


@compiled
def _close_run(run: _Run) -> None:
    """Make the chain of an entity without lost events: one state, which does not change."""
    run.happened[0] = 0
    run.decay[0] = 0.0


@compiled
def _open_run(run: _Run, chains: Chains, entity: int, n_before: int, mark: int, doubles: bool) -> int:
    """Write the chain of the run that opens at a mark, after `n_before` events; returns the number of its moves.

    Before the first event of an entity the rate is 0, and so it is after the last one.
    """
    begins, n_lost = chains.events[entity], np.int64(chains.lost[mark])
    moves = -1
    for happened in range(n_lost + 1):
        event = begins + n_before + happened - 1  # the event that begins this state
        phases = chains.phases[event] if event >= begins else 1
        for _ in range(phases):
            moves += 1
            run.happened[moves] = happened
            run.decay[moves] = chains.rates[event] if event >= begins else 0.0
    end = mark + 1
    while not chains.flags[end] & CLOSES:
        end += 1
    lowest, least = run.decay[: moves + 1].min(), moves / length_between(chains.t[mark], chains.t[end], doubles)
    for m in range(moves):
        run.intensity[m] = max(run.decay[m] - lowest, least)
    return moves


@compiled
def _possible(run: _Run, moves: int, lo: I64, hi: I64, event: int, before: int, now: int) -> tuple[int, int]:
    """The first state that is possible from `before` on, and the last one that is possible until `now`.

    The windows of events do not decrease. So the events whose windows have ended have happened, and those whose windows
    have not begun have not.
    """
    first, last = 0, moves
    for m in range(moves):
        if run.happened[m + 1] > run.happened[m]:
            x = event + run.happened[m]
            if hi[x] <= before:
                first = m + 1
            if lo[x] >= now:
                last = m
                break
    return first, last


@compiled
def _keep_last(weights: F64) -> None:
    """Move the weights of the last state of a chain to the first state of the next one."""
    last = len(weights) - 1
    for q in range(weights.shape[1]):
        for c in range(weights.shape[2]):
            weight = weights[last, q, c]
            for i in range(last + 1):
                weights[i, q, c] = 0.0
            weights[0, q, c] = weight


# ---------------------------------------------------------------- from one instant to the next


@compiled
def _cross(
    w: F64, reach_a: tuple[int, int], reach_b: tuple[int, int], run_a: _Run, run_b: _Run, i0: int, j0: int,
    rows: I64, classes: Classes, gap: float, sparse: _Sparse, vectors: F64,
) -> None:  # fmt: skip
    """Move the weights of all possible states over a gap.

    The gap is crossed in steps, each twice as long as the one before: states that decay fast have soon no weight left.
    """
    step = 0.0
    while gap > 0.0:
        from_a, from_b = _with_weight(w, reach_a, reach_b)
        n = _copy(w, from_a, from_b, run_a, run_b, i0, j0, rows, classes, vectors[0], 0)
        _write_moves(w.shape[3], from_a, from_b, run_a, run_b, i0, j0, rows, classes, sparse)
        fastest, most = _speeds(sparse, n)
        step = max(2.0 * step, _FIRST_STEP / (fastest + most)) if fastest + most > 0.0 else gap
        step = step if 2.0 * step < gap else gap
        _multiply(sparse, n, from_a[1] - from_a[0] + from_b[1] - from_b[0], step, fastest, most, vectors)
        w[:] = 0.0
        _copy(w, from_a, from_b, run_a, run_b, i0, j0, rows, classes, vectors[0], n)
        gap -= step


@compiled
def _with_weight(w: F64, reach_a: tuple[int, int], reach_b: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """The possible states without the first ones that have no weight left."""
    (first_a, last_a), (first_b, last_b) = reach_a, reach_b
    least = 0.0
    for i in range(first_a, last_a + 1):
        for j in range(first_b, last_b + 1):
            least = max(least, _NO_WEIGHT * w[i, j].max())
    while first_a < last_a and w[first_a, first_b : last_b + 1].max() <= least:
        first_a += 1
    while first_b < last_b and w[first_a : last_a + 1, first_b].max() <= least:
        first_b += 1
    return (first_a, last_a), (first_b, last_b)


@compiled
def _copy(
    w: F64, reach_a: tuple[int, int], reach_b: tuple[int, int], run_a: _Run, run_b: _Run, i0: int, j0: int,
    rows: I64, classes: Classes, x: F64, back: int,
) -> int:  # fmt: skip
    """Copy the weights of the possible states to a vector, and return their number n.

    With `back` = n, copy them back, relative to the largest.
    """
    n, scale = 0, x[:back].max() if back else 1.0
    for i in range(reach_a[0], reach_a[1] + 1):
        inside = (i0 + run_a.happened[i]) & 1
        level = _level(rows, classes.step, i0 + run_a.happened[i], j0)
        for j in range(reach_b[0], reach_b[1] + 1):
            for q in range(classes.count[level + run_b.happened[j]] if inside else 1):
                for c in range(w.shape[3]):
                    if back:
                        w[i, j, q, c] = x[n] / scale
                    else:
                        x[n] = w[i, j, q, c]
                    n += 1
    return n


@compiled
def _write_moves(
    n_counts: int, reach_a: tuple[int, int], reach_b: tuple[int, int], run_a: _Run, run_b: _Run, i0: int, j0: int,
    rows: I64, classes: Classes, sparse: _Sparse,
) -> None:  # fmt: skip
    """Write the matrix of all possible states, in the order of `_cross`."""
    (first_a, last_a), (first_b, last_b) = reach_a, reach_b
    n = 0
    for i in range(first_a, last_a + 1):
        inside = (i0 + run_a.happened[i]) & 1
        level = _level(rows, classes.step, i0 + run_a.happened[i], j0)
        row = 0  # the number of states with this i
        for j in range(first_b, last_b + 1):
            row += n_counts * (classes.count[level + run_b.happened[j]] if inside else 1)
        next_a = n + row  # the first state with (i + 1, j)
        is_event_a = i < last_a and run_a.happened[i + 1] > run_a.happened[i]
        for j in range(first_b, last_b + 1):
            here = level + run_b.happened[j]
            n_classes = classes.count[here] if inside else 1
            is_event_b = j < last_b and run_b.happened[j + 1] > run_b.happened[j]
            for q in range(n_classes):
                for c in range(n_counts):
                    state = n + q * n_counts + c
                    sparse.decay[state] = run_a.decay[i] + run_b.decay[j]
                    q_to, c_to = q, c
                    if is_event_a and inside:
                        q_to, c_to = 0, min(c + classes.hit[here, q], n_counts - 1)
                    elif is_event_a:
                        q_to = classes.begun[here]
                    sparse.target[state, 0] = next_a + q_to * n_counts + c_to
                    sparse.rate[state, 0] = run_a.intensity[i] if i < last_a else 0.0
                    q_to = classes.after[here, q] if is_event_b and inside else q
                    sparse.target[state, 1] = n + n_classes * n_counts + q_to * n_counts + c
                    sparse.rate[state, 1] = run_b.intensity[j] if j < last_b else 0.0
            n += n_classes * n_counts
            if is_event_a:
                next_a += n_counts * (1 if inside else classes.count[here])
            else:
                next_a += n_counts * n_classes


@compiled
def _speeds(sparse: _Sparse, n: int) -> tuple[float, float]:
    """Subtract the smallest decay from all; returns the largest decay that is left, and the largest rate of moves."""
    slowest = sparse.decay[:n].min()
    fastest = most = 0.0
    for k in range(n):
        sparse.decay[k] -= slowest
        fastest = max(fastest, sparse.decay[k])
        most = max(most, sparse.rate[k, 0] + sparse.rate[k, 1])
    return fastest, most


@compiled
def _multiply(sparse: _Sparse, n: int, depth: int, gap: float, fastest: float, most: float, vectors: F64) -> None:
    """Multiply vector 0 by the exponential of gap x matrix, up to a constant; `depth` is the most moves in a row."""
    expected = (fastest + most) * gap
    halvings = max(0, int(ceil(log2(expected)))) if expected > 0.0 else 0
    by_series, by_squares = expected + 2.0 * depth + 40.0, 20.0 * n + n * n * halvings / 24.0
    if n <= _MOST_DENSE and by_squares < by_series:
        _multiply_by_squares(sparse, n, gap, fastest, halvings, vectors)
        return
    steps = int(ceil(expected / _LONGEST_SERIES)) if expected > _LONGEST_SERIES else 1
    for _ in range(steps):
        _series(sparse, n, gap / steps, fastest, 0, vectors)
        scale = vectors[0, :n].max()
        for k in range(n):
            vectors[0, k] /= scale


@compiled
def _series(sparse: _Sparse, n: int, gap: float, fastest: float, start: int, vectors: F64) -> None:
    """Multiply vector 0, whose states before `start` have no weight, by the exponential of gap x (matrix + fastest).

    Adding `fastest` to the diagonal makes all terms of the series positive.
    """
    decay, target, rate = sparse
    total, term, following = vectors[0], vectors[1], vectors[2]
    for k in range(start, n):
        term[k] = total[k]
        following[k] = 0.0
    order, more = 0, True
    while more:
        order += 1
        share, more = gap / order, False
        for k in range(start, n):
            if term[k] > 0.0:
                weight = share * term[k]
                following[k] += weight * (fastest - decay[k])
                if rate[k, 0] > 0.0:
                    following[target[k, 0]] += weight * rate[k, 0]
                if rate[k, 1] > 0.0:
                    following[target[k, 1]] += weight * rate[k, 1]
        for k in range(start, n):
            total[k] += following[k]
            more |= following[k] > _NEGLIGIBLE * total[k]
            term[k] = following[k]
            following[k] = 0.0


@compiled
def _multiply_by_squares(sparse: _Sparse, n: int, gap: float, fastest: float, halvings: int, vectors: F64) -> None:
    """The same by squaring the exponential for a short gap, as a dense triangular matrix.

    The diagonal is computed anew each time: squaring would double its relative error, and with it that of all others.
    """
    weights = vectors[0, :n].copy()
    matrix, square = np.zeros((n, n)), np.zeros((n, n))
    short = gap / 2.0**halvings
    for k in range(n):
        vectors[0, :n] = 0.0
        vectors[0, k] = 1.0
        _series(sparse, n, short, fastest, k, vectors)
        for m in range(k, n):
            matrix[k, m] = vectors[0, m] * exp(-fastest * short)
    for _ in range(halvings):
        short *= 2.0
        for k in range(n):
            square[k] = 0.0
            for m in range(k, n):
                if matrix[k, m] > 0.0:
                    for other in range(m, n):
                        square[k, other] += matrix[k, m] * matrix[m, other]
            square[k, k] = exp(-sparse.decay[k] * short)
        matrix, square = square, matrix
    vectors[0, :n] = 0.0
    for k in range(n):
        for m in range(k, n):
            vectors[0, m] += weights[k] * matrix[k, m]


# ---------------------------------------------------------------- recorded events


@compiled
def _record_first(
    w: F64, moves_b: int, happened_b: I64, inside: int, level: int, begun: I32, hit: I8, count: I32
) -> None:
    """Process a recorded event of the first entity: its segment opens, or closes and may be a hit."""
    closed = np.zeros(w.shape[3])
    for j in range(moves_b + 1):
        here = level + happened_b[j]
        closed[:] = 0.0
        for q in range(count[here] if inside else 1):
            for c in range(w.shape[3]):
                closed[min(c + hit[here, q], w.shape[3] - 1) if inside else c] += w[0, j, q, c]
                w[0, j, q, c] = 0.0
        assign(w[0, j, 0 if inside else begun[here]], closed)


@compiled
def _record_second(w: F64, moves_a: int, happened_a: I64, i0: int, j0: int, rows: I64, classes: Classes) -> None:
    """Process a recorded event of the second entity only: open segments of the first change their class."""
    changed = np.zeros((w.shape[2], w.shape[3]))
    for i in range(moves_a + 1):
        if (i0 + happened_a[i]) & 1:
            level = _level(rows, classes.step, i0 + happened_a[i], j0)
            changed[:] = 0.0
            for q in range(classes.count[level]):
                for c in range(w.shape[3]):
                    changed[classes.after[level, q], c] += w[i, 0, q, c]
            assign(w[i, 0], changed)
