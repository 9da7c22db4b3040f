"""The operator of a MONITOR query: it evaluates new predictions, and validates earlier answers.

Where MONITOR differs from the rule of `transport/watermark.py`: predictions are compared when they arrive, so answers
are *tentative*. An answer is *validated* when it ends before the watermark, because every later row is at the watermark
or after it. Until then a new prediction can cut the time in which an earlier one applies; the answer is then
*invalidated* and, if a part of it is left, replaced by a shorter tentative answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from anabranch.arrays import BEGINNING, F64, I64, Bools
from anabranch.binding.typed import references
from anabranch.columns.conditions import holds
from anabranch.columns.times import TimeKind
from anabranch.monitor.answers import INVALIDATED, PARTIAL, TENTATIVE, VALIDATED, table_of
from anabranch.monitor.arrivals import Arrivals
from anabranch.monitor.buffer import Buffer
from anabranch.monitor.combinations import Combinations
from anabranch.monitor.predictions import (
    Predictions,
    elapsed,
    ends,
    exact_times,
    no_predictions,
    unit_of,
    without_duplicates,
)
from anabranch.monitor.regions import Evaluator, Regions
from anabranch.monitor.spec import MonitorSpec
from anabranch.transport.limits import AnswerLimit, last_one
from anabranch.transport.operator import Counts, Outcome
from anabranch.transport.state import seal, unseal
from anabranch.transport.watermark import Progress, Watermark

#: An answer is validated if it ends this much before the watermark. Many answers end where a prediction begins, and the
#: watermark is often the same time. An answer that is computed again after a cut may end a rounding error later, which
#: must not make a difference.
_MARGIN = 1e-9

#: More than the error of a corner of a curved region, as a share of 1 and its instants.
_OUTLINE_ERROR = 1e-5

#: How to change a query that has too many answers.
_REMEDY = "narrow the bounds in WHERE, or shorten WITHIN"


class MonitorOperator:
    """The operator of one bucket of a MONITOR query.

    Its state are the predictions (`_held`) and the pending combinations (`_members`): those with regions that are not
    validated. `_due` is when the first pending region of a combination ends, relative to its first prediction.
    """

    #: Finds the regions of combinations.
    _evaluator_class: ClassVar[type[Evaluator]] = Evaluator

    def __init__(self, spec: MonitorSpec) -> None:
        self._spec = spec
        self._evaluator = self._evaluator_class(
            spec.analysis, spec.layouts, spec.streams, spec.values, spec.columns, spec.sums
        )
        self.open(None)

    def open(self, state: bytes | None) -> None:
        """Start empty (None), or resume from saved bytes."""
        self._arrivals = Arrivals(self._spec.layouts, self._spec.is_broadcast)
        self._held = no_predictions(self._spec.layouts)
        self._members = np.zeros((0, len(self._spec.streams)), np.int64)
        self._due = np.zeros(0)
        self._watermark = Watermark(self._spec.layouts)
        self._last_tick = -np.inf
        self._buffer = Buffer(self._spec.analysis, self._spec.layouts) if self._spec.is_buffered else None
        if state is not None:
            tables = unseal(state, self._spec.fingerprint)
            self._arrivals.load(tables)
            self._held = Predictions.load(tables["held"])
            pending = tables["pending combinations"]
            self._due = pending["due"].to_numpy().copy()
            columns = [pending[str(operand)].to_numpy() for operand in range(len(self._spec.streams))]
            self._members = np.ascontiguousarray(np.stack(columns, axis=1))
            self._watermark.at = tables["progress"]["watermark"][0].as_py()
            self._last_tick = tables["progress"]["last tick"][0].as_py()
            if self._buffer is not None:
                self._buffer.load(tables["buffer"])

    def save(self) -> bytes:
        """The state as bytes, for `open`."""
        columns = {str(operand): self._members[:, operand] for operand in range(self._members.shape[1])}
        tables = {
            "held": self._held.save(),
            "pending combinations": pa.table(columns | {"due": self._due}),
            "progress": pa.table({"watermark": [self._watermark.at], "last tick": [float(self._last_tick)]}),
        }
        if self._buffer is not None:
            tables["buffer"] = self._buffer.save()
        return seal(tables | self._arrivals.save(), self._spec.fingerprint)

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: Progress, ended: bool) -> Outcome:
        """Take packets and return new, invalidated and validated answers."""
        advance = self._watermark.advance(watermark)
        limits = np.maximum(watermark.before, advance.before), np.maximum(watermark.now, advance.now)
        by_stream = replace(advance, limits=limits)
        counts = Counts()
        self._limit = AnswerLimit(self._spec.analysis.query.name, self._spec.max_answers, _REMEDY)
        new, rejected = self._arrivals.receive(packets, advance, by_stream, counts)
        answers = self._add(new, advance.before, ended, counts)
        if self._spec.live:
            answers += self._partial()
        self._forget()
        if self._spec.live and self._arrivals.counts_rows:
            counts.kept = len(self._held)
        return Outcome(pa.concat_tables([self._spec.answer_schema.empty_table(), *answers]), rejected, counts)

    # ------------------------------------------------------------ evaluation

    def _add(self, new: Predictions, watermark_before: int, ended: bool, counts: Counts) -> list[pa.Table]:
        """Add new predictions: cut the earlier ones that they end, and compare them with all others."""
        known = len(self._held)
        uncut, duplicates = without_duplicates(Predictions.concat([self._held, new]), known)
        if self._arrivals.counts_rows:
            counts.duplicate += duplicates
            counts.used -= duplicates
        is_new = np.arange(len(uncut)) >= known
        combinations = Combinations(
            self._spec.analysis, self._spec.layouts, self._spec.streams, self._spec.columns, self._spec.sums,
            self._arrivals.keys, self._spec.relations, self._arrivals.parts,
        )  # fmt: skip
        self._evaluator.row_tests = combinations.row_tests
        uncut = self._with_operands(combinations, uncut, is_new)
        if self._buffer is None:
            held = uncut.ending(ends(uncut, self._spec.layouts))
            chunks = combinations.with_new(held, is_new)
        else:
            held, pairs = self._buffer.arrive(uncut, known)
            chunks = combinations.from_pairs(held, pairs)
        return self._update(held, uncut, known, chunks, watermark_before, ended)

    def _update(
        self, held: Predictions, uncut: Predictions, known: int, chunks: Iterable[I64], watermark_before: int,
        ended: bool,
    ) -> list[pa.Table]:  # fmt: skip
        """Replace the predictions, of which the first `known` may be cut; `chunks` are combinations with new ones."""
        answers, remaining, is_reported = self._cut(held, uncut, known, watermark_before)
        self._held = held
        self._report(remaining, answers, ended, is_reported)
        for members in chunks:
            regions = self._evaluator.regions(held, members)
            self._report(regions, answers, ended, np.zeros(len(regions), np.bool_))
        self._validate(watermark_before, ended, answers)
        return answers

    def _with_operands(self, combinations: Combinations, held: Predictions, is_new: Bools) -> Predictions:
        """Set the operands that the new predictions can be (`able`)."""
        able = held.able.copy()
        for operand, stream in enumerate(self._spec.streams):
            rows = np.flatnonzero(is_new & (held.stream == stream))
            condition = self._spec.analysis.own_conditions(operand)
            names = {name for _, name in references(condition)} if condition is not None else set()
            columns = {name: combinations.column(held, rows, stream, name) for name in names}
            able[rows] |= holds(condition, columns, self._spec.relations, len(rows)).astype(np.int64) << operand
        return replace(held, able=able)

    def _cut(
        self, held: Predictions, uncut: Predictions, known: int, watermark_before: int
    ) -> tuple[list[pa.Table], Regions, Bools]:
        """Evaluate the pending combinations of shortened predictions again.

        Returns the invalidated answers, the remaining regions of these combinations, and which of them are as they
        were reported.
        """
        affected = is_cut(held, uncut, known)[self._members].any(axis=1)
        if not affected.any():
            return [], Regions.empty(len(self._spec.streams), self._spec.analysis.dims), np.zeros(0, np.bool_)
        members = self._members[affected]
        self._members, self._due = self._members[~affected], self._due[~affected]
        earlier = self._evaluator.regions(uncut, members)
        earlier = earlier.take(~self._is_final(earlier, uncut, watermark_before))
        exceeds, reaches_cut = self._exceeds(earlier, held, uncut)
        # The regions of a combination are consecutive. If none of them reaches a cut, all are as before.
        begins = earlier.begins_combination()
        changes = np.logical_or.reduceat(reaches_cut, begins) if len(begins) else reaches_cut
        is_changed = np.repeat(changes, np.diff(begins, append=len(earlier)))
        again = self._evaluator.regions(held, earlier.members[begins[changes]])
        again = again.take(~self._is_final(again, held, watermark_before))
        unchanged = earlier.take(~is_changed)
        is_reported = np.concatenate(
            [np.ones(len(unchanged), np.bool_), again.equal_to_any(earlier.take(is_changed & ~exceeds))]
        )
        invalidated = self._answers(earlier.take(exceeds), uncut, INVALIDATED)
        return invalidated, Regions.concat([unchanged, again]), is_reported

    def _exceeds(self, regions: Regions, held: Predictions, uncut: Predictions) -> tuple[Bools, Bools]:
        """Whether regions have instants at which one of their predictions does not apply any more.

        And whether they may reach the end, or the begin, of a prediction that was cut there.
        """
        earlier = slice(len(uncut))  # after them, `held` has the new versions of a buffer
        begin = np.where(held.begin[earlier] > uncut.begin, held.begin[earlier], -np.inf)
        end = np.where(held.end[earlier] < uncut.end, held.end[earlier], np.inf)
        begins, ends_at = self._limits(regions, begin, held, np.max), self._limits(regions, end, held, np.min)
        first, last = regions.begin(), regions.end()
        exceeds = np.any((last > ends_at) | (first < begins), axis=1)
        near = _OUTLINE_ERROR * (1.0 + np.maximum(np.abs(first), np.abs(last)))
        return exceeds, np.any((last >= ends_at - near) | (first <= begins + near), axis=1)

    def _limits(self, regions: Regions, limit: F64, held: Predictions, reduce: Callable[..., F64]) -> F64:
        """(n, dims) the begins or ends of the predictions of regions, relative to the first prediction.

        With one axis for all operands, `reduce` combines their limits.
        """
        shift = elapsed(held.code[regions.members[:, :1]], held.code[regions.members], self._kind)
        limits = shift + limit[regions.members]
        return limits if regions.sample.shape[1] > 1 else reduce(limits, axis=1, keepdims=True)

    def _report(self, regions: Regions, answers: list[pa.Table], ended: bool, is_reported: Bools) -> None:
        """Add the answers of regions that were not reported, and remember the combinations with pending regions."""
        final = np.ones(len(regions), np.bool_) if ended else self._is_final(regions, self._held, self._watermark.at)
        answers += self._answers(regions.take(final), self._held, VALIDATED)
        answers += self._answers(regions.take(~final & ~is_reported), self._held, TENTATIVE)
        self._remember(regions.take(~final))

    def _remember(self, pending: Regions) -> None:
        """Add the combinations of regions to the pending ones, each once, with the end of its first region."""
        if not len(pending):
            return
        begins = pending.begins_combination()
        self._members = np.concatenate([self._members, pending.members[begins]])
        self._due = np.concatenate([self._due, np.minimum.reduceat(pending.interval[:, 1], begins)])

    # ------------------------------------------------------------ validation

    @property
    def _kind(self) -> TimeKind:
        return self._spec.layouts[0].time_kind

    def _until(self, watermark: int, origins: I64) -> F64:
        """The time from some time codes until the watermark."""
        if watermark == BEGINNING:
            return np.full(len(origins), -np.inf)
        return elapsed(origins, np.array([watermark]), self._kind)

    def _is_final(self, regions: Regions, held: Predictions, watermark: int) -> Bools:
        """Whether regions end before the watermark. With the watermark before the step: whether they were validated."""
        until = self._until(watermark, held.code[regions.members[:, 0]])
        return regions.interval[:, 1] < until - _MARGIN * np.maximum(1.0, np.abs(until))

    def _validate(self, watermark_before: int, ended: bool, answers: list[pa.Table]) -> None:
        """Add the regions of pending combinations that are now final; forget combinations without other regions."""
        if not len(self._members):
            return
        until = self._until(self._watermark.at, self._held.code[self._members[:, 0]])
        is_due = np.ones(len(self._due), np.bool_) if ended else self._due < until
        members = self._members[is_due]
        self._members, self._due = self._members[~is_due], self._due[~is_due]
        regions = self._evaluator.regions(self._held, members)
        regions = regions.take(~self._is_final(regions, self._held, watermark_before))
        final = np.ones(len(regions), np.bool_) if ended else self._is_final(regions, self._held, self._watermark.at)
        answers += self._answers(regions.take(final), self._held, VALIDATED)
        self._remember(regions.take(~final))

    def _partial(self) -> list[pa.Table]:
        """With EVERY, at each tick that the watermark passes: the validated parts of pending answers."""
        every = self._spec.analysis.query.every
        if every is None or self._watermark.at == BEGINNING or not len(self._members):
            return []
        unit = unit_of(self._kind)
        ticks = float(exact_times(np.array([self._watermark.at]), self._kind)[0]) * unit / every
        # A watermark of doubles may have a rounding error: 9.999999999999998 has passed 10.
        tick = np.floor(ticks + 16 * np.finfo(np.float64).eps * abs(ticks)) * every
        if tick <= self._last_tick:
            return []
        self._last_tick = tick
        times = exact_times(self._held.code, self._kind)
        until = tick - times * unit
        regions = self._evaluator.regions(self._held.ending(np.minimum(self._held.end, until)), self._members)
        ends_at = times[regions.members[:, 0]] * unit + regions.interval[:, 1]
        # Regions that ended before are validated.
        continues = ends_at >= tick - _MARGIN - 16 * np.finfo(np.float64).eps * abs(tick)
        return self._answers(regions.take(continues), self._held, PARTIAL)

    def _answers(self, regions: Regions, held: Predictions, status: str) -> list[pa.Table]:
        spec = self._spec
        if not len(regions) or not (spec.live or status == VALIDATED):
            return []

        def table(chosen: Regions) -> pa.Table:
            keys = self._arrivals.keys
            return table_of(chosen, held, status, spec.answer_schema, spec.layouts, spec.streams, keys)

        def last() -> str:
            row = table(regions.take(np.arange(len(regions)) == len(regions) - 1))
            return last_one({operand.label: row[operand.label][0] for operand in spec.analysis.operands})

        self._limit.add(len(regions), last)
        return [table(regions)]

    # ------------------------------------------------------------ state

    def _forget(self) -> None:
        """Remove predictions that no later one can be compared with and that no pending combination needs."""
        if not self._spec.live:
            return
        needed = np.zeros(len(self._held), np.bool_)
        needed[self._members.reshape(-1)] = True
        window = self._spec.analysis.window
        until = self._until(self._watermark.at, self._held.code)
        needed |= self._held.buffered & (self._held.end + window >= until)
        if not needed.all():
            new_index = np.cumsum(needed) - 1
            self._held = self._held.take(needed)
            self._members = new_index[self._members]
        self._held = self._arrivals.forget_keys(self._held)


def is_cut(held: Predictions, uncut: Predictions, known: int) -> Bools:
    """Which predictions apply for a shorter time than before; those from index `known` on are new."""
    shorter = np.zeros(len(held), np.bool_)
    shorter[:known] = (held.end[:known] < uncut.end[:known]) | (held.begin[:known] > uncut.begin[:known])
    return shorter
