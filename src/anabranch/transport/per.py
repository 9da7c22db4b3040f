"""Rows of several answers (PER): one row per window, episode or set of keys.

Answers become *partial rows*: one answer each, with its keys as columns. Partial rows of the same window, episode or
keys are merged; it does not matter in which order, or how often. So the answers of a stream are merged micro-batch by
micro-batch, and the partial rows that later answers can still change are kept (`advance`).

`runtime/per.py` makes the rows of an archive: those of windows and keys by Spark expressions with the same rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import BEGINNING, END, I64, Bools
from anabranch.binding.per import Per, PerEpisode, PerKeys, PerWindow
from anabranch.columns import times
from anabranch.columns.dictionary import encode_tuples, flat
from anabranch.columns.local_times import instant_codes, local_codes
from anabranch.columns.statuses import FINAL
from anabranch.columns.times import TimeKind, decode_times, encode_times
from anabranch.thresholds import least_reaching
from anabranch.transport.frontier import Frontier

#: A probability that exceeds the number of ABOVE by this share, or less, is not above it: the difference is rounding.
_ROUNDING = 1e-12

#: The value of `method` for rows whose probability is bounded, not known.
BOUNDS = "bounds"

#: The columns of partial rows besides the keys. No operand has such a name.
_FIRST, _LAST, _NUMBER = "(first)", "(last)", "(number)"
_COUNT, _HIGHEST, _EXPECTED = "(count)", "(highest)", "(expected)"

#: The previous instant of the streams: a column of partial rows, and of answers for which it is known.
PREVIOUS = "(previous)"

#: The code of a previous instant that is not known yet.
_UNKNOWN = END

#: The status of rows of a stream that may still change, and of those that do not.
PROVISIONAL, COMPLETE = "provisional", "final"


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """The keys of one operand, or one key.

    Attributes
    ----------
    name : of the answer column with its event, and of the column of the row
    fields : the key columns of the event; empty if the column is a key itself
    several : whether the column has a list of interchangeable events; their keys are sorted
    event : the field of the column that is the event; None if the column is the event itself
    """

    name: str
    fields: tuple[str, ...]
    several: bool = False
    event: str | None = None


@dataclass(frozen=True, slots=True)
class PerRule:
    """How answers become rows.

    Attributes
    ----------
    per : the clause
    keys : the keys of each operand
    span : the columns with the first and the last instant of an answer; the same one if it is about one instant
    time_kind : the type of these columns
    clock : the type of the times of the streams, and of the watermark
    delay : an answer that is given when the watermark is w begins at w - delay at the earliest
    """

    per: Per
    keys: tuple[KeyColumn, ...]
    span: tuple[str, str]
    time_kind: TimeKind
    clock: TimeKind
    delay: float = 0.0

    @staticmethod
    def of(per: Per, keys: tuple[KeyColumn, ...], span: tuple[str, str], frontier: Frontier) -> PerRule:
        """The rule of answers with a frontier."""
        return PerRule(per, keys, span, frontier.time_kind, frontier.clock, frontier.delay)

    @property
    def frontier(self) -> Frontier:
        """Which answers can still be given."""
        return Frontier(self.time_kind, self.clock, self.delay)

    @property
    def excluded(self) -> float:
        """The highest probability of answers that are left out."""
        return self.per.above * (1 + _ROUNDING) if isinstance(self.per, PerEpisode) else 0.0

    @property
    def is_of_instants(self) -> bool:
        """Whether every answer is about one instant."""
        return self.span[0] == self.span[1]

    @property
    def needs_instants(self) -> bool:
        """Whether answers at consecutive instants of the streams are one episode, however far they are apart."""
        return self.is_of_instants and isinstance(self.per, PerEpisode)


# ---------------------------------------------------------------- from answers to partial rows


def partial_rows(rule: PerRule, answers: pa.Table) -> pa.Table:
    """One partial row per answer, or per answer and window; they are not merged.

    Columns: those of the keys; the number of the window, or the first and the last instant as codes; the previous
    instant of the streams, before the first one, if it is known yet; the number of answers, and the highest and the
    sum of their probabilities. Answers that are not final are left out.
    """
    answers = answers.filter(pa.array(_counted(rule, answers)))
    first, last = (encode_times(answers[name], rule.time_kind) for name in rule.span)
    columns: dict[str, pa.Array] = {_FIRST: pa.array(first), _LAST: pa.array(last)}
    if rule.needs_instants:
        known = PREVIOUS in answers.column_names
        previous = (
            times.encode_known_times(answers[PREVIOUS], rule.time_kind) if known else np.full(len(first), _UNKNOWN)
        )
        columns[PREVIOUS] = pa.array(previous)
    if isinstance(rule.per, PerWindow):
        begins, counts = _windows(rule.per, first, last, rule.time_kind)
        answers = answers.take(pa.array(np.repeat(np.arange(len(counts)), counts)))
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        columns = {_NUMBER: pa.array(np.repeat(begins, counts) + within)}
    keys = {key.name: _keys_of(key, flat(answers[key.name])) for key in rule.keys}
    probability = flat(answers["probability"])
    ones = pa.repeat(pa.scalar(1, pa.int64()), answers.num_rows)
    return pa.table({**keys, **columns, _COUNT: ones, _HIGHEST: probability, _EXPECTED: probability})


def _windows(per: PerWindow, first: I64, last: I64, kind: TimeKind) -> tuple[I64, I64]:
    """The number of the first window that each answer overlaps, and how many it overlaps.

    The end of an interval is exclusive: one that ends where a window begins does not overlap it.
    """
    first, last = (local_codes(codes, per.zone) for codes in (first, last))
    begins, ends = (times.steps_of(codes, per.length, kind) for codes in (first, last))
    touches = last <= times.later(times.step_times(ends, per.length, kind), 0.0, kind)
    # Where clocks are set back, a validity may end at an earlier local time than it began.
    return begins, np.maximum(1, ends - begins + 1 - (touches & (ends > begins)))


def window_begins(per: PerWindow, number: I64, kind: TimeKind, twice: str = "earliest") -> I64:
    """The codes of the instants at which windows begin; `twice` says which one, if a local time occurs twice."""
    return instant_codes(times.step_times(number, per.length, kind), per.zone, twice)


def _counted(rule: PerRule, answers: pa.Table) -> Bools:
    """Which answers are part of rows."""
    probability = answers["probability"].to_numpy()
    counted: Bools = probability > rule.excluded
    if "status" in answers.column_names:
        counted &= pc.is_in(answers["status"], value_set=pa.array(FINAL)).to_numpy(zero_copy_only=False)
    return counted


def _keys_of(key: KeyColumn, events: pa.Array) -> pa.Array:
    """The key columns of events; NULL for a missing event."""
    if not key.fields:
        return events
    if key.event is not None:
        events = pc.struct_field(events, key.event)
    if not key.several:
        return _structs([pc.struct_field(events, field) for field in key.fields], key, pc.is_null(events))
    of_events = events.flatten()
    fields = [pc.struct_field(of_events, field) for field in key.fields]
    codes, distinct = encode_tuples([pa.chunked_array([field]) for field in fields], len(of_events))
    order = pc.sort_indices(distinct, [(name, "ascending") for name in distinct.column_names]).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    sizes = pc.list_value_length(events).to_numpy()
    ranks = rank[codes]
    ranks = ranks[np.lexsort([ranks, np.repeat(np.arange(len(sizes)), sizes)])]
    chosen = [flat(column).take(pa.array(order[ranks])) for column in distinct.columns]
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, _structs(chosen, key))


def _structs(fields: Sequence[pa.Array], key: KeyColumn, missing: pa.Array | None = None) -> pa.StructArray:
    names = [pa.field(name, field.type) for name, field in zip(key.fields, fields, strict=True)]
    return pa.StructArray.from_arrays(fields, fields=names, mask=missing)


# ---------------------------------------------------------------- merging


def merged(rule: PerRule, partial: pa.Table) -> pa.Table:
    """The partial rows with those of the same window, episode or keys as one."""
    if not partial.num_rows:
        return partial
    code = _key_codes(rule, partial)
    if isinstance(rule.per, PerWindow):
        number = partial[_NUMBER].to_numpy()
        order = np.lexsort([number, code])
        begins = _changes(code[order]) | _changes(number[order])
    else:
        first, last = partial[_FIRST].to_numpy(), partial[_LAST].to_numpy()
        order = np.lexsort([last, first, code])
        begins = _changes(code[order])
        if isinstance(rule.per, PerEpisode):
            previous = partial[PREVIOUS].to_numpy()[order] if rule.needs_instants else None
            begins |= _begins_episode(rule, rule.per, code[order], first[order], last[order], previous)
    starts = np.flatnonzero(begins)
    taken = [key.name for key in rule.keys] + ([PREVIOUS] if rule.needs_instants else [])
    columns = {name: flat(partial[name]).take(pa.array(order[starts])) for name in taken}
    for name, reduce in _REDUCED.items():
        if name in partial.column_names:
            columns[name] = pa.array(reduce.reduceat(partial[name].to_numpy()[order], starts))
    return pa.table(columns, schema=partial.schema)


#: How the columns of partial rows are merged; those of a window have all one number.
_REDUCED = {
    _NUMBER: np.minimum,
    _FIRST: np.minimum,
    _LAST: np.maximum,
    _COUNT: np.add,
    _HIGHEST: np.maximum,
    _EXPECTED: np.add,
}


def _key_codes(rule: PerRule, partial: pa.Table) -> I64:
    """A number for each set of keys."""
    columns = []
    for key in rule.keys:
        column = flat(partial[key.name])
        if not key.fields:
            columns.append(pa.chunked_array([column]))
            continue
        events = column.flatten() if key.several else column
        fields = [pa.chunked_array([pc.struct_field(events, field)]) for field in key.fields]
        columns += _positions(fields, pc.list_value_length(column).to_numpy()) if key.several else fields
    return encode_tuples(columns, partial.num_rows)[0].astype(np.int64)


def _positions(fields: Sequence[pa.ChunkedArray], sizes: I64) -> list[pa.ChunkedArray]:
    """Lists of these sizes as columns: the code of the first event of each list, of the second, and so on; else -1."""
    codes, _ = encode_tuples(fields, int(sizes.sum()))
    table = np.full((len(sizes), int(sizes.max(initial=0))), -1, np.int64)
    table[np.arange(table.shape[1]) < sizes[:, None]] = codes
    return [pa.chunked_array([pa.array(column)]) for column in table.T]


def _changes(values: I64) -> Bools:
    """Where a value differs from the one before."""
    changes = np.ones(len(values), np.bool_)
    changes[1:] = values[1:] != values[:-1]
    return changes


def _begins_episode(rule: PerRule, per: PerEpisode, code: I64, first: I64, last: I64, previous: I64 | None) -> Bools:
    """Which partial rows begin an episode; they are sorted by keys, then by their first instant."""
    # The highest `last` of the same keys so far. Ranks make it one running maximum over all keys.
    distinct, rank = np.unique(last, return_inverse=True)
    reached = distinct[np.maximum.accumulate(code * len(distinct) + rank) % len(distinct)]
    begins = np.ones(len(code), np.bool_)
    begins[1:] = first[1:] > times.later(reached[:-1], per.gap, rule.time_kind)
    if previous is not None:
        begins[1:] &= previous[1:] != reached[:-1]
    return begins


# ---------------------------------------------------------------- from merged partial rows to result rows


def result_rows(rule: PerRule, partial: pa.Table) -> pa.Table:
    """The rows of the result: those that reach the threshold, in its columns."""
    if isinstance(rule.per, PerWindow):
        return _window_rows(rule, rule.per, partial)
    partial = partial.filter(pc.greater_equal(partial[_HIGHEST], least_reaching(rule.per.threshold)))
    spans = {
        name: decode_times(partial[code].to_numpy(), rule.time_kind)
        for name, code in (("t_from", _FIRST), ("t_to", _LAST))
    }
    keys = {key.name: partial[key.name] for key in rule.keys}
    numbers = {"count": partial[_COUNT], "probability": partial[_HIGHEST], "expected": partial[_EXPECTED]}
    return pa.table(spans | keys | numbers)


def _window_rows(rule: PerRule, per: PerWindow, partial: pa.Table) -> pa.Table:
    n = per.at_least
    partial = partial.filter(pc.greater_equal(partial[_COUNT], n))
    count, expected = partial[_COUNT].to_numpy(), partial[_EXPECTED].to_numpy()
    highest = partial[_HIGHEST].to_numpy()
    lower = highest if n == 1 else np.maximum(0.0, (expected - n + 1) / (count - n + 1))
    upper = np.maximum(lower, np.minimum(1.0, expected / n))
    number = partial[_NUMBER].to_numpy()
    ends = (decode_times(window_begins(per, at, rule.time_kind), rule.time_kind) for at in (number, number + 1))
    rows = pa.table(
        {
            **dict(zip(("t_from", "t_to"), ends, strict=True)),
            **{key.name: partial[key.name] for key in rule.keys},
            "probability": lower,
            "expected": expected,
            "lower": lower,
            "upper": upper,
            "method": pa.repeat(BOUNDS, partial.num_rows),
        }
    )
    return rows.filter(pc.greater_equal(rows["probability"], least_reaching(per.threshold)))


# ---------------------------------------------------------------- streams


@dataclass(frozen=True, slots=True)
class Moment:
    """How far a stream is: its watermark, whether its input has ended, and the instants of its rows, all as codes.

    `instants` need not have those that no episode can need any more, and can have them in any order.
    """

    watermark: int
    ended: bool
    instants: I64 = field(default_factory=lambda: np.zeros(0, np.int64))

    def after(self, watermark: int, instants: I64) -> Moment:
        """Add the watermark and the instants of the moment before; the times of late rows are no instants."""
        new = self.instants[self.instants >= watermark]
        return Moment(max(self.watermark, watermark), self.ended, np.concatenate([instants, new]))

    def kept_instants(self, rules: Iterable[PerRule]) -> I64:
        """The instants that later answers need: those at which they can begin, and the last one before."""
        instants = np.unique(self.instants)
        since = min([self.watermark, *(rule.frontier.at(self.watermark) for rule in rules if rule.needs_instants)])
        return instants[max(0, np.searchsorted(instants, since) - 1) :]


class Step(NamedTuple):
    """One micro-batch: the rows that it gives, and the partial rows that later answers can change."""

    rows: pa.Table
    open_rows: pa.Table


def advance(rule: PerRule, open_rows: pa.Table | None, answers: pa.Table, now: Moment) -> Step:
    """Add the answers of a micro-batch to the partial rows.

    A row is given when no later answer can be part of it: every later answer begins at the watermark minus
    `rule.delay`, or after it. At the end of the input, all rows are given. PER KEYS has such rows only then, so its
    rows are also given, as provisional ones, whenever they change.
    """
    new = partial_rows(rule, answers)
    before = new.schema.empty_table() if open_rows is None else open_rows
    together = pa.concat_tables([before, new])
    everything = merged(rule, _with_previous(together, now) if rule.needs_instants else together)
    closed = np.ones(everything.num_rows, np.bool_) if now.ended else _is_closed(rule, everything, now)
    if isinstance(rule.per, PerKeys) and not now.ended:
        codes = _key_codes(rule, pa.concat_tables([everything, new]))
        changed = np.isin(codes[: everything.num_rows], codes[everything.num_rows :])
        return Step(_with_status(result_rows(rule, everything.filter(pa.array(changed))), PROVISIONAL), everything)
    rows = result_rows(rule, everything.filter(pa.array(closed)))
    rows = _with_status(rows, COMPLETE) if isinstance(rule.per, PerKeys) else rows
    return Step(rows, everything.filter(pa.array(~closed)))


def _with_status(rows: pa.Table, status: str) -> pa.Table:
    return rows.append_column("status", pa.repeat(status, rows.num_rows))


def _with_previous(partial: pa.Table, now: Moment) -> pa.Table:
    """The partial rows with the instant before their first one, where all instants before it are known."""
    instants = np.unique(np.append(now.instants, BEGINNING))
    first, previous = partial[_FIRST].to_numpy(), partial[PREVIOUS].to_numpy().copy()
    at = np.searchsorted(instants, first)
    # An answer about the end of a time window need not be at an instant of the streams; it follows none then.
    is_instant = instants[np.minimum(at, len(instants) - 1)] == first
    found = np.where(is_instant, instants[at - 1], BEGINNING)
    chosen = (previous == _UNKNOWN) & (now.ended | (first < now.watermark))
    previous[chosen] = found[chosen]
    return partial.set_column(partial.column_names.index(PREVIOUS), PREVIOUS, pa.array(previous))


def _is_closed(rule: PerRule, partial: pa.Table, now: Moment) -> Bools:
    """Which partial rows no later answer can change."""
    if now.watermark == BEGINNING or isinstance(rule.per, PerKeys):
        return np.zeros(partial.num_rows, np.bool_)
    frontier = rule.frontier.at(now.watermark)
    if isinstance(rule.per, PerWindow):
        number = partial[_NUMBER].to_numpy()
        if rule.per.zone is not None:
            return window_begins(rule.per, number + 1, rule.time_kind, "latest") <= frontier
        return number < times.steps_of(np.array([frontier]), rule.per.length, rule.time_kind)
    last = partial[_LAST].to_numpy()
    closed: Bools = times.later(last, rule.per.gap, rule.time_kind) < frontier
    if rule.needs_instants:
        closed &= last < now.instants[now.instants < frontier].max(initial=BEGINNING)
    return closed
