"""Counts at how many instants of a span a chain is true: the automaton with a counter, for PER.

A state of the counting automaton is a pair (state of the query's automaton, count); the count stops at `times`. It is
read and reset between two instants by *marks*: rows that are inserted into a batch, with letters of their own. So the
counting automaton is data, and the kernels that update weights are used as they are:

- the letters of events count: (q, c) goes to (delta(q, s), min(c + accept(q, s), times));
- the j-th letter of a mark is accepted where the count is j, which makes the kernel return P(count = j). The last one
  also resets the count.

A mark must not change the hidden value of a Markov key. Where chains are single Markov keys, it therefore has one row
for each value that the key may have; otherwise one row of a certain event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from anabranch.arrays import BEGINNING, F64, I32, I64, Bools
from anabranch.errors import TooLarge
from anabranch.pattern import kernel
from anabranch.pattern.automaton import Tables
from anabranch.pattern.weights import Answers, Batch, SingleWeights, Weights

#: The span of instants that belong to no span.
OUTSIDE = BEGINNING

#: The most entries of the tables of a counting automaton.
MAX_ENTRIES = 1 << 24

#: From chains and times, in the order of a batch, to the number of the span of each; it increases with the time.
SpanOf = Callable[[I64, I64], I64]


@dataclass(frozen=True, slots=True)
class CountingTables:
    """The tables of a counting automaton; see the module.

    Attributes
    ----------
    delta, accept, union, ticks : as in `Tables`, for pairs (state, count); letters of marks are after those of events
    first_mark : the letter of a mark for count 1, or for `times` where marks have one letter
    n_marks : how many letters a mark has
    """

    delta: I32
    accept: Bools
    union: I32
    ticks: I32
    first_mark: int
    n_marks: int


def counting_tables(automaton: Tables, times: int, distribution: bool, only_new: bool = False) -> CountingTables:
    """The counting automaton of an automaton.

    Parameters
    ----------
    automaton : Tables
    times : where the count stops
    distribution : whether marks give P(count = j) for every j from 1 to `times`; otherwise for `times` alone
    only_new : whether an instant is accepted only where the count has not stopped
    """
    n_states, n_letters = automaton.delta.shape
    n_marks = times if distribution else 1
    counts = np.arange(times + 1)
    n_pairs = n_states * len(counts)
    if n_pairs * (n_letters + n_marks) > MAX_ENTRIES:
        raise TooLarge(f"counting to {times:,} needs an automaton of {n_pairs:,} states; use a smaller AT LEAST")
    true = automaton.accept[:, None, :]
    counted = np.minimum(counts[None, :, None] + true, times)
    of_events = automaton.delta[:, None, :] * len(counts) + counted
    accepted = true & (counts[None, :, None] < times) if only_new else np.repeat(true, len(counts), axis=1)
    read = np.arange(1, times + 1) if distribution else np.array([times])
    of_marks = np.repeat(np.arange(n_pairs)[:, None], n_marks, axis=1)
    of_marks[:, -1] -= np.tile(counts, n_states)
    accepted_marks = np.tile(counts[:, None] == read[None, :], (n_states, 1))
    delta = np.concatenate([of_events.reshape(n_pairs, n_letters), of_marks], axis=1)
    accept = np.concatenate([accepted.reshape(n_pairs, n_letters), accepted_marks], axis=1)
    ticks = (automaton.ticks[:, :, None] * len(counts) + counts).reshape(-1, n_pairs)
    return CountingTables(
        delta.astype(np.int32), accept, _with_marks(automaton.union, n_letters, n_marks), ticks.astype(np.int32),
        n_letters, n_marks,
    )  # fmt: skip


def _with_marks(union: I32, n_letters: int, n_marks: int) -> I32:
    """The unions of letters; a mark is alone at its instant, so it is united with the empty letter only."""
    if not union.size:
        return union
    marks = np.arange(n_letters, n_letters + n_marks)
    wider = np.zeros((n_letters + n_marks, n_letters + n_marks), np.int32)
    wider[:n_letters, :n_letters] = union
    wider[0, marks] = wider[marks, 0] = marks
    return wider


# ---------------------------------------------------------------- marks


@dataclass(frozen=True, slots=True)
class Marks:
    """Marks to insert into a batch: the chain of each, and the index in `batch.rows` before which it is inserted.

    They are sorted by chain and index.
    """

    chain: I64
    before: I64

    @classmethod
    def of(cls, chain: I64, before: I64) -> tuple[Marks, I64]:
        """Marks in any order, sorted; and the order."""
        order = np.lexsort((before, chain))
        return cls(chain[order], before[order]), order


@dataclass(frozen=True, slots=True)
class MarkedAnswers:
    """The answers of a batch with marks.

    Attributes
    ----------
    events : chain, time and probability of the instants that are accepted
    next_mark : for each of these answers, the number of marks before it in the batch
    marks : (marks, letters of a mark): the probability that each letter is accepted
    """

    events: Answers
    next_mark: I64
    marks: F64


def step_with_marks(weights: Weights, batch: Batch, tables: CountingTables, marks: Marks) -> MarkedAnswers:
    """Update the weights of the counting automaton by a batch with marks."""
    n_rows = len(batch.t)
    mark, letter, value = _mark_rows(weights, batch, tables.n_marks, marks)
    new_rows = n_rows + np.arange(len(mark), dtype=np.int64)
    rows = np.insert(batch.rows, marks.before[mark], new_rows)
    added = np.bincount(marks.chain[mark], minlength=len(batch.starts) - 1)
    starts = batch.starts + np.concatenate([[0], np.cumsum(added)])
    instant, firsts = _instants(batch, rows, starts, mark, letter)
    t = np.zeros(n_rows + len(mark), np.int64)
    t[rows] = instant
    with_marks = replace(
        batch,
        rows=rows,
        starts=starts,
        t=t,
        key=np.concatenate([batch.key, np.zeros(len(mark), np.int32)]),
        model=np.concatenate([batch.model, np.full(len(mark), kernel.CERTAIN, np.int32)]),
        prev=np.concatenate([batch.prev, value]),
        value=np.concatenate([batch.value, value]),
        p=np.concatenate([batch.p, np.ones(len(mark))]),
        letter=np.concatenate([batch.letter, (tables.first_mark + letter).astype(np.int32)]),
        # No time passes at a mark. A batch may have no rows, and marks all the same.
        clock=np.concatenate([batch.clock, np.zeros(len(mark) if len(tables.ticks) else 0, np.int32)]),
    )
    chains, instants, p = weights.step(with_marks, tables)
    answer_row = rows[firsts[instants]]
    of_mark = answer_row >= n_rows
    events = (chains[~of_mark], batch.t[answer_row[~of_mark]], p[~of_mark])
    read = np.zeros((len(marks.chain), tables.n_marks))
    which = answer_row[of_mark] - n_rows
    read[mark[which], letter[which]] = p[of_mark]
    # Rows are inserted in order, so each one is moved by those before it.
    mark_begins = marks.before + np.searchsorted(mark, np.arange(len(marks.chain)))
    return MarkedAnswers(events, np.searchsorted(mark_begins, firsts[instants[~of_mark]]), read)


def _instants(batch: Batch, rows: I64, starts: I64, mark: I64, letter: I64) -> tuple[I64, I64]:
    """The number of the instant of each row, and the index of the first row of each instant.

    The kernels only compare the times of successive rows, so instants can be numbered; each letter of a mark is one.
    """
    n_rows = len(batch.t)
    is_mark = rows >= n_rows
    of_mark = np.where(is_mark, rows - n_rows, 0)
    of_event = np.where(is_mark, 0, rows)
    time = np.where(is_mark, mark[of_mark] if len(mark) else 0, batch.t[of_event] if n_rows else 0)
    part = np.where(is_mark, letter[of_mark] if len(mark) else 0, -1)
    chain = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (np.diff(time) != 0) | (np.diff(part) != 0) | (np.diff(chain) != 0)
    return np.cumsum(begins) - 1, np.flatnonzero(begins)


def _mark_rows(weights: Weights, batch: Batch, n_letters: int, marks: Marks) -> tuple[I64, I64, I32]:
    """The rows of all marks, in order: the number of the mark, of its letter, and the value."""
    n_marks = len(marks.chain)
    mark, value = np.arange(n_marks), np.zeros(n_marks, np.int32)
    if isinstance(weights, SingleWeights):
        mark, value = _possible_values(weights, batch, marks)
    letter = np.repeat(np.arange(n_letters), len(mark))
    mark, value = np.tile(mark, n_letters), np.tile(value, n_letters)
    order = np.lexsort((value, letter, mark))
    return mark[order], letter[order], value[order]


def _possible_values(weights: SingleWeights, batch: Batch, marks: Marks) -> tuple[I64, I32]:
    """The values that the key of a chain may have at each mark, as pairs (mark, value).

    These are the values of the chain's last instant before the mark, or of its weights; and *nothing*.
    """
    has_rows = marks.before > batch.starts[marks.chain]
    times = batch.t[batch.rows]
    instant_begins = np.ones(len(times), np.bool_)
    instant_begins[1:] = np.diff(times) != 0
    instant_begins[batch.starts[:-1][np.diff(batch.starts) > 0]] = True
    begin_of = np.maximum.accumulate(np.where(instant_begins, np.arange(len(times)), 0))
    last_row = np.maximum(marks.before - 1, 0)
    rows_from = np.where(has_rows, begin_of[last_row] if len(times) else 0, 0)
    rows_to = np.where(has_rows, marks.before, 0)
    codes_from = np.where(has_rows, 0, weights.offsets[marks.chain])
    codes_to = np.where(has_rows, 0, weights.offsets[marks.chain + 1])
    mark_of_row, row = _ranges(rows_from, rows_to)
    mark_of_code, code = _ranges(codes_from, codes_to)
    n_marks = len(marks.chain)
    mark = np.concatenate([mark_of_row, mark_of_code, np.arange(n_marks)])
    value = np.concatenate([batch.value[batch.rows[row]], weights.codes[code], np.zeros(n_marks, np.int32)])
    pairs = np.unique(mark * batch.n_values + value)
    return pairs // batch.n_values, (pairs % batch.n_values).astype(np.int32)


def _ranges(starts: I64, ends: I64) -> tuple[I64, I64]:
    """The integers of several ranges: the number of the range of each, and the integers."""
    sizes = ends - starts
    number = np.repeat(np.arange(len(sizes)), sizes)
    within = np.arange(len(number)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return number, starts[number] + within


# ---------------------------------------------------------------- spans


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted in spans that have ended: the chain, the number of the span, P(count = j), and the mean.

    `p` is (spans, times), from count 1 on, or (spans, 1), for the last count.
    """

    chain: I64
    span: I64
    p: F64
    expected: F64


class SpanCounts:
    """Counts in successive spans of each chain.

    Parameters
    ----------
    weights : Weights
        New weights, of the shape that the query needs.
    times, distribution : as for `counting_tables`
    """

    def __init__(self, weights: Weights, times: int, distribution: bool) -> None:
        self.weights = weights
        self._times = times
        self._distribution = distribution
        #: The span of each chain that has begun and not ended, and the mean count in it so far.
        self.span = np.zeros(0, np.int64)
        self.expected = np.zeros(0)

    def step(self, batch: Batch, automaton: Tables, span_of: SpanOf, complete: int) -> Counted:
        """Update the counts by a batch; returns those of the spans that end, with a mean above 0.

        A span ends where the next one begins, and where its number is below `complete`.
        """
        n_chains = len(batch.starts) - 1
        tables = counting_tables(automaton, self._times, self._distribution)
        self.weights.grow(n_chains, tables.delta.shape[0])
        self._grow(n_chains)
        chain = np.repeat(np.arange(n_chains), np.diff(batch.starts))
        span = span_of(chain, batch.t[batch.rows])
        marks, ended = self._marks(batch, chain, span, complete)
        answers = step_with_marks(self.weights, batch, tables, marks)
        counted = Counted(marks.chain, ended, answers.marks, self._means(marks, answers))
        kept = (counted.span != OUTSIDE) & (counted.expected > 0.0)
        return Counted(*(getattr(counted, name)[kept] for name in Counted.__slots__))

    def _grow(self, n_chains: int) -> None:
        n_new = n_chains - len(self.span)
        self.span = np.concatenate([self.span, np.full(n_new, OUTSIDE)])
        self.expected = np.concatenate([self.expected, np.zeros(n_new)])

    def _marks(self, batch: Batch, chain: I64, span: I64, complete: int) -> tuple[Marks, I64]:
        """A mark at the end of each span, and the number of the span; updates `self.span`."""
        has_rows = np.diff(batch.starts) > 0
        before = np.concatenate([[OUTSIDE], span[:-1]]) if len(span) else span
        firsts = batch.starts[:-1][has_rows]
        before[firsts] = self.span[has_rows]
        changed = before != span
        # A chain that is in no span when a batch begins is new, or its count was reset by its last mark.
        changed[firsts[before[firsts] == OUTSIDE]] = False
        changes = np.flatnonzero(changed)
        last = self.span.copy()
        last[has_rows] = span[batch.starts[1:][has_rows] - 1]
        ends = np.flatnonzero((last != OUTSIDE) & (last < complete))
        marks, order = Marks.of(
            np.concatenate([chain[changes], ends]), np.concatenate([changes, batch.starts[ends + 1]])
        )
        ended = np.concatenate([before[changes], last[ends]])[order]
        last[ends] = OUTSIDE
        self.span = last
        return marks, ended

    def _means(self, marks: Marks, answers: MarkedAnswers) -> F64:
        """The mean count of the span that ends at each mark; updates `self.expected`."""
        chains, _, p = answers.events
        n_marks = len(marks.chain)
        means = np.zeros(n_marks)
        following = np.minimum(answers.next_mark, n_marks - 1)
        ends = (answers.next_mark < n_marks) & (marks.chain[following] == chains) if n_marks else np.zeros(len(p), bool)
        means += np.bincount(following[ends], p[ends], minlength=n_marks)
        first_of_chain, first = np.unique(marks.chain, return_index=True)
        means[first] += self.expected[first_of_chain]
        self.expected[first_of_chain] = 0.0
        self.expected += np.bincount(chains[~ends], p[~ends], minlength=len(self.expected))
        return means
