"""The operator of any combination on a stream: its chains are carried from instant to instant (`chain.py`)."""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa

from anabranch.arrays import Bools
from anabranch.pattern.combined import CombinedSpec, GroupAnswers, GroupRows
from anabranch.pattern.combined_machine import CombinedMachine
from anabranch.pattern.general import GeneralOperator
from anabranch.pattern.history import History
from anabranch.pattern.intake import Received, Used
from anabranch.pattern.machine import Transitions
from anabranch.pattern.signatures import Signed
from anabranch.transport.per import Moment


class CombinedGeneral(GeneralOperator):
    """The operator of one bucket; partial results are those of all operands."""

    def __init__(self, spec: CombinedSpec) -> None:
        self._combined = spec
        self._operands = spec.analysis.on_streams
        super().__init__(spec)

    def _transitions(self) -> Transitions:
        return CombinedMachine(self._operands, self._spec.relations)

    def open(self, state: bytes | None) -> None:
        """Start empty (None), or resume from saved bytes."""
        super().open(state)
        if state is None:
            self._group_answers = GroupAnswers(self._combined, self._intake)

    def _load(self, tables: dict[str, pa.Table]) -> None:
        super()._load(tables)
        self._group_answers = GroupAnswers(self._combined, self._intake)
        self._group_answers.load(tables)

    def _tables(self) -> dict[str, pa.Table]:
        return super()._tables() | self._group_answers.save()

    @property
    def _forgets(self) -> bool:
        """Not if every key has answers from its first row on."""
        return super()._forgets and not self._spec.needs_instants

    def _keep(self, used: Used, nodes: Bools) -> None:
        super()._keep(used, nodes)
        self._group_answers.keep(used.chains)

    def _signed(self, received: Received) -> Signed:
        return Signed.of_operands(self._intake, self._operands, received)

    def _answers(self, received: Received, histories: dict[int, History], now: Moment) -> pa.Table:
        answers = self._group_answers
        answers.note(received)
        group_of = answers.group_of_chains()
        of_groups: dict[int, dict[int, History]] = defaultdict(dict)
        for number, history in histories.items():
            of_groups[int(group_of[number])][number] = history
        parts: list[GroupRows] = []
        for group, own in of_groups.items():
            chains = {number: self._chains[number] for number in own}
            parts += answers.carried_rows(group, chains, own, self._earlier)
        return answers.table([*parts, answers.default_rows(parts, received.instants)])
