"""EMIT EARLY: provisional answers about the instants that the watermark has not passed.

After each step, a copy of the operator goes on as if the input ended now. Its answers are what is known about the
instants of the rows that are held. The copy is dropped, so final answers are those of a query without EMIT EARLY. This
works for every operator of a PATTERN, and for inferred streams.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from anabranch.columns.statuses import PROVISIONAL
from anabranch.transport.operator import Operator, Outcome
from anabranch.transport.watermark import Progress

#: The column that says whether an answer is final.
STATUS = pa.field("status", pa.string())
FINAL = "final"


class EarlyOperator:
    """The operator of one bucket of a query with EMIT EARLY.

    Parameters
    ----------
    make : makes an operator of the query without EMIT EARLY
    live : whether the inputs are live; otherwise all answers are final
    """

    def __init__(self, make: Callable[[], Operator], live: bool) -> None:
        self._make, self._live = make, live
        self._operator = make()

    def open(self, state: bytes | None) -> None:
        """Start empty (None), or resume from saved bytes."""
        self._operator.open(state)

    def save(self) -> bytes:
        """The state as bytes, for `open`."""
        return self._operator.save()

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: Progress, ended: bool) -> Outcome:
        """Take packets; return the answers about all instants, which are final before the watermark."""
        outcome = self._operator.step(packets, watermark, ended)
        answers = [_with_status(outcome.answers, FINAL)]
        if self._live and not ended:
            ahead = self._make()
            ahead.open(self._operator.save())
            rest = ahead.step([], watermark.to_end(), ended=True)
            answers.append(_with_status(rest.answers, PROVISIONAL))
        return replace(outcome, answers=pa.concat_tables(answers))


def _with_status(answers: pa.Table, status: str) -> pa.Table:
    return answers.append_column(STATUS, pa.repeat(pa.scalar(status), answers.num_rows))
