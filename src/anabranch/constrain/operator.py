"""The operators of CONSTRAIN."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64, Bools
from anabranch.constrain.analysis import LOOSE, NOINDEX
from anabranch.constrain.events import numbers_of_events, role_types
from anabranch.constrain.kernel.run import Run
from anabranch.constrain.kernel.tables import CHAIN_ROUNDING, Events
from anabranch.constrain.solutions import Answers
from anabranch.constrain.spec import ConstrainSpec
from anabranch.constrain.waiting import Waiting
from anabranch.events.batch import Batch
from anabranch.events.members import Renumbering
from anabranch.events.operator import EventOperator
from anabranch.transport.operator import Counts, Outcome
from anabranch.transport.watermark import Progress


class ConstrainOperator(EventOperator):
    """The operator of one bucket of CONSTRAIN queries."""

    def __init__(self, spec: ConstrainSpec) -> None:
        self._spec = spec
        super().__init__(spec, role_types(spec.layouts))

    def in_order(self, batch: Batch) -> Batch:
        """The events in order of time; the order of events at one time is the same in every bucket."""
        order = batch.by_time_and_location()
        return batch if (order[1:] > order[:-1]).all() else batch.take(order)

    def answers_of(self, batch: Batch, ended: bool, counts: Counts) -> pa.Table:
        """Every solution whose last event is new."""
        answers = Answers(self._spec, batch)
        run = self._run(numbers_of_events(batch, self._spec.lowered.columns))
        for query, solutions in self._solutions(run, answers):
            self._take(query, solutions, answers)
        counts.kept = run.peak(batch.counted)
        self._decide(run, answers, ended)
        self._keep(batch, run, run.kept(self.now))
        return answers.table()

    def open(self, state: bytes | None) -> None:
        """Start with an empty state, or resume from saved bytes."""
        self._waiting = Waiting()
        super().open(state)

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        """Load kept events, and the solutions that wait for later events."""
        self._waiting = Waiting.load(tables)
        super().load(tables)

    def renumber(self, new: Renumbering) -> Bools:
        """Convert loaded state of another set of queries."""
        is_kept = super().renumber(new)
        self._waiting.rename(new.queries)
        self._waiting.renumber(is_kept)
        return is_kept

    def tables(self) -> dict[str, pa.Table]:
        """The tables of the state."""
        return super().tables() | self._waiting.save()

    def _solutions(self, run: Run, answers: Answers) -> Iterator[tuple[int, I64]]:
        """The solutions of each query, in parts.

        Raises
        ------
        TooManyAnswers
            If one event completes too many of them.
        """
        yield from run.solutions(self._spec.max_answers)
        if run.stopped is not None:
            query, event = run.stopped
            raise answers.exceeded(query, np.array([[event]]))

    def _take(self, query: int, solutions: I64, answers: Answers) -> None:
        """Add solutions to the answers, or to those that wait."""
        fitting = answers.fitting(query, solutions)
        if self._spec.analyses[query].awaited:
            possible = answers.possible(query, fitting)
            if self._waiting.count(query) + len(possible) > self._spec.max_answers:
                raise answers.exceeded(query, possible)
            self._waiting.add(query, possible)
        else:
            answers.add(query, fitting)

    def _decide(self, run: Run, answers: Answers, ended: bool) -> None:
        """Add the waiting solutions to the answers that can be decided, and are not false."""
        for query, solutions in self._waiting.decided(self._spec.lowered.graph, run, self.now, ended):
            for complete in answers.grown(query, solutions, run):
                answers.add(query, complete, answers.absence(query, complete, run))

    def _keep(self, batch: Batch, run: Run, is_needed: Bools) -> None:
        """Set `kept` to the roles that are needed, and to the events of waiting solutions."""
        if len(self._waiting):
            event = np.repeat(np.arange(len(batch)), np.diff(batch.first))
            is_needed = is_needed | self._waiting.has_event(len(batch))[event]
            is_kept = np.zeros(len(batch), np.bool_)
            is_kept[event[is_needed]] = True
            self._waiting.renumber(is_kept)
        self.kept = batch.with_roles(is_needed, expires=run.expires, met=run.met)

    def _run(self, events: Events) -> Run:
        """A run over the kept events and those that follow them."""
        spec, kept = self._spec, self.kept
        return Run(
            spec.lowered.graph, events, spec.strategy != NOINDEX, spec.strategy != LOOSE,
            len(kept), kept.roles["expires"], kept.roles["met"],
        )  # fmt: skip


class EarlyOperator(ConstrainOperator):
    """The operator of live queries of which some have EMIT EARLY: these report a solution when its last event arrives.

    A solution among events that are not late never becomes false, so nothing has to be waited for. All events that are
    not late are searched, in order of time, whether they are ready or held. A solution with a new event is reported;
    its other events arrived before it or with it, so it is reported in one step only. Queries without EMIT EARLY report
    the solutions whose last event is ready now. Events are kept and dropped as without EMIT EARLY, when the watermark
    passes them; held events are searched again in the next step, as far as new ones can be near them in time.
    """

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: Progress, ended: bool) -> Outcome:
        """Process packets; return all solutions that are new, and those that are decided before the watermark."""
        advance = self._watermark.advance(watermark)
        arrived = self._arrived(packets, watermark)
        is_late = advance.is_late(arrived.event_time, arrived.stream)
        rejected = arrived.where(is_late).quarantined_late()
        n_held = len(self._buffer.held)
        events = Batch.concat([self._buffer.held, arrived.where(~is_late)])
        # A duplicate has the time of its original, which is held until both can have arrived.
        again = events.repeated()
        counts = Counts(duplicate=int((again & events.counted).sum()), late=rejected.num_rows)
        is_new = (np.arange(len(events)) >= n_held)[~again]
        events = events.where(~again)
        is_ready = advance.is_ready(events.event_time, events.stream)
        counts.used = int(events.counted[is_ready].sum())
        self._buffer.held = events.where(~is_ready)
        is_idle = not (is_new | is_ready).any() and not len(self._waiting)
        answers = self._no_answers if is_idle else self._searched(events, is_new, is_ready, ended)
        counts.kept = int(self.kept.counted.sum() + self._buffer.held.counted.sum())
        return Outcome(answers, rejected, counts)

    def _searched(self, events: Batch, is_new: Bools, is_ready: Bools, ended: bool) -> pa.Table:
        """The solutions to report; sets `kept` to what later events may need."""
        order = events.by_time_and_location()
        order = order[(is_ready | self._near(events, is_new))[order]]
        n_kept = len(self.kept)
        batch = Batch.concat([self.kept, events.take(order)])
        new, ready = (np.concatenate([np.zeros(n_kept, np.bool_), flags[order]]) for flags in (is_new, is_ready))
        arrays = numbers_of_events(batch, self._spec.lowered.columns)
        # A solution before all new events, and with a last event that is not ready, is not reported.
        first_new = int(np.argmax(new)) if new.any() else len(batch)
        arrays.roles["is_primary"] &= (ready | (np.arange(len(batch)) >= first_new))[arrays.roles["event"]]
        answers, run = Answers(self._spec, batch), self._run(arrays)
        for query, solutions in self._solutions(run, answers):
            is_early = self._spec.analyses[query].query.is_early
            is_reported = new[solutions].any(axis=1) if is_early else ready[solutions.max(axis=1)]
            self._take(query, solutions[is_reported], answers)
        self._decide(run, answers, ended)
        old_or_ready = np.concatenate([np.ones(n_kept, np.bool_), ready[n_kept:]])[arrays.roles["event"]]
        self._keep(batch, run, run.kept(self.now) & old_or_ready)
        return answers.table()

    def _near(self, events: Batch, is_new: Bools) -> Bools:
        """Which events can be in a solution with a new event: not further from it in time than any bound allows."""
        if not is_new.any():
            return is_new
        t, span = events.t, self._spec.longest_span
        low, high = t[is_new].min(), t[is_new].max()
        if t.dtype == np.float64:
            span += CHAIN_ROUNDING * max(abs(low), abs(high), span)
        return (t >= low - span) & (t <= high + span)
