"""Decides the pairs of a block: the probability of each pair, and the retractions of pairs that no longer hold."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import F64, I64, Bools
from anabranch.columns.dictionary import flat
from anabranch.columns.times import TimeKind
from anabranch.relate.pairing import Side, pairs_of, side_of
from anabranch.relate.pairs import relate
from anabranch.relate.spec import RelateSpec
from anabranch.relate.windows import Windows


def decide(spec: RelateSpec, members: pa.Table) -> pa.Table:
    """The answers about the pairs of a block, from its members."""
    (first, firsts), (second, seconds) = (side_of(spec, number, members) for number in (0, 1))
    deciding = _Deciding(spec, firsts, seconds)
    chunks = pairs_of(spec.analysis, first, second, spec.relations)
    answers = [deciding.answers(pairs, first, second) for pairs in chunks]
    return pa.concat_tables([spec.result_schema.empty_table(), *answers])


class _Deciding:
    """The entities of a block: their current versions, and the versions before their last change."""

    def __init__(self, spec: RelateSpec, firsts: pa.Table, seconds: pa.Table) -> None:
        self._spec = spec
        self._ended, self._valid, changed = (
            [flat(side[name]).to_numpy(zero_copy_only=False) for side in (firsts, seconds)]
            for name in ("ended", "valid", "changed")
        )
        laws = [spec.has_laws(number) for number in spec.streams]
        self._current = [
            Windows.from_blobs(flat(side["entity"]), has_laws)
            for side, has_laws in zip((firsts, seconds), laws, strict=True)
        ]
        versions = [flat(side["previous"]) for side in (firsts, seconds)]
        #: Whether an entity existed before this step; one that did not change has no previous version.
        self._existed = [
            version.is_valid().to_numpy(zero_copy_only=False) | ~has_changed
            for version, has_changed in zip(versions, changed, strict=True)
        ]
        self._previous = [
            Windows.from_blobs(pc.coalesce(version, flat(side["entity"])), has_laws)
            for version, side, has_laws in zip(versions, (firsts, seconds), laws, strict=True)
        ]

    def answers(self, pairs: I64, first: Side, second: Side) -> pa.Table:
        """The answers about some pairs, retractions included."""
        query, live = self._spec.analysis.query, self._spec.live
        probability, complement = self._relate(self._current, pairs)
        invalid = ~(self._valid[0][pairs[:, 0]] & self._valid[1][pairs[:, 1]])
        probability[invalid], complement[invalid] = 0.0, 1.0
        reported = (probability > 0) & (probability >= query.least_probability)
        final = self._ended[0][pairs[:, 0]] & self._ended[1][pairs[:, 1]] & reported
        if live:
            self._compare_with_previous(pairs, probability, complement, final, reported)
        schema = self._spec.result_schema
        columns = [
            pa.StructArray.from_arrays(
                [
                    # The keys come from Spark, whose settings decide between string and large_string.
                    key.take(pa.array(pairs[reported, number])).cast(field.type)
                    for key, field in zip(side.keys.values(), schema.field(number).type, strict=True)
                ],
                fields=list(schema.field(number).type),
            )
            for number, side in enumerate((first, second))
        ]
        columns.append(pa.array(probability[reported]))
        columns += [pa.array(complement[reported])] if query.complement else []
        columns += [pc.if_else(pa.array(final[reported]), "final", "provisional")] if live else []
        return pa.table(columns, schema=schema)

    def _relate(self, versions: list[Windows], pairs: I64) -> tuple[F64, F64]:
        doubles = self._spec.time_kind is TimeKind.DOUBLE
        return relate(self._spec.analysis, doubles, versions[0], versions[1], pairs)

    def _compare_with_previous(
        self, pairs: I64, probability: F64, complement: F64, final: Bools, reported: Bools
    ) -> None:
        """Update `reported` by what was reported before the last change.

        A pair that held before is reported with its new probability, also if that is 0, and not if it is the same.
        """
        existed = self._existed[0][pairs[:, 0]] & self._existed[1][pairs[:, 1]]
        chosen = np.flatnonzero(existed & ~final)
        if len(chosen):
            previous, previous_complement = self._relate(self._previous, pairs[chosen])
            held = (previous > 0) & (previous >= self._spec.analysis.query.least_probability)
            same = (previous == probability[chosen]) & (previous_complement == complement[chosen])
            reported[chosen] = (reported[chosen] | held) & ~(held & same)
