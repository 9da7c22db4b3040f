"""One bucket of a RELATE query: puts entities together, and keeps them until nothing can come of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from anabranch.relate.spec import RelateSpec
from anabranch.relate.store import EntityStore, Step
from anabranch.transport.operator import Counts, Outcome
from anabranch.transport.state import seal, unseal
from anabranch.transport.watermark import Watermark


class RelateOperator:
    """One bucket of a RELATE query: keeps entities until nothing can come of them any more."""

    def __init__(self, spec: RelateSpec) -> None:
        self._spec = spec
        self.open(None)

    def open(self, state: bytes | None) -> None:
        """Begin anew, or go on from saved bytes."""
        spec = self._spec
        self._stores = [EntityStore(layout, spec.analysis.query.timeout) for layout in spec.layouts]
        self._watermark = Watermark(spec.layouts)
        if state is not None:
            tables = unseal(state, spec.fingerprint)
            self._watermark.at = tables["watermark"]["watermark"][0].as_py()
            for number, store in enumerate(self._stores):
                store.load({name: tables[f"{name} {number}"] for name in ("rows", "keys", "over")})

    def save(self) -> bytes:
        """The state, to be opened again."""
        tables = {"watermark": pa.table({"watermark": [self._watermark.at]})}
        for number, store in enumerate(self._stores):
            tables |= {f"{name} {number}": table for name, table in store.save().items()}
        return seal(tables, self._spec.fingerprint)

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: int, ended: bool) -> Outcome:
        """Take packets, and give every entity that an answer may be about."""
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
        """The entities of a stream, in the schema of the job."""
        shown, known = np.flatnonzero(step.shown), step.now
        if step.before is not None:
            # An entity that turned out to be none is shown once more as what it was held for.
            shown, known = np.flatnonzero(step.shown | (step.before.lengths > 0)), known.followed_by(step.before)
        n, schema, there = len(shown), self._spec.answer_schema, step.shown[shown]
        now = known.select(np.where(there, shown, len(step.shown) + shown))
        columns: dict[str, pa.Array] = dict(
            zip(self._spec.key_names(stream).values(), store.keys.take(shown.astype(np.int32)), strict=True)
        )
        earliest, latest, before = now.earliest, now.latest, pa.nulls(n, pa.binary())
        if step.before is not None:
            was_known = step.before.lengths[shown] > 0
            was = step.before.select(shown[was_known])
            # What was reported may have to be taken back, so a pair that was possible is looked at again.
            earliest[was_known] = np.minimum(earliest[was_known], was.earliest)
            latest[was_known] = np.maximum(latest[was_known], was.latest)
            before = was.to_blobs().take(pa.array(np.cumsum(was_known) - 1, mask=~was_known))
        columns |= {
            "stream": pa.repeat(pa.scalar(stream, pa.int32()), n),
            "earliest": pa.array(earliest),
            "latest": pa.array(latest),
            "changed": pa.array(step.changed[shown]),
            "over": pa.array(store.over[shown]),
            "there": pa.array(there),
            "entity": now.to_blobs(),
            "before": before,
        }
        return pa.table([columns.get(field.name, pa.nulls(n, field.type)) for field in schema], schema=schema)

    def _forget(self, steps: Sequence[Step]) -> None:
        """Forget the entities that have ended and that no other can meet any more.

        Every event to come is at the watermark or after it, but for lost ones that a HORIZON or WINDOW lets reach back.
        """
        back = [layout.horizon[0] for layout in self._spec.layouts if layout.reaches_back]
        reach = min([self._watermark.at, *back, *(store.first_instant() for store in self._stores)])
        for layout, store, step in zip(self._spec.layouts, self._stores, steps, strict=True):
            if not self._spec.analysis.pairs_with_later(layout.name):
                over = np.flatnonzero(step.shown & store.over)
                gone = np.zeros(len(store.over), np.bool_)
                gone[over] = step.now.select(over).latest < reach
                store.forget(gone)
