"""Sets of partial results as a table, with the values that they keep in typed columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pyarrow as pa

from anabranch.pattern.machine import Partial
from anabranch.pattern.spec import PatternSpec


class PartialSets:
    """Writes and reads the sets of partial results of a query."""

    def __init__(self, spec: PatternSpec) -> None:
        self._types = spec.value_types
        #: With WITHIN, when a partial result began.
        self._fixed = {"state": pa.int64(), "goal": pa.int64(), "repeating": pa.bool_()}
        if spec.is_timed:
            self._fixed["began"] = pa.int64()
        self._kept = spec.kept_values

    def table(self, sets: Sequence[frozenset[Partial]]) -> pa.Table:
        """One row for each partial result of each set, which has its index; an empty set has a row without goal."""
        columns: dict[str, list[object]] = {name: [] for name in (*self._fixed, *self._types)}
        for number, partials in enumerate(sets):
            for partial in partials or [None]:
                values: dict[str, object] = {"state": number}
                if partial is not None:
                    names = self._kept[partial.goal][partial.repeating]
                    values |= {"goal": partial.goal, "repeating": partial.repeating, "began": partial.began}
                    values |= dict(zip(names, partial.values, strict=True))
                for name, column in columns.items():
                    column.append(values.get(name))
        kinds = {**self._fixed, **self._types}
        return pa.table({name: pa.array(columns[name], kind) for name, kind in kinds.items()})

    def read(self, table: pa.Table) -> list[frozenset[Partial]]:
        """The sets of `table`."""
        sets: dict[int, set[Partial]] = defaultdict(set)
        for row in table.to_pylist():
            partials = sets[row["state"]]
            if row["goal"] is not None:
                names = self._kept[row["goal"]][row["repeating"]]
                values = tuple(row[name] for name in names)
                partials.add(Partial(row["goal"], row["repeating"], values, row.get("began") or 0))
        return [frozenset(sets[number]) for number in sorted(sets)]
