"""RELATE: a bucket puts entities together, Spark pairs them, and the kernel decides the pairs of a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from anabranch.language.bound import BoundQuantified, BoundRelate
from anabranch.language.typed import Typed
from anabranch.language.types import Type
from anabranch.relate.analysis import RelateAnalysis, analyse
from anabranch.relate.pairing import Side, as_doubles, in_blocks, pairs_of
from anabranch.relate.pairs import Windows, relate
from anabranch.relate.store import EntityStore, Step
from anabranch.rows.conditions import holds
from anabranch.rows.dictionary import flat
from anabranch.rows.operator import Counts, Operator, Outcome
from anabranch.rows.packing import Layout, hash_tuples
from anabranch.rows.routing import KeyPlacement
from anabranch.rows.state import seal, unseal
from anabranch.rows.times import BEGINNING, TimeKind

#: What is known of an entity, besides its key.
_ENTITY = [
    pa.field("stream", pa.int32()),
    pa.field("earliest", pa.int64()),
    pa.field("latest", pa.int64()),
    pa.field("changed", pa.bool_()),
    pa.field("over", pa.bool_()),
    pa.field("there", pa.bool_()),  # FALSE where it turned out to be none: then `entity` is what it was held for
    pa.field("entity", pa.binary()),
    pa.field("before", pa.binary()),  # as it was known until it changed; NULL where it was not known, or did not
]


@dataclass(frozen=True)
class RelateJob(KeyPlacement):
    """A RELATE query as the workers need it; `live` where its inputs go on."""

    analysis: RelateAnalysis
    layouts: tuple[Layout, ...]
    relations: dict[str, pa.Table]
    fingerprint: str
    live: bool

    @property
    def answer_schema(self) -> pa.Schema:
        """One row an entity: the key columns of every stream, and what is known of the entity."""
        keys = [
            pa.field(name, kind)
            for number, layout in enumerate(self.layouts)
            for name, kind in zip(self.key_names(number).values(), layout.key_types, strict=True)
        ]
        return pa.schema([*keys, *_ENTITY])

    @property
    def result_schema(self) -> pa.Schema:
        """The query's own columns."""
        fields = []
        for side in self.analysis.query.operands:
            layout = self.layouts[self._stream_of(side)]
            fields.append(pa.field(side.label, pa.struct(list(zip(layout.keys, layout.key_types, strict=True)))))
        fields.append(pa.field("probability", pa.float64()))
        if self.analysis.query.complement:
            fields.append(pa.field("complement", pa.float64()))
        if self.live:
            fields.append(pa.field("status", pa.string()))
        return pa.schema(fields)

    def key_names(self, stream: int) -> dict[str, str]:
        """What the key columns of a stream are called among the entities, by their lower-case names."""
        keys = self.layouts[stream].keys
        return {name.lower(): f"key_{stream}_{place}" for place, name in enumerate(keys)}

    def _stream_of(self, side: BoundQuantified) -> int:
        names = [layout.name.lower() for layout in self.layouts]
        return names.index(side.stream.name.lower())

    # ------------------------------------------------------------ placement

    def needed(self, stream: int) -> Typed | None:
        """What a key must meet to be an operand."""
        return self.analysis.needed(self.layouts[stream].name)

    def buckets(self, stream: int, keys: pa.Table, n_buckets: int) -> npt.NDArray[np.int64]:
        """The bucket of each key; -1 where it can be no operand.

        What is kept of a live stream depends on all entities that could be partners, so they share a bucket.
        """
        names = (name.lower() for name in self.layouts[stream].keys)
        columns = dict(zip(names, map(flat, keys.columns), strict=True))
        spread = self._equated(stream, columns) if self.live else list(columns.values())
        buckets = np.zeros(keys.num_rows, np.int64)
        if spread:
            buckets = (hash_tuples(spread, keys.num_rows) % np.uint64(n_buckets)).astype(np.int64)
        buckets[~holds(self.needed(stream), columns, self.relations, keys.num_rows)] = -1
        return buckets

    def _equated(self, stream: int, columns: dict[str, pa.Array]) -> list[pa.Array]:
        """The key columns of a stream that WHERE equates with those of any partner."""
        equalities, spread = self.analysis.equalities, []
        sides = [place for place, side in enumerate(self.analysis.query.operands) if self._stream_of(side) == stream]
        for pair in equalities:
            # Where a.x = b.y within one stream, an entity has other partners as a than as b.
            if len({pair[place].name for place in sides}) == 1:
                column = columns[pair[sides[0]].name]
                doubles = any(side.type is Type.DOUBLE for side in pair)
                spread.append(as_doubles(column) if doubles else column)
        return spread

    def operator(self) -> Operator:
        """The operator of one bucket."""
        return RelateOperator(self)

    # ------------------------------------------------------------ pairs

    def finish(self, entities: DataFrame) -> DataFrame:
        """Let the entities meet, and give the probability of each pair."""
        streams = [self._stream_of(side) for side in self.analysis.query.operands]
        placed = in_blocks(entities, self.analysis, [self.key_names(stream) for stream in streams], streams)
        answers = from_arrow_schema(self.result_schema)
        # Not a partial: Spark looks for type hints, and stumbles over those of one.
        return placed.groupBy("block").applyInArrow(lambda members: decide(self, members), answers)

    def side(self, number: int, members: pa.Table) -> tuple[Side, pa.Table]:
        """One operand's entities among the members of a block."""
        mine = members.filter(pc.equal(members["side"], number)).combine_chunks()
        names = self.key_names(self._stream_of(self.analysis.query.operands[number]))
        keys = {name: flat(mine[column]) for name, column in names.items()}
        earliest, latest = (mine[name].to_numpy() for name in ("earliest", "latest"))
        return Side(keys, earliest, latest, flat(mine["changed"]).to_numpy(zero_copy_only=False)), mine


def make_job(
    query: BoundRelate, layouts: tuple[Layout, ...], relations: Mapping[str, pa.Table], fingerprint: str, live: bool
) -> RelateJob:
    """A query made ready for the workers; `live` where its inputs go on."""
    return RelateJob(analyse(query), layouts, dict(relations), fingerprint, live)


def decide(job: RelateJob, members: pa.Table) -> pa.Table:
    """The answers about the pairs of a block, given its members."""
    (first, firsts), (second, seconds) = (job.side(number, members) for number in (0, 1))
    deciding = _Deciding(job, firsts, seconds)
    answers = [deciding.answers(pairs, first, second) for pairs in pairs_of(job.analysis, first, second, job.relations)]
    return pa.concat_tables([job.result_schema.empty_table(), *answers])


class _Deciding:
    """The entities of a block as they are known, and as they were known before."""

    def __init__(self, job: RelateJob, firsts: pa.Table, seconds: pa.Table) -> None:
        self._job = job
        self._over, self._there, changed = (
            [flat(side[name]).to_numpy(zero_copy_only=False) for side in (firsts, seconds)]
            for name in ("over", "there", "changed")
        )
        self._now = [Windows.from_blobs(flat(side["entity"])) for side in (firsts, seconds)]
        before = [flat(side["before"]) for side in (firsts, seconds)]
        self._was_known = [
            was.is_valid().to_numpy(zero_copy_only=False) | ~own for was, own in zip(before, changed, strict=True)
        ]
        self._before = [
            Windows.from_blobs(pc.coalesce(was, flat(side["entity"])))
            for was, side in zip(before, (firsts, seconds), strict=True)
        ]

    def answers(self, pairs: npt.NDArray[np.int64], first: Side, second: Side) -> pa.Table:
        """The answers about some pairs."""
        query, live = self._job.analysis.query, self._job.live
        probability, complement = self._relate(self._now, pairs)
        gone = ~(self._there[0][pairs[:, 0]] & self._there[1][pairs[:, 1]])
        probability[gone], complement[gone] = 0.0, 1.0
        holds = (probability > 0) & (probability >= query.threshold)
        final = self._over[0][pairs[:, 0]] & self._over[1][pairs[:, 1]] & holds
        if live:
            holds |= self._fell(pairs, ~holds)
        schema = self._job.result_schema
        columns = [
            pa.StructArray.from_arrays(
                [key.take(pa.array(pairs[holds, place])) for key in side.keys.values()],
                fields=list(schema.field(place).type),
            )
            for place, side in enumerate((first, second))
        ]
        columns.append(pa.array(probability[holds]))
        columns += [pa.array(complement[holds])] if query.complement else []
        columns += [pc.if_else(pa.array(final[holds]), "final", "provisional")] if live else []
        return pa.table(columns, schema=schema)

    def _relate(self, known: list[Windows], pairs: npt.NDArray[np.int64]):
        doubles = self._job.layouts[0].time_kind is TimeKind.DOUBLE
        return relate(self._job.analysis, doubles, known[0], known[1], pairs)

    def _fell(self, pairs: npt.NDArray[np.int64], asked: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Which of the pairs asked held before the last change: they were reported, and must be taken back."""
        known = self._was_known[0][pairs[:, 0]] & self._was_known[1][pairs[:, 1]]
        chosen = np.flatnonzero(asked & known)
        fell = np.zeros(len(pairs), np.bool_)
        if len(chosen):
            probability, _ = self._relate(self._before, pairs[chosen])
            fell[chosen] = (probability > 0) & (probability >= self._job.analysis.query.threshold)
        return fell


class RelateOperator:
    """One bucket of a RELATE query: keeps entities until nothing can come of them any more."""

    def __init__(self, job: RelateJob) -> None:
        self._job = job
        self.open(None)

    def open(self, state: bytes | None) -> None:
        """Begin anew, or go on from saved bytes."""
        job = self._job
        self._stores = [EntityStore(layout, job.analysis.query.timeout) for layout in job.layouts]
        self._watermark = BEGINNING
        if state is not None:
            tables = unseal(state, job.fingerprint)
            self._watermark = tables["watermark"]["watermark"][0].as_py()
            for number, store in enumerate(self._stores):
                store.load({name: tables[f"{name} {number}"] for name in ("rows", "keys", "over")})

    def save(self) -> bytes:
        """The state, to be opened again."""
        tables = {"watermark": pa.table({"watermark": [self._watermark]})}
        for number, store in enumerate(self._stores):
            tables |= {f"{name} {number}": table for name, table in store.save().items()}
        return seal(tables, self._job.fingerprint)

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: int, ended: bool) -> Outcome:
        """Take packets, and give every entity that an answer may be about."""
        watermarks = (self._watermark, max(self._watermark, watermark))
        self._watermark = watermarks[1]
        answers, rejected, counts, steps = [], [], Counts(), []
        for number, store in enumerate(self._stores):
            blobs = [blob for stream, blob in packets if stream == number]
            step = store.step(blobs, watermarks, ended, self._job.live)
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
        n, schema, there = len(shown), self._job.answer_schema, step.shown[shown]
        now = known.select(np.where(there, shown, len(step.shown) + shown))
        columns: dict[str, pa.Array] = dict(
            zip(self._job.key_names(stream).values(), store.keys.take(shown.astype(np.int32)), strict=True)
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
        back = [layout.horizon[0] for layout in self._job.layouts if layout.reaches_back]
        reach = min([self._watermark, *back, *(store.first_instant() for store in self._stores)])
        for layout, store, step in zip(self._job.layouts, self._stores, steps, strict=True):
            if not self._job.analysis.lasts(layout.name):
                over = np.flatnonzero(step.shown & store.over)
                gone = np.zeros(len(store.over), np.bool_)
                gone[over] = step.now.select(over).latest < reach
                store.forget(gone)
