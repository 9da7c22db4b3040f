"""The operator of a PATTERN query that can stream: it maps values to letters and updates the weights of its chains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I32, I64
from anabranch.binding.per import PerEpisode, PerWindow
from anabranch.columns.times import decode_times
from anabranch.pattern.analysis import PatternAnalysis
from anabranch.pattern.automaton import Automaton, RegularMachine
from anabranch.pattern.cold import ColdChains
from anabranch.pattern.episodes import Episodes
from anabranch.pattern.groups import Groups
from anabranch.pattern.intake import Intake, Received, Used
from anabranch.pattern.spec import PatternSpec
from anabranch.pattern.weights import Batch, CellWeights, weights_for
from anabranch.pattern.windows import Windows
from anabranch.transport.operator import Outcome
from anabranch.transport.pages import Pages, PageStore
from anabranch.transport.per import Moment
from anabranch.transport.rows import Rows
from anabranch.transport.state import seal, unseal


def regular_machine(analysis: PatternAnalysis) -> RegularMachine:
    """The machine of a regular query."""
    return RegularMachine(analysis.kleene, analysis.rebound, analysis.absent)


class PatternOperator:
    """The operator of one bucket of a PATTERN query that can stream."""

    #: Whether chains without new rows can move to pages: states are pairs of numbers (`RegularMachine`).
    _pages_chains = True

    def __init__(self, spec: PatternSpec) -> None:
        self._spec = spec
        self.open(None)

    def open(self, state: bytes | None) -> None:
        """Start empty (None), or resume from saved bytes."""
        analysis = self._spec.analysis
        self._intake = Intake(self._spec)
        self._weights = weights_for(analysis.single, analysis.markov)
        self._per = self._rows_of_several_answers()
        self._open_automaton()
        self._cold: ColdChains | None = None
        self._directory: pa.Table | None = None
        if state is not None:
            tables = unseal(state, self._spec.fingerprint)
            self._intake.load(tables)
            self._load_automaton(tables)
            (self._per or self._weights).load(tables)
            self._directory = tables.get("pages")

    def _rows_of_several_answers(self) -> Windows | Episodes | None:
        """What PER asks for; None without it."""
        per, groups = self._spec.spans, Groups(self._spec, self._intake)
        if isinstance(per, PerWindow):
            return Windows(self._spec, per, groups)
        return Episodes(self._spec, per, groups) if isinstance(per, PerEpisode) else None

    def _open_automaton(self) -> None:
        machine = regular_machine(self._spec.analysis)
        self._automaton: Automaton[Any] = Automaton(machine, union_closed=self._weights.unites)

    def _load_automaton(self, tables: dict[str, pa.Table]) -> None:
        """Restore the states of the automaton from what `_save_automaton` returned."""
        states = tables["automaton"]
        self._automaton.extend((), zip(states["waiting"].to_pylist(), states["repeating"].to_pylist(), strict=True))

    def _save_automaton(self) -> dict[str, pa.Table]:
        waiting, repeating = zip(*self._automaton.states, strict=True)
        return {"automaton": pa.table({"waiting": waiting, "repeating": repeating})}

    def use_pages(self, store: PageStore) -> None:
        """Keep cold chains in a store; not those with rows of several answers, nor with joint weights."""
        weights, has_chains = self._weights, bool(self._spec.analysis.chain)
        if self._pages_chains and has_chains and self._per is None and isinstance(weights, CellWeights):
            pages = Pages.open(store, self._spec.fingerprint, self._directory)
            self._cold = ColdChains(pages, self._intake, weights, self._automaton)

    def save(self) -> bytes:
        """The state as bytes, for `open`."""
        return seal(self._tables(), self._spec.fingerprint)

    def _tables(self) -> dict[str, pa.Table]:
        """The state as tables."""
        pages = {} if self._cold is None else {"pages": self._cold.pages.save()}
        return pages | self._intake.save() | (self._per or self._weights).save() | self._save_automaton()

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: int, ended: bool) -> Outcome:
        """Take packets and return all answers about instants before the watermark."""
        if self._cold is not None:
            self._cold.warm(packets)
        received = self._intake.receive(packets, watermark, ended)
        batch = self._timed(Batch.of(received, self._letters(received.rows), self._intake.n_values))
        if self._per is not None:
            now = Moment(self._intake.watermark, ended, received.instants)
            answers = self._per.step(batch, self._automaton, now)
        else:
            self._weights.grow(self._intake.n_chains, len(self._automaton.states))
            answers = self._answers(*self._weights.step(batch, self._automaton))
        if self._spec.live and self._intake.forgets:
            self._cool(received)
            self._forget()
        return Outcome(answers, received.rejected, received.counts)

    def _timed(self, batch: Batch) -> Batch:
        """The batch with the ticks of the automaton; regular states have no ages."""
        return batch

    def _forget(self) -> None:
        """Forget the chains that are as new ones: a later row of their keys starts them again."""
        state = self._per or self._weights
        needed = self._intake.needed(~state.is_new())
        used = self._intake.used(needed, state.used_keys(), state.used_values())
        if used.is_minority:
            self._keep(used)

    def _cool(self, received: Received) -> None:
        """Move the chains without rows in this step to pages, if they are many."""
        if self._cold is None:
            return
        busy = np.zeros(self._intake.n_chains, np.bool_)
        busy[received.chain] = True
        hot = self._cold.cool(busy)
        if hot is not None:
            self._keep(self._intake.used(hot, self._weights.used_keys(), self._weights.used_values()))

    def _keep(self, used: Used) -> None:
        """Forget all other chains, keys and values."""
        state = self._per or self._weights
        state.keep(used.chains)
        state.renumber(*self._intake.keep(used))

    def _letters(self, rows: Rows) -> I32:
        """The index of the letter of each row's event."""
        letter = np.zeros(len(rows), np.int32)
        for events in self._intake.distinct_events(rows):
            masks, mask_index = np.unique(self._intake.masks(events), return_inverse=True)
            self._automaton.extend(masks.tolist())
            letter[events.rows] = self._automaton.index_of(masks.tolist())[mask_index][events.event]
        return letter

    def _columns(self, chains: I32) -> list[pa.Array]:
        """The variables of each chain, in the order of `PatternAnalysis.group_by`."""
        return self._intake.chains.take(chains)

    def _answers(self, chains: I32, times: I64, probabilities: F64) -> pa.Table:
        """Answers in the schema of the specification; the chains of a group are combined."""
        spec = self._spec
        if spec.direct:
            kept = probabilities >= spec.analysis.query.least_probability
            chains, times, probabilities = chains[kept], times[kept], probabilities[kept]
        columns = self._columns(chains) if spec.analysis.group_by else []
        arrays = [decode_times(times, spec.time_kind)]
        arrays += [columns[index] for _, index in spec.analysis.group_by]
        if spec.direct:
            return pa.table([*arrays, pa.array(probabilities)], schema=spec.answer_schema)
        with np.errstate(divide="ignore"):
            log_none = pa.array(np.log1p(-probabilities))
        names = spec.answer_schema.names
        table = pa.table([*arrays, log_none], names=names)
        summed = table.group_by(names[:-1], use_threads=False).aggregate([("log_none", "sum")])
        return summed.rename_columns({"log_none_sum": "log_none"}).select(names).cast(spec.answer_schema)
