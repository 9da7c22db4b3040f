"""Groups of events with equal keys: only events of the same group can be in one match."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import I64
from anabranch.columns.kernel import dense_codes
from anabranch.events.batch import Batch
from anabranch.sequence.analysis import ComponentColumn, SequenceAnalysis


def as_compared(column: pa.Array, as_doubles: bool) -> pa.Array:
    """A column in the type in which it is compared with the other columns of its class."""
    return pc.cast(column, pa.float64(), safe=False) if as_doubles else column


class Groups:
    """The groups of events by the keys of queries; the codes of columns are cached for the next query."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._numbers = {table.layout.name.lower(): number for number, table in enumerate(batch.tables)}
        self._known: dict[object, tuple[dict[tuple[str, str], I64], int]] = {}

    def of(self, analysis: SequenceAnalysis, component: I64, event: I64) -> tuple[I64, int]:
        """The group of each role, and the number of groups; an event with a NULL in its key has a group for itself.

        Parameters
        ----------
        component, event : of each role
        """
        group, n_groups = np.zeros(len(event), np.int64), 1
        unknown = np.zeros(len(event), np.bool_)
        for equal_columns in analysis.key:
            codes, n_codes = self._codes(analysis, equal_columns)
            role_codes = self._of_roles(analysis, equal_columns, codes, component, event)
            unknown |= role_codes < 0
            if n_groups > 1:
                role_codes, firsts = dense_codes(group * n_codes + np.maximum(role_codes, 0))
                n_codes = len(firsts)
            group, n_groups = role_codes.astype(np.int64, copy=False), n_codes
        if unknown.any():
            group = np.where(unknown, n_groups + np.cumsum(unknown) - 1, group)
            n_groups += int(unknown.sum())
        return group, max(n_groups, 1)

    @staticmethod
    def _of_roles(
        analysis: SequenceAnalysis,
        equal_columns: Sequence[ComponentColumn],
        codes: dict[tuple[str, str], I64],
        component: I64,
        event: I64,
    ) -> I64:
        """The code of each role in one class; 0 for components without a column in it, which belong to every group."""
        components = analysis.query.components
        if len(codes) == 1 and len(equal_columns) == len(components):
            return next(iter(codes.values()))[event]
        role_codes = np.zeros(len(event), np.int64)
        for number, bound in enumerate(components):
            column = dict(equal_columns).get(bound.name)
            if column is not None:
                is_component = component == number
                role_codes[is_component] = codes[bound.stream.name.lower(), column][event[is_component]]
        return role_codes

    def _codes(
        self, analysis: SequenceAnalysis, equal_columns: Sequence[ComponentColumn]
    ) -> tuple[dict[tuple[str, str], I64], int]:
        """For each stream and column of a class, the code of each event, -1 for NULL; and the number of codes."""
        streams = {component.name: component.stream.name.lower() for component in analysis.query.components}
        columns = sorted({(streams[name], column) for name, column in equal_columns})
        as_doubles = analysis.is_compared_as_double(equal_columns)
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
            by_column = {
                (stream, column): self._of_events(stream, part)
                for (stream, column), part in zip(columns, split, strict=True)
            }
            self._known[key] = by_column, len(coded.dictionary)
        return self._known[key]

    def _of_events(self, stream: str, codes: I64) -> I64:
        """Extend the codes of the rows of a stream to all events; -1 for events of other streams."""
        if len(self._batch.tables) == 1:
            return codes
        whole = np.full(len(self._batch), -1, np.int64)
        whole[self._batch.stream == self._numbers[stream]] = codes
        return whole
