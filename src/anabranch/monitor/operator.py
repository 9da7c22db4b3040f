"""One bucket of a MONITOR query: the evaluator of new predictions, and the validator of what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I64, Bools
from anabranch.binding.typed import references
from anabranch.columns.conditions import holds
from anabranch.columns.times import BEGINNING, TimeKind
from anabranch.monitor.answers import INVALIDATED, PARTIAL, TENTATIVE, VALIDATED, table_of
from anabranch.monitor.arrivals import Arrivals
from anabranch.monitor.buffer import Buffer
from anabranch.monitor.choices import Choices
from anabranch.monitor.predictions import Predictions, clock_of, ends, unit_of, without_repeats
from anabranch.monitor.regions import Evaluator, Regions
from anabranch.monitor.spec import MonitorSpec
from anabranch.transport.operator import Counts, Outcome
from anabranch.transport.state import seal, unseal
from anabranch.transport.watermark import Watermark

#: An answer is validated where it ends this much before the watermark. Many end just where a prediction begins, and so
#: does the watermark; worked out anew after a cut an end may differ by a rounding, which must not decide.
_MARGIN = 1e-9


class MonitorOperator:
    """One bucket of a MONITOR query.

    What it remembers are predictions, and the choices of them whose answers are not all validated.
    """

    def __init__(self, spec: MonitorSpec) -> None:
        self._spec = spec
        self._width = max(len(layout.values) for layout in spec.layouts)
        self._evaluator = Evaluator(spec.analysis, spec.layouts, spec.streams, spec.columns)
        self.open(None)

    def open(self, state: bytes | None) -> None:
        """Begin anew, or go on from saved bytes."""
        self._arrivals = Arrivals(self._spec.layouts)
        self._held = Predictions.empty(self._width)
        self._members = np.zeros((0, len(self._spec.streams)), np.int64)
        self._due = np.zeros(0)
        self._watermark = Watermark(self._spec.layouts)
        self._ticked = -np.inf
        self._buffer = Buffer(self._spec.analysis.query, self._spec.layouts) if self._spec.is_buffered else None
        if state is not None:
            tables = unseal(state, self._spec.fingerprint)
            self._arrivals.load(tables)
            self._held = Predictions.load(tables["held"], self._width)
            pending = tables["pending choices"]
            self._due = pending["due"].to_numpy().copy()
            own = [pending[str(place)].to_numpy() for place in range(len(self._spec.streams))]
            self._members = np.ascontiguousarray(np.stack(own, axis=1))
            self._watermark.at = tables["progress"]["watermark"][0].as_py()
            self._ticked = tables["progress"]["ticked"][0].as_py()
            if self._buffer is not None:
                self._buffer.load(tables["buffer"])

    def save(self) -> bytes:
        """The state, to be opened again."""
        choices = {str(place): self._members[:, place] for place in range(self._members.shape[1])}
        tables = {
            "held": self._held.save(),
            "pending choices": pa.table(choices | {"due": self._due}),
            "progress": pa.table({"watermark": [self._watermark.at], "ticked": [float(self._ticked)]}),
        }
        if self._buffer is not None:
            tables["buffer"] = self._buffer.save()
        return seal(tables | self._arrivals.save(), self._spec.fingerprint)

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: int, ended: bool) -> Outcome:
        """Take packets, and give what is found, what is taken back, and what nothing can change any more."""
        advance = self._watermark.advance(watermark)
        counts = Counts()
        fresh, rejected = self._arrivals.receive(packets, advance, counts)
        shown = self._take(fresh, advance.before, ended, counts)
        if self._spec.live:
            shown += self._partial()
        self._forget()
        if self._spec.live and self._arrivals.is_own:
            counts.kept = len(self._held)
        return Outcome(pa.concat_tables([self._spec.answer_schema.empty_table(), *shown]), rejected, counts)

    # ------------------------------------------------------------ evaluation

    def _take(self, fresh: Predictions, before: int, ended: bool, counts: Counts) -> list[pa.Table]:
        """Let new predictions come: what they end is cut, and they are compared with all that is held."""
        known = len(self._held)
        was, repeated = without_repeats(Predictions.concat([self._held, fresh]), known)
        if self._arrivals.is_own:
            counts.duplicate += repeated
            counts.used -= repeated
        is_fresh = np.arange(len(was)) >= known
        choices = Choices(
            self._spec.analysis, self._spec.layouts, self._spec.streams, self._spec.columns, self._arrivals.keys,
            self._spec.relations, self._arrivals.parts,
        )  # fmt: skip
        was = self._with_abilities(choices, was, is_fresh)
        if self._buffer is None:
            held = was.ending(ends(was, self._spec.layouts))
            found = choices.of(held, is_fresh)
        else:
            held, pairs = self._buffer.take(was, known)
            found = choices.of_pairs(held, pairs)
        shown, again = self._cut(held, was, known, before)
        self._held = held
        self._keep(again, before, shown, ended, is_new=False)
        for members in found:
            self._keep(self._evaluator.regions(held, members), before, shown, ended, is_new=True)
        self._validate(before, ended, shown)
        return shown

    def _with_abilities(self, choices: Choices, held: Predictions, is_fresh: Bools) -> Predictions:
        """Note which operands the new predictions can be."""
        able = held.able.copy()
        for operand, stream in enumerate(self._spec.streams):
            rows = np.flatnonzero(is_fresh & (held.stream == stream))
            condition = self._spec.analysis.own_conditions(operand)
            names = {name for _, name in references(condition)} if condition is not None else set()
            columns = {name: choices.column(held, rows, stream, name) for name in names}
            able[rows] |= holds(condition, columns, self._spec.relations, len(rows)).astype(np.int64) << operand
        return replace(held, able=able)

    def _cut(self, held: Predictions, was: Predictions, known: int, before: int) -> tuple[list[pa.Table], Regions]:
        """Look again at the pending choices of predictions that now apply for a shorter time than they did.

        What was said and is not true any more is taken back; what is left of these choices is given.
        """
        cut = np.zeros(len(held), np.bool_)
        cut[:known] = (held.end[:known] < was.end[:known]) | (held.begin[:known] > was.begin[:known])
        touched = cut[self._members].any(axis=1)
        if not touched.any():
            return [], Regions.empty(len(self._spec.streams), self._spec.analysis.dims)
        members = self._members[touched]
        self._members, self._due = self._members[~touched], self._due[~touched]
        said = self._evaluator.regions(was, members)
        said = said.take(~self._is_final(said, was, before))
        gone = said.take(self._reaches_beyond(said, held))
        left = self._evaluator.regions(held, members)
        return self._show(gone, was, INVALIDATED), left.take(~self._is_final(left, held, before))

    def _reaches_beyond(self, found: Regions, held: Predictions) -> Bools:
        """Whether regions have instants at which their predictions do not apply any more."""
        begins = self._applies(found, held.begin, held, np.max)
        ends_at = self._applies(found, held.end, held, np.min)
        return np.any((found.reach() > ends_at) | (found.start() < begins), axis=1)

    def _applies(self, found: Regions, bound: F64, held: Predictions, over: Callable[..., F64]) -> F64:
        """(n, dims) from when, or until when, the predictions of regions apply, counted as the regions are."""
        clock = clock_of(held.code, self._kind)
        shift = (clock[found.members] - clock[found.members[:, :1]]) * unit_of(self._kind)
        bounds = shift + bound[found.members]
        return bounds if found.sample.shape[1] > 1 else over(bounds, axis=1, keepdims=True)

    def _is_cut(self, found: Regions) -> Bools:
        """Whether regions go on until one of their predictions ends: they may be what is left of larger ones."""
        until = self._applies(found, self._held.end, self._held, np.min)
        return np.any(found.reach() >= until - _MARGIN * np.abs(until), axis=1)

    def _keep(self, found: Regions, before: int, shown: list[pa.Table], ended: bool, is_new: bool) -> None:
        """Show regions, and remember the choices of those that may still change."""
        final = np.ones(len(found), np.bool_) if ended else self._is_final(found, self._held, self._watermark.at)
        shown += self._show(found.take(final), self._held, VALIDATED)
        waiting = found.take(~final)
        if not len(waiting):
            return
        remainder = waiting
        if not is_new:  # what no new end touches was shown before
            remainder = waiting.take(self._is_cut(waiting))
        shown += self._show(remainder, self._held, TENTATIVE)
        self._remember(waiting)

    def _remember(self, waiting: Regions) -> None:
        """Keep the choices of regions, each once, with when the first of its regions ends."""
        if not len(waiting):
            return
        # The regions of a choice come one after the other.
        begins = np.ones(len(waiting), np.bool_)
        begins[1:] = np.any(waiting.members[1:] != waiting.members[:-1], axis=1)
        self._members = np.concatenate([self._members, waiting.members[begins]])
        due = np.minimum.reduceat(waiting.interval[:, 1], np.flatnonzero(begins))
        self._due = np.concatenate([self._due, due])

    # ------------------------------------------------------------ validation

    @property
    def _kind(self) -> TimeKind:
        return self._spec.layouts[0].time_kind

    def _since(self, origins: I64, code: int) -> F64:
        """How long after some times a watermark is."""
        if code == BEGINNING:
            return np.full(len(origins), -np.inf)
        gone = clock_of(np.array([code]), self._kind) - clock_of(origins, self._kind)
        return gone.astype(np.float64) * unit_of(self._kind)

    def _is_final(self, found: Regions, held: Predictions, watermark: int) -> Bools:
        """Whether regions end before the watermark: all that can still come is at it, or after it.

        Asked of the watermark before this step, it is whether they were shown already.
        """
        since = self._since(held.code[found.members[:, 0]], watermark)
        return found.interval[:, 1] < since - _MARGIN * np.maximum(1.0, np.abs(since))

    def _validate(self, before: int, ended: bool, shown: list[pa.Table]) -> None:
        """Show what is final of the pending choices, and forget those of which nothing is left."""
        if not len(self._members):
            return
        since = self._since(self._held.code[self._members[:, 0]], self._watermark.at)
        is_due = np.ones(len(self._due), np.bool_) if ended else self._due < since
        members = self._members[is_due]
        self._members, self._due = self._members[~is_due], self._due[~is_due]
        found = self._evaluator.regions(self._held, members)
        found = found.take(~self._is_final(found, self._held, before))
        final = np.ones(len(found), np.bool_) if ended else self._is_final(found, self._held, self._watermark.at)
        shown += self._show(found.take(final), self._held, VALIDATED)
        self._remember(found.take(~final))

    def _partial(self) -> list[pa.Table]:
        """With EVERY, at each tick that the watermark passes: what is validated so far of answers that go on."""
        every = self._spec.analysis.query.every
        if every is None or self._watermark.at == BEGINNING or not len(self._members):
            return []
        scale = unit_of(self._kind)
        ticks = float(clock_of(np.array([self._watermark.at]), self._kind)[0]) * scale / every
        # A watermark of doubles trails by a rounding: 9.999999999999998 has passed 10.
        tick = np.floor(ticks + 16 * np.finfo(np.float64).eps * abs(ticks)) * every
        if tick <= self._ticked:
            return []
        last, self._ticked = self._ticked, tick
        clock = clock_of(self._held.code, self._kind)
        until = tick - clock * scale
        found = self._evaluator.regions(self._held.ending(np.minimum(self._held.end, until)), self._members)
        origin = clock[found.members[:, 0]] * scale
        grown = origin + found.interval[:, 1] > last
        return self._show(found.take(grown), self._held, PARTIAL)

    def _show(self, found: Regions, held: Predictions, status: str) -> list[pa.Table]:
        spec = self._spec
        if not len(found) or not (spec.live or status == VALIDATED):
            return []
        return [table_of(found, held, status, spec.answer_schema, spec.layouts, spec.streams, self._arrivals.keys)]

    # ------------------------------------------------------------ memory

    def _forget(self) -> None:
        """Forget predictions that nothing to come can be compared with, and that no pending choice is of."""
        if not self._spec.live:
            return
        needed = np.zeros(len(self._held), np.bool_)
        needed[self._members.reshape(-1)] = True
        window = self._spec.analysis.query.within
        since = self._since(self._held.code, self._watermark.at)
        needed |= self._held.buffered & (self._held.end + window >= since)
        if needed.all():
            return
        place = np.cumsum(needed) - 1
        self._held = self._held.take(needed)
        self._members = place[self._members]
