"""PATTERN where it can stream: keys placed in buckets by chain, values turned into letters, weights carried on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anabranch.language.typed import Typed
from anabranch.pattern.analysis import PatternAnalysis
from anabranch.pattern.automaton import Automaton, RegularMachine
from anabranch.pattern.intake import Intake
from anabranch.pattern.weights import Batch, weights_for
from anabranch.rows.conditions import holds
from anabranch.rows.dictionary import flat
from anabranch.rows.inbox import Rows
from anabranch.rows.operator import Operator, Outcome
from anabranch.rows.packing import Layout, hash_tuples
from anabranch.rows.routing import KeyPlacement
from anabranch.rows.state import seal, unseal
from anabranch.rows.times import decode_times


@dataclass(frozen=True)
class PatternJob(KeyPlacement):
    """A PATTERN query as the workers need it."""

    analysis: PatternAnalysis
    layouts: tuple[Layout, ...]
    relations: dict[str, pa.Table]
    fingerprint: str

    @property
    def direct(self) -> bool:
        """Whether each chain's answers are the query's own: nothing is left to combine over chains."""
        return len(self.analysis.group_by) == len(self.analysis.chain)

    @property
    def chain_types(self) -> list[pa.DataType]:
        """The types of the chain variables: DOUBLE where it is a key of streams that differ in their numbers."""
        of_streams = [
            [layout.key_types[position] for position in positions]
            for layout, positions in zip(self.layouts, self.analysis.chain_positions, strict=True)
        ]
        return [pa.float64() if pa.float64() in kinds else kinds[0] for kinds in zip(*of_streams, strict=True)]

    @property
    def answer_schema(self) -> pa.Schema:
        """t, the grouping columns, and the probability.

        Where chains are still to be combined: the logarithm of the probability that none is true.
        """
        return pa.schema([*self._head, pa.field("probability" if self.direct else "log_none", pa.float64())])

    @property
    def _head(self) -> list[pa.Field]:
        """The columns that tell one answer from another."""
        groups = [pa.field(name, self.chain_types[place]) for name, place in self.analysis.group_by]
        return [pa.field("t", self.layouts[0].time_kind.arrow_type), *groups]

    @property
    def spread_by(self) -> tuple[int, ...]:
        """The places in the chain of those variables by which keys are spread over buckets."""
        return tuple(range(len(self.analysis.chain)))

    def buckets(self, stream: int, keys: pa.Table, n_buckets: int) -> npt.NDArray[np.int64]:
        """The bucket of each key: by its chain, or -1 where no goal can ever match it."""
        columns = [flat(column) for column in keys.columns]
        positions, kinds = self.analysis.chain_positions[stream], self.chain_types
        spread = [columns[positions[place]].cast(kinds[place]) for place in self.spread_by]
        buckets = (hash_tuples(spread, keys.num_rows) % np.uint64(n_buckets)).astype(np.int64)
        names = [column.name.lower() for column in self.analysis.streams[stream].keys]
        by_name = dict(zip(names, columns, strict=True))
        buckets[~holds(self.needed(stream), by_name, self.relations, keys.num_rows)] = -1
        return buckets

    def needed(self, stream: int) -> Typed | None:
        """What a key must meet to take part in any answer."""
        return self.analysis.needed(stream)

    def intake(self) -> Intake:
        """What reads the packets of one bucket."""
        return Intake(self.analysis, self.layouts, self.chain_types, self.relations)

    def operator(self) -> Operator:
        """The operator of one bucket."""
        return PatternOperator(self)

    def finish(self, answers: DataFrame) -> DataFrame:
        """The result columns; without GROUP BY, P(some chain is true) = 1 - prod(1 - p), summed as logarithms."""
        groups = [F.col(f"`{name}`") for name, _ in self.analysis.group_by]
        if not self.direct:
            combined = answers.groupBy("t", *groups).agg(F.sum("log_none").alias("log_none"))
            answers = combined.select("t", *groups, (-F.expm1("log_none")).alias("probability"))
            answers = answers.where(
                (F.col("probability") > 0) & (F.col("probability") >= self.analysis.query.threshold)
            )
        probability = F.col("probability")
        return answers.select(
            "t", *groups, probability, probability.alias("lower"), probability.alias("upper"),
            F.lit("exact").alias("method"),
        )  # fmt: skip


class PatternOperator:
    """One bucket of a PATTERN query that can stream: carries the weights of its chains forward."""

    def __init__(self, job: PatternJob) -> None:
        self._job = job
        self.open(None)

    def open(self, state: bytes | None) -> None:
        """Begin anew, or go on from saved bytes."""
        analysis = self._job.analysis
        self._intake = self._job.intake()
        self._weights = weights_for(analysis.single, analysis.markov)
        self._automaton = Automaton(RegularMachine(analysis.kleene), union_closed=self._weights.unites)
        if state is not None:
            tables = unseal(state, self._job.fingerprint)
            self._intake.load(tables)
            states = tables["automaton"]
            self._automaton.extend((), zip(states["waiting"].to_pylist(), states["repeating"].to_pylist(), strict=True))
            self._weights.load(tables)

    def save(self) -> bytes:
        """The state, to be opened again."""
        waiting, repeating = zip(*self._automaton.states, strict=True)
        tables = self._intake.save() | self._weights.save()
        tables["automaton"] = pa.table({"waiting": waiting, "repeating": repeating})
        return seal(tables, self._job.fingerprint)

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: int, ended: bool) -> Outcome:
        """Take packets and give every answer about instants before the watermark."""
        received = self._intake.receive(packets, watermark)
        batch = Batch.of(received, self._letters(received.rows), self._intake.n_values)
        self._weights.grow(self._intake.n_chains, len(self._automaton.states))
        answers = self._answers(*self._weights.step(batch, self._automaton))
        return Outcome(answers, received.rejected, received.counts)

    def _letters(self, rows: Rows) -> npt.NDArray[np.int32]:
        """The number of the letter that each row's event emits."""
        letter = np.zeros(len(rows), np.int32)
        for events in self._intake.distinct_events(rows):
            masks, place = np.unique(self._intake.masks(events), return_inverse=True)
            self._automaton.extend(masks.tolist())
            letter[events.rows] = self._automaton.index_of(masks.tolist())[place][events.event]
        return letter

    def _answers(self, chains, times, probabilities) -> pa.Table:
        """Answers in the schema of the job; chains that one group holds together are combined."""
        job = self._job
        if job.direct:
            kept = probabilities >= job.analysis.query.threshold
            chains, times, probabilities = chains[kept], times[kept], probabilities[kept]
        columns = self._intake.chains.take(chains) if job.analysis.group_by else []
        arrays = [decode_times(times, job.layouts[0].time_kind)]
        arrays += [columns[place] for _, place in job.analysis.group_by]
        if job.direct:
            return pa.table([*arrays, pa.array(probabilities)], schema=job.answer_schema)
        with np.errstate(divide="ignore"):
            log_none = pa.array(np.log1p(-probabilities))
        names = job.answer_schema.names
        table = pa.table([*arrays, log_none], names=names)
        summed = table.group_by(names[:-1], use_threads=False).aggregate([("log_none", "sum")])
        return summed.rename_columns({"log_none_sum": "log_none"}).select(names).cast(job.answer_schema)
