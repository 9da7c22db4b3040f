"""The operators of a RELATE query: they assemble entities and keep them until no later entity can be their partner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.errors import StateError
from anabranch.relate.attributes import to_lists
from anabranch.relate.deciding import decide_pairs
from anabranch.relate.placement import PARTS, Parts, parts_in, table_of
from anabranch.relate.spec import RelateSpec
from anabranch.relate.store import EntityStore, Step
from anabranch.transport.operator import Counts, Outcome
from anabranch.transport.pages import PageStore
from anabranch.transport.state import read_tables, seal, unseal
from anabranch.transport.watermark import Watermark


class RelateOperator:
    """The operator of one bucket of a RELATE query. Its answers are entities, which are paired in blocks."""

    def __init__(self, spec: RelateSpec) -> None:
        self._spec = spec
        self.open(None)

    def open(self, state: bytes | None) -> None:
        """Start empty (None), or resume from saved bytes."""
        spec = self._spec
        self._stores = [
            EntityStore(layout, spec.analysis.query.timeout, spec.attributes(number))
            for number, layout in enumerate(spec.layouts)
        ]
        self._watermark = Watermark(spec.layouts)
        if state is not None:
            self._load(unseal(state, spec.fingerprint))

    def _load(self, tables: Mapping[str, pa.Table]) -> None:
        self._watermark.at = tables["watermark"]["watermark"][0].as_py()
        for number, store in enumerate(self._stores):
            names = [name for name in tables if name.endswith(f" {number}")]
            store.load({name.removesuffix(f" {number}"): tables[name] for name in names})

    def use_pages(self, store: PageStore) -> None:
        """Keep the rows of events in a store, page by page as they arrive."""
        for number, entities in enumerate(self._stores, start=1):
            entities.use_log(store, self._spec.fingerprint, number, len(self._stores))

    def save(self) -> bytes:
        """The state as bytes, for `open`."""
        return seal(self._tables(), self._spec.fingerprint)

    def _tables(self) -> dict[str, pa.Table]:
        tables = {"watermark": pa.table({"watermark": [self._watermark.at]})}
        for number, store in enumerate(self._stores):
            tables |= {f"{name} {number}": table for name, table in store.save().items()}
        return tables

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: int, ended: bool) -> Outcome:
        """Take packets and return all entities that can be part of an answer."""
        advance = self._watermark.advance(watermark)
        answers, rejected, counts, steps = [], [], Counts(), []
        for number, store in enumerate(self._stores):
            blobs = [blob for stream, blob in packets if stream == number]
            step = store.step(blobs, advance, ended, self._spec.live)
            answers.append(self._entities(number, store, step))
            rejected += step.rejected
            counts += step.counts
            steps.append(step)
        self._forget(steps)
        return Outcome(pa.concat_tables(answers), pa.concat_tables(rejected), counts)

    def _entities(self, stream: int, store: EntityStore, step: Step) -> pa.Table:
        """The entities of a stream, in the schema of the specification."""
        entities, versions = np.flatnonzero(step.has_events), step.current
        if step.previous is not None:
            # An entity that proved invalid is sent once more, with its previous version.
            entities = np.flatnonzero(step.has_events | (step.previous.lengths > 0))
            versions = versions.followed_by(step.previous)
        n, schema, valid = len(entities), self._spec.answer_schema, step.has_events[entities]
        current = versions.select(np.where(valid, entities, len(step.has_events) + entities))
        columns: dict[str, pa.Array] = dict(
            zip(self._spec.key_names(stream).values(), store.keys.take(entities.astype(np.int32)), strict=True)
        )
        earliest, latest, previous_blobs = current.earliest, current.latest, pa.nulls(n, pa.binary())
        has_attributes = bool(self._spec.attributes(stream))
        attribute_type, names = self._spec.attribute_type(stream), self._spec.attribute_names(stream)
        if has_attributes:
            columns[names[0]] = to_lists(current, store.values, attribute_type)
        if step.previous is not None:
            existed = step.previous.lengths[entities] > 0
            previous = step.previous.select(entities[existed])
            # A pair that was reported may have to be retracted, so both versions must lie between the two limits.
            earliest[existed] = np.minimum(earliest[existed], previous.earliest)
            latest[existed] = np.maximum(latest[existed], previous.latest)
            index = pa.array(np.cumsum(existed) - 1, mask=~existed)
            previous_blobs = previous.to_blobs().take(index)
            if has_attributes:
                columns[names[1]] = to_lists(previous, store.values, attribute_type).take(index)
        columns |= {
            "stream": pa.repeat(pa.scalar(stream, pa.int32()), n),
            "earliest": pa.array(earliest),
            "latest": pa.array(latest),
            "changed": pa.array(step.changed[entities]),
            "ended": pa.array(store.ended[entities]),
            "valid": pa.array(valid),
            "entity": current.to_blobs(),
            "previous": previous_blobs,
        }
        return pa.table([columns.get(field.name, pa.nulls(n, field.type)) for field in schema], schema=schema)

    def _forget(self, steps: Sequence[Step]) -> None:
        """Remove the entities that have ended and that no later entity can be paired with.

        Later events are at the watermark or after it, except lost events that a HORIZON or WINDOW allows in the past.
        """
        horizons = [layout.horizon[0] for layout in self._spec.layouts if layout.reaches_back]
        earliest_event = min([self._watermark.at, *horizons, *(store.first_instant() for store in self._stores)])
        for layout, store, step in zip(self._spec.layouts, self._stores, steps, strict=True):
            if not self._spec.analysis.pairs_with_later(layout.name):
                ended = np.flatnonzero(step.has_events & store.ended)
                unneeded = np.zeros(len(store.ended), np.bool_)
                unneeded[ended] = step.current.select(ended).latest < earliest_event
                store.forget(unneeded)


class PairOperator(RelateOperator):
    """The same if every two entities that can be a pair share a bucket: its answers are about the pairs.

    An entity may be in several buckets (`placement.py`). Its rows are then counted, and quarantined, in one of them.
    """

    def open(self, state: bytes | None) -> None:
        """Start empty (None), or resume from saved bytes."""
        #: The parts of the bucket, if it has parts; None until the first row has arrived.
        self._parts: Parts | None = None
        super().open(state)

    def _load(self, tables: Mapping[str, pa.Table]) -> None:
        super()._load(tables)
        if self._spec.has_parts and PARTS not in tables:
            raise StateError("the saved state has all entities in one bucket; start with a new checkpoint folder")
        if self._spec.has_parts:
            self._parts = parts_in(tables)

    def _tables(self) -> dict[str, pa.Table]:
        return super()._tables() | ({PARTS: table_of(self._parts)} if self._spec.has_parts else {})

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: int, ended: bool) -> Outcome:
        """Take packets and return the answers about all pairs of which an entity has changed."""
        if self._spec.has_parts and packets:
            self._parts = parts_in(read_tables(packets[0][1]))
        outcome = super().step(packets, watermark, ended)
        answers = self.decided(outcome.answers)
        return replace(outcome, answers=answers) if self.counts_rows else Outcome(answers)

    @property
    def counts_rows(self) -> bool:
        """Whether this bucket counts the rows of its entities."""
        return self._parts is None or self._parts.is_repeated

    def decided(self, entities: pa.Table) -> pa.Table:
        """The answers about the pairs of some entities that this bucket decides."""
        first, second = (entities.filter(pc.equal(entities["stream"], stream)) for stream in self._spec.streams)
        return decide_pairs(self._spec, first, second, self._parts)
