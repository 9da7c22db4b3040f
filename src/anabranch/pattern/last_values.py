"""The operator of PATTERN queries whose states are sets of partial results: few of them, so that they can stream.

In `at(p, l1) THEN at(p, l2) WHERE l1 <> l2`, every event of p ends the partial result before it. A state of the
automaton is a set of partial results (`machine.py`), each with the values that it keeps. With WITHIN, the partial
results of a regular query keep no values, but their ages. In both cases there are few such sets, so a stream can be
answered like a regular query.
"""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa

from anabranch.arrays import I32
from anabranch.columns.dictionary import is_worth_removing
from anabranch.pattern.automaton import Automaton
from anabranch.pattern.intake import Used
from anabranch.pattern.machine import Machine, Partial, SetMachine
from anabranch.pattern.operator import PatternOperator
from anabranch.pattern.partial_sets import PartialSets
from anabranch.pattern.signatures import read_signatures
from anabranch.pattern.weights import Batch
from anabranch.pattern.within import Clock
from anabranch.transport.rows import Rows


class LastValuesOperator(PatternOperator):
    """The operator of one bucket."""

    _pages_chains = False

    def _open_automaton(self) -> None:
        spec = self._spec
        machine = Machine(spec.analysis, spec.relations)
        self._sets = SetMachine(machine, sys.maxsize)
        self._partial_sets = PartialSets(spec)
        within = spec.analysis.query.within
        self._clock = None if within is None else Clock(within, spec.time_kind)
        self._automaton = self._new_automaton()

    def _new_automaton(self) -> Automaton[frozenset[Partial]]:
        # If only the last values count, the alternatives of one key exclude each other, and letters are not united.
        unites = self._weights.unites and not self._spec.analysis.last_values
        return Automaton(self._sets, unites, timed=None if self._clock is None else self._sets)

    def _timed(self, batch: Batch) -> Batch:
        """The batch with the ticks of the automaton."""
        return batch if self._clock is None else self._clock.timed(batch, self._automaton, self._intake.watermark)

    def _forget(self) -> None:
        """Forget the chains whose partial results are over, and states of the automaton that no chain is in."""
        if self._clock is not None:
            (self._per or self._weights).end_results(~self._clock.recent(self._intake.n_chains))
        super()._forget()
        if self._per is None:
            self._forget_states()

    def _keep(self, used: Used) -> None:
        super()._keep(used)
        if self._clock is not None:
            self._clock.keep(used.chains)

    def _forget_states(self) -> None:
        """Every new value and age makes new states."""
        used = self._weights.used_states()
        used[0] = True
        if is_worth_removing(used):
            self._weights.keep_states(used)
            states = [self._automaton.states[number] for number in np.flatnonzero(used)]
            self._automaton = self._new_automaton()
            self._automaton.extend((), states)

    def _letters(self, rows: Rows) -> I32:
        """The index of the letter of each row's event."""
        index, signatures, _ = read_signatures(self._intake, self._spec.analysis, rows)
        letters = [self._sets.letter_of(signature) for signature in signatures]
        self._automaton.extend(letters)
        return self._automaton.index_of(letters)[index] if letters else np.zeros(0, np.int32)

    def _save_automaton(self) -> dict[str, pa.Table]:
        return {"automaton": self._save_states()} | ({} if self._clock is None else self._clock.save())

    def _load_automaton(self, tables: dict[str, pa.Table]) -> None:
        self._load_states(tables["automaton"])
        if self._clock is not None:
            self._clock.load(tables)

    def _save_states(self) -> pa.Table:
        return self._partial_sets.table(self._automaton.states)

    def _load_states(self, states: pa.Table) -> None:
        self._automaton.extend((), self._partial_sets.read(states))
