"""The operator of a PATTERN query whose conditions join goals, but need only the last values of a chain.

In `at(p, l1) THEN at(p, l2) WHERE l1 <> l2`, every event of p ends the partial result before it. A state of the
automaton is a set of partial results (`machine.py`), each with the values that it keeps; there are few such sets, so a
stream can be answered like a regular query.
"""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa

from anabranch.arrays import I32
from anabranch.pattern.automaton import Automaton
from anabranch.pattern.machine import Machine, SetMachine
from anabranch.pattern.operator import PatternOperator
from anabranch.pattern.partial_sets import PartialSets
from anabranch.pattern.signatures import read_signatures
from anabranch.transport.rows import Rows


class LastValuesOperator(PatternOperator):
    """The operator of one bucket."""

    def _open_automaton(self) -> None:
        spec = self._spec
        self._sets = SetMachine(Machine(spec.analysis, spec.relations), sys.maxsize)
        self._partial_sets = PartialSets(spec)
        # The alternatives of one key exclude each other, so letters are not united.
        self._automaton = Automaton(self._sets)

    def _letters(self, rows: Rows) -> I32:
        """The index of the letter of each row's event."""
        index, signatures, _ = read_signatures(self._intake, self._spec.analysis, rows)
        letters = [self._sets.letter_of(signature) for signature in signatures]
        self._automaton.extend(letters)
        return self._automaton.index_of(letters)[index] if letters else np.zeros(0, np.int32)

    def _save_states(self) -> pa.Table:
        return self._partial_sets.table(self._automaton.states)

    def _load_states(self, states: pa.Table) -> None:
        self._automaton.extend((), self._partial_sets.read(states))
