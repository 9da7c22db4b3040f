"""The pairs of a block: which hold, how probably, and which must be taken back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import F64, I64, Bools
from anabranch.columns.dictionary import flat
from anabranch.columns.times import TimeKind
from anabranch.relate.pairing import Side, pairs_of, side_of
from anabranch.relate.pairs import Windows, relate
from anabranch.relate.spec import RelateSpec


def decide(spec: RelateSpec, members: pa.Table) -> pa.Table:
    """The answers about the pairs of a block, given its members."""
    (first, firsts), (second, seconds) = (side_of(spec, number, members) for number in (0, 1))
    deciding = _Deciding(spec, firsts, seconds)
    chunks = pairs_of(spec.analysis, first, second, spec.relations)
    answers = [deciding.answers(pairs, first, second) for pairs in chunks]
    return pa.concat_tables([spec.result_schema.empty_table(), *answers])


class _Deciding:
    """The entities of a block as they are known, and as they were known before."""

    def __init__(self, spec: RelateSpec, firsts: pa.Table, seconds: pa.Table) -> None:
        self._spec = spec
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

    def answers(self, pairs: I64, first: Side, second: Side) -> pa.Table:
        """The answers about some pairs."""
        query, live = self._spec.analysis.query, self._spec.live
        probability, complement = self._relate(self._now, pairs)
        gone = ~(self._there[0][pairs[:, 0]] & self._there[1][pairs[:, 1]])
        probability[gone], complement[gone] = 0.0, 1.0
        holds = (probability > 0) & (probability >= query.threshold)
        final = self._over[0][pairs[:, 0]] & self._over[1][pairs[:, 1]] & holds
        if live:
            holds |= self._fell(pairs, ~holds)
        schema = self._spec.result_schema
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

    def _relate(self, known: list[Windows], pairs: I64) -> tuple[F64, F64]:
        doubles = self._spec.time_kind is TimeKind.DOUBLE
        return relate(self._spec.analysis, doubles, known[0], known[1], pairs)

    def _fell(self, pairs: I64, asked: Bools) -> Bools:
        """Which of the pairs asked held before the last change: they were reported, and must be taken back."""
        known = self._was_known[0][pairs[:, 0]] & self._was_known[1][pairs[:, 1]]
        chosen = np.flatnonzero(asked & known)
        fell = np.zeros(len(pairs), np.bool_)
        if len(chosen):
            probability, _ = self._relate(self._before, pairs[chosen])
            fell[chosen] = (probability > 0) & (probability >= self._spec.analysis.query.threshold)
        return fell
