"""The input of every PATTERN operator: packets become sorted, deduplicated rows, each with its chain.

A *chain* is one binding of the variables on which the query is independent (`analysis.py`). All keys that feed a chain
are in one bucket.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from anabranch.arrays import I32, I64, Bools
from anabranch.binding.derived_streams import is_weighted
from anabranch.binding.typed import Typed, references
from anabranch.catalog import Model, Stream
from anabranch.columns.conditions import holds
from anabranch.columns.dictionary import Dictionary, encode_pairs, flat, is_worth_removing
from anabranch.pattern import kernel
from anabranch.pattern.analysis import PatternAnalysis
from anabranch.pattern.automaton import accept_bit, match_bit
from anabranch.pattern.spec import PatternSpec
from anabranch.transport.checks import LATE, OVERFULL, QUARANTINE, quarantine
from anabranch.transport.inbox import Inbox
from anabranch.transport.lagging import LaggingRows
from anabranch.transport.operator import Counts
from anabranch.transport.rows import Rows
from anabranch.transport.state import read_tables

_KERNEL_MODEL = {
    Model.CERTAIN: kernel.CERTAIN,
    Model.INDEPENDENT: kernel.INDEPENDENT,
    Model.MARKOV: kernel.MARKOV,
}


def _kernel_model(stream: Stream) -> int:
    return kernel.WEIGHTED if is_weighted(stream) else _KERNEL_MODEL[stream.model]


@dataclass(frozen=True, slots=True)
class Received:
    """The rows of one step.

    Attributes
    ----------
    rows : Rows
    key, model, chain : arrays, one entry per row
        The key, numbered over all streams; the model of its stream; and the chain that it feeds.
    used : the indexes of the rows to use, sorted by chain, instant and key
    starts : the start of each chain in `used`, and the end of the last one
    instants : the instants of all buckets that became complete, sorted; empty unless the query needs them
    """

    rows: Rows
    key: I32
    model: I32
    chain: I32
    used: I64
    starts: I64
    rejected: pa.Table
    counts: Counts
    instants: I64


@dataclass(frozen=True, slots=True)
class Used:
    """Which chains, keys and values of a bucket are used; keys by stream, values only if there is one stream."""

    chains: Bools
    keys: list[Bools]
    values: list[Bools]

    @property
    def is_minority(self) -> bool:
        """Whether the rest should be forgotten."""
        return any(map(is_worth_removing, (self.chains, *self.keys, *self.values)))


@dataclass(frozen=True, slots=True)
class Distinct:
    """The distinct events of one stream among some rows: conditions are tested on these, not on every row.

    Attributes
    ----------
    rows : the rows of the stream, as a mask or a slice
    event : for each of these rows, the index of its distinct event
    columns : the columns of the distinct events, by lower-case name
    real : which of the distinct events are events: all but the value *nothing*
    """

    stream: int
    rows: Bools | slice
    event: I32
    columns: dict[str, pa.Array]
    real: Bools


class _Instants:
    """The instants of the rows of all buckets, which packets carry for queries that need them (`job.py`)."""

    def __init__(self) -> None:
        self.held = np.zeros(0, np.int64)

    def receive(self, packets: Sequence[tuple[int, bytes]], before: int, watermark: int) -> I64:
        """The instants that the watermark has passed now; it was at `before`."""
        tables = [read_tables(blob) for _, blob in packets]
        arrived = [named["instants"]["t"].to_numpy() for named in tables if "instants" in named]
        known = np.unique(np.concatenate([self.held, *arrived]))
        self.held = known[known >= watermark]
        return known[(known >= before) & (known < watermark)]


class Intake:
    """The inbox of a bucket, its inferred streams, and the numbers of its chains."""

    def __init__(self, spec: PatternSpec) -> None:
        analysis, layouts = spec.analysis, spec.layouts
        self._analysis = analysis
        self._layouts = layouts
        self._relations = spec.relations
        self._models = np.array([_kernel_model(stream) for stream in analysis.streams], np.int32)
        self._inbox = Inbox(layouts)
        self._instants = _Instants() if spec.needs_instants else None
        has_lag = any(layout.derivation is not None and layout.derivation.lag for layout in layouts)
        self._lagging = LaggingRows(layouts) if has_lag else None
        # If a chain is a key, the dictionary of keys is used for both.
        self.chains = self._inbox.keys[0] if self._chain_is_key else Dictionary(spec.chain_types)
        self._chain_of = [np.zeros(0, np.int32) for _ in analysis.streams]
        #: The derivers of inferred streams, by stream.
        self._derivers = {
            stream: layout.derivation.open(layout.time_kind)
            for stream, layout in enumerate(layouts)
            if layout.derivation is not None
        }
        self._values = [
            self._derivers[stream].values if stream in self._derivers else values
            for stream, values in enumerate(self._inbox.values)
        ]

    @property
    def _chain_is_key(self) -> bool:
        return self._analysis.single and self._analysis.chain_positions[0] == tuple(range(len(self._layouts[0].keys)))

    @property
    def watermark(self) -> int:
        """The watermark of the bucket."""
        return self._inbox.watermark if self._lagging is None else self._lagging.watermark

    @property
    def n_streams(self) -> int:
        """The number of streams of the query."""
        return len(self._layouts)

    @property
    def n_chains(self) -> int:
        """The number of chains so far; a query without chain variables has one."""
        return len(self.chains) if self._analysis.chain else 1

    def chain_columns(self, chains: I32 | I64) -> list[pa.Array]:
        """The variables of some chains; none in a query without chain variables."""
        return self.chains.take(chains.astype(np.int32)) if self._analysis.chain else []

    @property
    def n_values(self) -> int:
        """An upper bound of the value codes of all streams (exclusive)."""
        return max(len(values) for values in self._values)

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Restore what `save` returned."""
        self._inbox.load(tables)
        if self._lagging is not None:
            self._lagging.load(tables)
        if self._instants is not None:
            self._instants.held = tables["instants"]["t"].to_numpy()
        for stream, deriver in self._derivers.items():
            deriver.load(tables[f"derived {stream}"])
        if not self._chain_is_key:
            self.chains.restore(tables["chains"])

    def save(self) -> dict[str, pa.Table]:
        """The state as tables."""
        tables = self._inbox.save() | (self._lagging.save() if self._lagging is not None else {})
        if self._instants is not None:
            tables["instants"] = pa.table({"t": self._instants.held})
        tables |= {f"derived {stream}": deriver.save() for stream, deriver in self._derivers.items()}
        if not self._chain_is_key:
            tables["chains"] = self.chains.to_table()
        return tables

    def receive(self, packets: Sequence[tuple[int, bytes]], watermark: int, ended: bool = False) -> Received:
        """Take packets and return the rows before the watermark, sorted and deduplicated."""
        before = self.watermark
        rows, late = self._inbox.receive(packets, watermark)
        rows, instants, unused, counts = self._derive(rows, ended)
        if self._lagging is not None:
            rows = self._lagging.receive(rows, self._inbox.watermark, ended)
        if self._instants is not None:
            # Inferred rows are in no packet.
            complete = self._instants.receive(packets, before, self.watermark)
            instants = np.unique(np.concatenate([complete, instants]))
        chain = self._number_chains(rows)
        model = self._models[rows.stream]
        key = rows.key if len(self._models) == 1 else rows.key * np.int32(len(self._models)) + rows.stream
        order, starts = kernel.order_rows(chain, rows.t, key, rows.prev, rows.value, rows.p, self.n_chains)
        status = np.zeros(len(rows), np.int8)
        used = kernel.clean_rows(order, rows.t, key, model, rows.prev, rows.value, rows.p, status)
        if len(used) < len(order):
            starts = np.concatenate([[0], np.cumsum(np.bincount(chain[used], minlength=self.n_chains))])
        overfull = status == kernel.OVERFULL
        if overfull.any():
            unused.append((OVERFULL, rows.where(overfull)))
        counts += Counts(
            # Inferred rows are not counted: their readings are.
            used=len(used) if not self._derivers else int(self._is_plain(rows)[used].sum()),
            duplicate=int((status == kernel.DUPLICATE).sum()),
            late=len(late),
            quarantined=int(overfull.sum()),
        )
        rejected = self._quarantine([*unused, (LATE, late)])
        return Received(rows, key, model, chain, used, starts, rejected, counts, instants)

    def _is_plain(self, rows: Rows) -> Bools:
        """Which rows are rows of their source, not inferred ones."""
        return ~np.isin(rows.stream, list(self._derivers))

    def _derive(self, rows: Rows, ended: bool) -> tuple[Rows, I64, list[tuple[str, Rows]], Counts]:
        """Replace readings by the rows inferred from them.

        Also returns the instants of the inferred steps, and the readings that were not used, with the reasons.
        """
        counts, instants = Counts(), [np.zeros(0, np.int64)]
        if not self._derivers:
            return rows, instants[0], [], counts
        parts = [rows.where(self._is_plain(rows))]
        unused = []
        for stream, deriver in self._derivers.items():
            readings = rows.where(rows.stream == stream)
            derived = deriver.advance(
                readings, self._inbox.keys[stream], self._inbox.values[stream], self._inbox.watermark, ended
            )
            instants.append(derived.instants)
            parts.append(replace(derived.rows, stream=np.full(len(derived.rows), stream, np.int32)))
            rejected = [(reason, readings.where(which)) for reason, which in derived.rejected.items()]
            unused += rejected
            n_rejected = sum(len(rejected_rows) for _, rejected_rows in rejected)
            counts += Counts(
                used=len(readings) - derived.duplicate - n_rejected,
                duplicate=derived.duplicate,
                quarantined=n_rejected,
            )
        return Rows.concat(parts), np.concatenate(instants), unused, counts

    def _number_chains(self, rows: Rows) -> I32:
        """The chain of each row; new keys are assigned to their chains."""
        if self._chain_is_key:
            return rows.key
        chain = np.zeros(len(rows), np.int32)
        for stream, positions in enumerate(self._analysis.chain_positions):
            known, keys = self._chain_of[stream], self._inbox.keys[stream]
            if len(known) < len(keys):
                columns = keys.take(np.arange(len(known), len(keys), dtype=np.int32))
                if positions:
                    table = pa.table({str(index): columns[position] for index, position in enumerate(positions)})
                    new_chains = self.chains.encode(table)
                else:
                    new_chains = np.zeros(len(keys) - len(known), np.int32)
                self._chain_of[stream] = np.concatenate([known, new_chains])
            of_stream = rows.stream == stream
            chain[of_stream] = self._chain_of[stream][rows.key[of_stream]]
        return chain

    # ------------------------------------------------------------ state

    @property
    def forgets(self) -> bool:
        """Whether chains can be forgotten. Not those of inferred streams: each step has rows of all of them."""
        return not self._derivers

    def absent_chains(self, packets: Sequence[tuple[int, bytes]]) -> list[pa.Array]:
        """The variables of the chains that packets have rows of and that have no numbers."""
        schema = pa.schema([(str(index), kind) for index, kind in enumerate(self.chains.types)])
        parts = [schema.empty_table()]
        for stream, blob in packets:
            packet = read_tables(blob)
            if "keys" in packet:
                columns = packet["keys"].select(list(self._analysis.chain_positions[stream])).columns
                parts.append(pa.table(columns, names=schema.names).cast(schema))
        chains = pa.concat_tables(parts)
        return [flat(column) for column in chains.filter(pa.array(~self.chains.has(chains))).columns]

    def values_of(self, codes: I32) -> list[pa.Array]:
        """The columns of values, in a query over one stream."""
        return self._values[0].take(codes)

    def encode_values(self, values: pa.Table) -> I32:
        """The codes of values, in a query over one stream."""
        return self._values[0].encode(values)

    def needed(self, chains: Bools) -> Bools:
        """Which chains have to be kept, given those that the query needs: also those of held rows."""
        needed = chains.copy()
        needed[self._number_chains(self._inbox.held)] = True
        return needed

    def used(self, needed: Bools, keys: I64, values: I32) -> Used:
        """What is used.

        Parameters
        ----------
        needed : the chains to keep, see `needed`
        keys, values : those that the weights refer to; keys are numbered over all streams
        """
        n_streams = len(self._layouts)
        if self._chain_is_key:
            keys = np.flatnonzero(needed)
        return Used(
            needed,
            [
                self._inbox.used_keys(stream, keys[keys % n_streams == stream] // n_streams)
                for stream in range(n_streams)
            ],
            # Streams have codes of their own, so those of weights are known to be of a stream only if there is one.
            [self._inbox.used_values(0, values)] if n_streams == 1 else [],
        )

    def keep(self, used: Used) -> tuple[I64, I32]:
        """Forget what is not used; returns the new numbers of keys and values."""
        n_streams = len(self._layouts)
        numbers = np.full(max(map(len, used.keys)) * n_streams, -1, np.int64)
        for stream, keys in enumerate(used.keys):
            new = self._inbox.keep_keys(stream, keys)
            numbers[np.arange(len(new)) * n_streams + stream] = new.astype(np.int64) * n_streams + stream
            self._chain_of[stream] = np.zeros(0, np.int32)
        if not self._chain_is_key and self._analysis.chain:
            self.chains.keep(used.chains)
        if used.values:
            return numbers, self._inbox.keep_values(0, used.values[0])
        return numbers, np.arange(self.n_values, dtype=np.int32)

    # ------------------------------------------------------------ events

    def distinct_events(self, rows: Rows, with_keys: bool = False) -> Iterator[Distinct]:
        """The distinct events of each stream: by value, and also by key if a condition uses the key or `with_keys`."""
        for stream in range(len(self._layouts)):
            of_stream = rows.stream == stream if len(self._models) > 1 else slice(None)
            key, value = rows.key[of_stream], rows.value[of_stream]
            values = self._values[stream]
            declared = self._analysis.streams[stream]
            columns: dict[str, pa.Array] = {}
            if with_keys or self._uses_key(stream):
                event, firsts = encode_pairs(key, value, len(self._inbox.keys[stream]), len(values))
                names = [column.name.lower() for column in declared.keys]
                columns |= zip(names, self._inbox.keys[stream].take(key[firsts]), strict=True)
                codes = value[firsts]
            else:
                event, codes = value, np.arange(len(values), dtype=np.int32)
            # A stream without value columns has one unnamed column in its dictionary.
            columns |= zip((column.name.lower() for column in declared.values), values.take(codes), strict=False)
            yield Distinct(stream, of_stream, event, columns, codes != 0)

    def _uses_key(self, stream: int) -> bool:
        """Whether a condition on events of the stream uses a key column."""
        keys = {column.name.lower() for column in self._analysis.streams[stream].keys}
        return any(
            keys & {name for _, name in references(condition)}
            for test in self._analysis.tests
            if test.stream == stream
            for condition in (test.match, test.accept)
            if condition is not None
        )

    def masks(self, events: Distinct, analysis: PatternAnalysis | None = None) -> I64:
        """The symbols of distinct events, as bit masks; the value *nothing* has no symbols.

        The goals are those of the query, or of `analysis`: an operand of a combination.
        """
        return self.of_goals(self.alternatives(events, analysis), analysis)

    def alternatives(self, events: Distinct, analysis: PatternAnalysis | None = None) -> I64:
        """The symbols of distinct events as `masks` has them, but one for each alternative of a goal."""
        masks = np.zeros(len(events.real), np.int64)
        for number, test in enumerate((analysis or self._analysis).tests):
            if test.stream == events.stream:
                matches = self._holds(test.match, events)
                accepted = matches & self._holds(test.accept, events)
                masks |= np.where(matches, match_bit(number), 0) | np.where(accepted, accept_bit(number), 0)
        masks[~events.real] = 0
        return masks

    def of_goals(self, alternatives: I64, analysis: PatternAnalysis | None = None) -> I64:
        """The symbols of goals, from those of their alternatives."""
        analysis = analysis or self._analysis
        if not analysis.has_alternatives:
            return alternatives
        masks = np.zeros(len(alternatives), np.int64)
        for number, test in enumerate(analysis.tests):
            for bit in (match_bit, accept_bit):
                masks |= np.where(alternatives & bit(number) != 0, bit(test.goal), 0)
        return masks

    def _holds(self, condition: Typed | None, events: Distinct) -> Bools:
        return holds(condition, events.columns, self._relations, len(events.real))

    def key_columns(self, stream: int) -> list[pa.Array]:
        """The key columns of a stream, one row per key number."""
        keys = self._inbox.keys[stream]
        return keys.take(np.arange(len(keys), dtype=np.int32))

    def value_columns(self, stream: int) -> list[pa.Array]:
        """The value columns of a stream, one row per value code."""
        values = self._values[stream]
        return values.take(np.arange(len(values), dtype=np.int32))

    # ------------------------------------------------------------ quarantine

    def _quarantine(self, unused: list[tuple[str, Rows]]) -> pa.Table:
        """The rows that were not used, as their sources have them, with the reasons."""
        parts = [QUARANTINE.empty_table()]
        for reason, rows in unused:
            for stream, layout in enumerate(self._layouts):
                indexes = np.flatnonzero(rows.stream == stream)
                parts.append(quarantine(layout.name, reason, [self._inbox.describe(rows, int(i)) for i in indexes]))
        return pa.concat_tables(parts)
