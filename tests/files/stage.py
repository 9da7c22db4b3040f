"""The stage that reads files on the workers, and the operators after it, in one process without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from anabranch.files.reader import FileReader
from anabranch.runtime.packets import BucketInput, Packing, pack_files
from anabranch.transport.operator import Counts
from anabranch.transport.watermark import Clock


def process_files(
    job: Any, reader: FileReader, tasks: Sequence[dict[str, Any]], live: bool = True, n_buckets: int = 2
) -> tuple[Counts, list[dict[str, str]]]:
    """Read files and step the operators of all buckets past their end; returns the counts and the quarantined rows."""
    stage = pack_files(Packing(job, 0, n_buckets, every=live), reader)
    inputs = [BucketInput(len(job.layouts)) for _ in range(n_buckets)]
    # One task after the other, as Spark's batches of paths may have several.
    for packets in stage(iter([pa.RecordBatch.from_pylist([task]) for task in tasks])):
        for row in packets.to_pylist():
            inputs[row["bucket"]].add(row)
    newest = [max(received.newest[stream] for received in inputs) for stream in range(len(job.layouts))]
    counts, rejected = Counts(), []
    for received in inputs:
        operator = job.operator()
        operator.open(None)
        outcome = operator.step(received.packets, Clock(job.layouts).advance(newest, ended=True), ended=True)
        counts += received.counts
        counts += outcome.counts
        rejected += received.quarantined(outcome.rejected, strict=False).to_pylist()
    return counts, rejected
