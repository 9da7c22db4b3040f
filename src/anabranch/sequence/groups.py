"""Events with equal keys have one group: the classes of equal values that events of a match meet by, as codes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import I64
from anabranch.columns.dictionary import dense_codes
from anabranch.events.batch import Batch
from anabranch.sequence.analysis import ComponentColumn, SequenceAnalysis


def as_compared(column: pa.Array, as_doubles: bool) -> pa.Array:
    """A column in the type in which it is compared with its class."""
    return pc.cast(column, pa.float64(), safe=False) if as_doubles else column


class Groups:
    """The groups of events, for the keys that queries have; what is coded for one is kept for the next."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._numbers = {table.layout.name.lower(): number for number, table in enumerate(batch.tables)}
        self._known: dict[object, tuple[dict[tuple[str, str], I64], int]] = {}

    def of(self, analysis: SequenceAnalysis, component: I64, event: I64) -> tuple[I64, int]:
        """The group of each role, and how many there are; NULL equals nothing, and so is a group by itself.

        Parameters
        ----------
        component, event : of each role
        """
        group, n_groups = np.zeros(len(event), np.int64), 1
        unknown = np.zeros(len(event), np.bool_)
        for place in analysis.key:
            codes, n_codes = self._codes(analysis, place)
            own = self._of_roles(analysis, place, codes, component, event)
            unknown |= own < 0
            if n_groups > 1:
                own, firsts = dense_codes(group * n_codes + np.maximum(own, 0))
                n_codes = len(firsts)
            group, n_groups = own.astype(np.int64, copy=False), n_codes
        if unknown.any():
            group = np.where(unknown, n_groups + np.cumsum(unknown) - 1, group)
            n_groups += int(unknown.sum())
        return group, max(n_groups, 1)

    @staticmethod
    def _of_roles(
        analysis: SequenceAnalysis,
        place: Sequence[ComponentColumn],
        codes: dict[tuple[str, str], I64],
        component: I64,
        event: I64,
    ) -> I64:
        """The code of each role in one class; 0 for components that are not in it, whose events meet everybody."""
        components = analysis.query.components
        if len(codes) == 1 and len(place) == len(components):
            return next(iter(codes.values()))[event]
        own = np.zeros(len(event), np.int64)
        for number, each in enumerate(components):
            column = dict(place).get(each.name)
            if column is not None:
                mine = component == number
                own[mine] = codes[each.stream.name.lower(), column][event[mine]]
        return own

    def _codes(
        self, analysis: SequenceAnalysis, place: Sequence[ComponentColumn]
    ) -> tuple[dict[tuple[str, str], I64], int]:
        """For each stream and column of a class the code of each event, -1 where it is NULL; and how many there are."""
        streams = {each.name: each.stream.name.lower() for each in analysis.query.components}
        columns = sorted({(streams[name], column) for name, column in place})
        as_doubles = analysis.is_compared_as_double(place)
        key = (tuple(columns), as_doubles)
        if key not in self._known:
            tables = [self._batch.tables[self._numbers[stream]] for stream, _ in columns]
            parts = [
                as_compared(table.columns[column], as_doubles)
                for table, (_, column) in zip(tables, columns, strict=True)
            ]
            coded = pa.concat_arrays([part.cast(parts[0].type) for part in parts]).dictionary_encode()
            codes = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
            split = np.split(codes, np.cumsum([len(part) for part in parts])[:-1])
            own = {each: self._of_events(each[0], part) for each, part in zip(columns, split, strict=True)}
            self._known[key] = own, len(coded.dictionary)
        return self._known[key]

    def _of_events(self, stream: str, codes: I64) -> I64:
        """Codes of the rows of a stream as those of all events."""
        if len(self._batch.tables) == 1:
            return codes
        whole = np.full(len(self._batch), -1, np.int64)
        whole[self._batch.stream == self._numbers[stream]] = codes
        return whole
