"""PATTERN on rows: places keys in buckets by chain, turns values into letters, runs the kernels, keeps the weights.

A *chain* is one binding of the variables on which the query is independent (`analysis.py`); all the keys
that feed a chain live in one bucket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anabranch.catalog import Model
from anabranch.language.bound import BoundPattern
from anabranch.language.typed import Typed, references
from anabranch.pattern import kernel
from anabranch.pattern.analysis import PatternAnalysis, analyse
from anabranch.pattern.automaton import Automaton, accept_bit, match_bit
from anabranch.pattern.weights import Batch, weights_for
from anabranch.rows.checks import LATE, OVERFULL, quarantine
from anabranch.rows.conditions import holds
from anabranch.rows.dictionary import Dictionary, encode_pairs, flat
from anabranch.rows.inbox import Inbox, Rows
from anabranch.rows.operator import Counts, Outcome
from anabranch.rows.packing import Layout, hash_tuples
from anabranch.rows.state import seal, unseal
from anabranch.rows.times import decode_times

_KERNEL_MODEL = {
    Model.CERTAIN: kernel.CERTAIN,
    Model.INDEPENDENT: kernel.INDEPENDENT,
    Model.MARKOV: kernel.MARKOV,
}


@dataclass(frozen=True, slots=True)
class PatternJob:
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
        fields = [pa.field("t", self.layouts[0].time_kind.arrow_type)]
        fields += [pa.field(name, self.chain_types[place]) for name, place in self.analysis.group_by]
        return pa.schema([*fields, pa.field("probability" if self.direct else "log_none", pa.float64())])

    def buckets(self, stream: int, keys: pa.Table, n_buckets: int) -> npt.NDArray[np.int64]:
        """The bucket of each key: by its chain, or -1 where no goal can ever match it."""
        columns = [flat(column) for column in keys.columns]
        positions = self.analysis.chain_positions[stream]
        chain = [columns[position].cast(kind) for position, kind in zip(positions, self.chain_types, strict=True)]
        buckets = (hash_tuples(chain, keys.num_rows) % np.uint64(n_buckets)).astype(np.int64)
        names = [column.name.lower() for column in self.analysis.streams[stream].keys]
        by_name = dict(zip(names, columns, strict=True))
        buckets[~holds(self.needed(stream), by_name, self.relations, keys.num_rows)] = -1
        return buckets

    def needed(self, stream: int) -> Typed | None:
        """What a key must meet to take part in any answer."""
        return self.analysis.needed(stream)

    def operator(self) -> PatternOperator:
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


def make_job(
    query: BoundPattern, layouts: tuple[Layout, ...], relations: Mapping[str, pa.Table], fingerprint: str
) -> PatternJob:
    """A query made ready for the workers."""
    analysis, _ = analyse(query)
    return PatternJob(analysis, layouts, dict(relations), fingerprint)


class PatternOperator:
    """One bucket of a PATTERN query."""

    def __init__(self, job: PatternJob) -> None:
        self._job = job
        self._models = np.array([_KERNEL_MODEL[stream.model] for stream in job.analysis.streams], np.int32)
        self.open(None)

    def open(self, state: bytes | None) -> None:
        """Begin anew, or go on from saved bytes."""
        analysis = self._job.analysis
        self._inbox = Inbox(self._job.layouts)
        self._weights = weights_for(analysis.single, analysis.markov)
        self._automaton = Automaton(analysis.kleene, union_closed=self._weights.unites)
        # Where a chain is a key, the dictionary of keys serves for both.
        self._chains = self._inbox.keys[0] if self._chain_is_key else Dictionary(self._job.chain_types)
        self._chain_of = [np.zeros(0, np.int32) for _ in analysis.streams]
        if state is not None:
            self._load(unseal(state, self._job.fingerprint))

    @property
    def _chain_is_key(self) -> bool:
        analysis = self._job.analysis
        return analysis.single and analysis.chain_positions[0] == tuple(range(len(self._job.layouts[0].keys)))

    def _load(self, tables: dict[str, pa.Table]) -> None:
        self._inbox.load(tables)
        states = tables["automaton"]
        self._automaton.extend((), zip(states["waiting"].to_pylist(), states["repeating"].to_pylist(), strict=True))
        self._weights.load(tables)
        if not self._chain_is_key:
            self._chains.encode(tables["chains"])

    def save(self) -> bytes:
        """The state, to be opened again."""
        waiting, repeating = zip(*self._automaton.states, strict=True)
        tables = self._inbox.save() | self._weights.save()
        tables["automaton"] = pa.table({"waiting": waiting, "repeating": repeating})
        if not self._chain_is_key:
            tables["chains"] = self._chains.to_table()
        return seal(tables, self._job.fingerprint)

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: int) -> Outcome:
        """Take packets and give every answer about instants before the watermark."""
        rows, late = self._inbox.receive(packets, watermark)
        chain = self._number_chains(rows)
        n_chains = len(self._chains) if self._job.analysis.chain else 1
        model = self._models[rows.stream]
        key = rows.key if len(self._models) == 1 else rows.key * np.int32(len(self._models)) + rows.stream
        order, starts = kernel.order_rows(chain, rows.t, key, rows.prev, rows.value, rows.p, n_chains)
        status = np.zeros(len(rows), np.int8)
        used = kernel.clean_rows(order, rows.t, key, model, rows.prev, rows.value, rows.p, status)
        if len(used) < len(order):
            starts = np.concatenate([[0], np.cumsum(np.bincount(chain[used], minlength=n_chains))])
        letter = self._letters(rows)
        n_values = max(len(values) for values in self._inbox.values)
        batch = Batch(used, starts, rows.t, key, model, rows.prev, rows.value, rows.p, letter, n_values)
        self._weights.grow(n_chains, len(self._automaton.states))
        return Outcome(
            answers=self._answers(*self._weights.step(batch, self._automaton)),
            rejected=self._rejected(rows, status, late),
            counts=Counts(
                used=len(used),
                duplicate=int((status == kernel.DUPLICATE).sum()),
                late=len(late),
                quarantined=int((status == kernel.OVERFULL).sum()),
            ),
        )

    def _number_chains(self, rows: Rows) -> npt.NDArray[np.int32]:
        """The chain of each row; keys seen for the first time are given theirs."""
        if self._chain_is_key:
            return rows.key
        chain = np.zeros(len(rows), np.int32)
        for stream, positions in enumerate(self._job.analysis.chain_positions):
            known, keys = self._chain_of[stream], self._inbox.keys[stream]
            if len(known) < len(keys):
                columns = keys.take(np.arange(len(known), len(keys), dtype=np.int32))
                if positions:
                    table = pa.table({str(place): columns[position] for place, position in enumerate(positions)})
                    fresh = self._chains.encode(table)
                else:
                    fresh = np.zeros(len(keys) - len(known), np.int32)
                self._chain_of[stream] = np.concatenate([known, fresh])
            mine = rows.stream == stream
            chain[mine] = self._chain_of[stream][rows.key[mine]]
        return chain

    def _letters(self, rows: Rows) -> npt.NDArray[np.int32]:
        """The number of the letter that each row's event emits; conditions are asked once per distinct (key, value)."""
        letter = np.zeros(len(rows), np.int32)
        for stream, layout in enumerate(self._job.layouts):
            mine = rows.stream == stream if len(self._models) > 1 else slice(None)
            key, value = rows.key[mine], rows.value[mine]
            values = self._inbox.values[stream]
            if self._asks_of_key(stream):
                pair, firsts = encode_pairs(key, value, len(self._inbox.keys[stream]), len(values))
                masks = self._masks(stream, layout, key[firsts], value[firsts])
            else:
                pair = value
                masks = self._masks(stream, layout, None, np.arange(len(values), dtype=np.int32))
            distinct, place = np.unique(masks, return_inverse=True)
            self._automaton.extend(distinct)
            letter[mine] = self._automaton.index_of(distinct)[place][pair]
        return letter

    def _asks_of_key(self, stream: int) -> bool:
        keys = {column.name.lower() for column in self._job.analysis.streams[stream].keys}
        return any(
            keys & {name for _, name in references(condition)}
            for test in self._job.analysis.tests
            if test.stream == stream
            for condition in (test.match, test.accept)
            if condition is not None
        )

    def _masks(
        self, stream: int, layout: Layout, key: npt.NDArray[np.int32] | None, value: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int64]:
        """The symbols of distinct events, as bit masks; nothing has none."""
        columns = dict(
            zip((name.lower() for name in layout.values), self._inbox.values[stream].take(value), strict=False)
        )
        if key is not None:
            columns |= zip((name.lower() for name in layout.keys), self._inbox.keys[stream].take(key), strict=True)
        n = len(value)
        masks = np.zeros(n, np.int64)
        for goal, test in enumerate(self._job.analysis.tests):
            if test.stream == stream:
                matches = holds(test.match, columns, self._job.relations, n)
                accepted = matches & holds(test.accept, columns, self._job.relations, n)
                masks |= np.where(matches, match_bit(goal), 0) | np.where(accepted, accept_bit(goal), 0)
        masks[value == 0] = 0
        return masks

    def _answers(self, chains, times, probabilities) -> pa.Table:
        """Answers in the schema of the job; chains that one group holds together are combined."""
        job = self._job
        if job.direct:
            kept = probabilities >= job.analysis.query.threshold
            chains, times, probabilities = chains[kept], times[kept], probabilities[kept]
        columns = self._chains.take(chains) if job.analysis.group_by else []
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

    def _rejected(self, rows: Rows, status: npt.NDArray[np.int8], late: Rows) -> pa.Table:
        parts = []
        for chosen, which, reason in (
            (rows, np.flatnonzero(status == kernel.OVERFULL), OVERFULL),
            (late, np.arange(len(late)), LATE),
        ):
            for stream, layout in enumerate(self._job.layouts):
                mine = which[chosen.stream[which] == stream]
                described = [self._inbox.describe(chosen, int(index)) for index in mine]
                parts.append(quarantine(layout.name, reason, described))
        return pa.concat_tables(parts)
