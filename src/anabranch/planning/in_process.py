"""Runs a job in this process, in one bucket, with the operators and the finishing rules of a run over an archive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from anabranch.transport.finishing import Finishing, finish_table
from anabranch.transport.job import Job
from anabranch.transport.routing import Routed, route
from anabranch.transport.watermark import Clock, Progress


def answers_in_process(
    job: Job, tables: Sequence[pa.Table], query: int = 0, newest: Sequence[int] = ()
) -> tuple[pa.Table, int]:
    """The answers of a query about some rows, one table per stream, and the size of the packets.

    Rows of several answers (PER) that are made after the operators are not made. `newest` is as for `routed_packets`.
    """
    packets, watermark = routed_packets(job, tables, newest)
    outcome = job.operator().step(packets, watermark, ended=True)
    return _finished(job.finishing(query).of_answers(), outcome.answers), sum(len(blob) for _, blob in packets)


def routed_packets(
    job: Job, tables: Sequence[pa.Table], newest: Sequence[int] = ()
) -> tuple[list[tuple[int, bytes]], Progress]:
    """The packets of all rows, and the watermark after the end of the input.

    `newest` has the code of the newest time of each stream, if the tables do not have all rows: inferred streams have
    rows up to it.
    """
    routed = [route(table, stream, job, 1) for stream, table in enumerate(tables)]
    times = [part.newest for part in routed]
    times = [max(pair) for pair in zip(times, newest, strict=True)] if newest else times
    return packets_of(routed), Clock(job.layouts).advance(times, ended=True)


def packets_of(routed: Sequence[Routed], bucket: int = 0) -> list[tuple[int, bytes]]:
    """The packets of all streams that a bucket gets."""
    return [(stream, blob) for stream, part in enumerate(routed) for to, blob in part.packets if to == bucket]


def _finished(rules: Finishing, answers: pa.Table) -> pa.Table:
    """The result of operators; pairs are formed in one block."""
    if rules.pairing is None:
        return finish_table(rules, answers)
    answers = finish_table(replace(rules, pairing=None, columns=None, calibration=None), answers)
    members = []
    for number, side in enumerate(rules.pairing.sides):
        rows = answers.filter(pc.equal(answers["stream"], side.stream))
        constants = [pa.repeat(pa.scalar(value, pa.int32()), rows.num_rows) for value in (0, number)]
        names = ["block", "side", *rows.column_names]
        members.append(pa.table([*constants, *rows.columns], names=names))
    return rules.pairing.decide(pa.concat_tables(members))
