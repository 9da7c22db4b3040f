"""Quarantines packets of rows whose times jump too far ahead (`jumps.py`).

Only operators can turn packets into rows of the source, which they do for late rows. So the packets go to a new
operator for which all their rows are late.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from anabranch.transport.checks import AHEAD, QUARANTINE
from anabranch.transport.job import Job
from anabranch.transport.watermark import Clock


def quarantine_ahead(job: Job, packets: Sequence[tuple[int, bytes]], newest: Sequence[int]) -> pa.Table:
    """The rows of packets as a QUARANTINE table; `newest` is the newest time of each stream in them."""
    if not packets:
        return QUARANTINE.empty_table()
    operator, past_all = job.operator(), Clock(job.layouts).advance(newest, ended=True)
    operator.step([], past_all, ended=False)
    late = operator.step(packets, past_all, ended=False).rejected
    reasons = pa.array([AHEAD] * late.num_rows, pa.string())
    return late.set_column(late.schema.get_field_index("reason"), "reason", reasons)
