"""A Markov chain without some of its instants: what the key was at them is not reported, but the chain goes on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set
from typing import Any

import pyarrow as pa

from anabranch.transport.layout import Layout

#: The value of a key: one item per VALUE column.
Value = tuple[Any, ...]
#: The probability of each value, for each previous value.
Transitions = Mapping[Value, Mapping[Value, float]]


def without_instants(table: pa.Table, layout: Layout, rows: Set[int]) -> pa.Table:
    """The rows of a MARKOV stream without the instants that some rows belong to.

    The rows of the next instant of the key then depend on the instant before: the tables of both are multiplied.
    """
    assert layout.distribution is not None
    columns = [table[name].to_pylist() for name in layout.keys]
    keys = list(zip(*columns, strict=True))
    by_key: dict[Value, dict[Any, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, t in enumerate(table[layout.time].to_pylist()):
        by_key[keys[number]][t].append(number)
    changed = {keys[row] for row in rows}
    kept = [number for number, key in enumerate(keys) if key not in changed]
    chain = _Chain(table, layout)
    made: list[dict[str, Any]] = []
    for key in changed:
        left_out = {t for t, numbers in by_key[key].items() if rows & set(numbers)}
        made += chain.without(key, by_key[key], left_out)
    return pa.concat_tables([table.take(pa.array(kept, pa.int64())), pa.Table.from_pylist(made, table.schema)])


class _Chain:
    """The transition tables of the keys of a stream."""

    def __init__(self, table: pa.Table, layout: Layout) -> None:
        assert layout.distribution is not None
        self._layout, self._probability = layout, layout.distribution.probability
        parts = [table.select(list(names)).to_pylist() for names in (layout.previous, layout.values)]
        self._previous, self._values = ([tuple(row.values()) for row in part] for part in parts)
        self._p = table[self._probability].to_pylist()
        self._nothing: Value = (None,) * len(layout.values)

    def without(self, key: Value, instants: Mapping[Any, list[int]], left_out: Set[Any]) -> list[dict[str, Any]]:
        """The rows of a key without some of its instants."""
        made: list[dict[str, Any]] = []
        possible: set[Value] = {self._nothing}
        skipped: Transitions | None = None
        for t in sorted(instants):
            here = self._transitions(instants[t])
            if skipped is not None:
                here = {start: self._product(skipped.get(start, {self._nothing: 1.0}), here) for start in possible}
            if t in left_out:
                skipped = {start: here.get(start, {self._nothing: 1.0}) for start in possible}
                continue
            skipped = None
            made += self._rows(key, t, here)
            possible = {value for start in possible for value in here.get(start, {self._nothing: 1.0})}
        return made

    def _transitions(self, rows: list[int]) -> dict[Value, dict[Value, float]]:
        """The table of an instant; what rows leave over goes to *nothing*. Equal rows are one row."""
        table: dict[Value, dict[Value, float]] = {}
        for previous, value, p in {(self._previous[row], self._values[row], self._p[row]) for row in rows}:
            following = table.setdefault(previous, defaultdict(float))
            following[value] += p
        for following in table.values():
            following[self._nothing] = following.get(self._nothing, 0.0) + max(0.0, 1.0 - sum(following.values()))
        return table

    def _product(self, first: Mapping[Value, float], second: Transitions) -> dict[Value, float]:
        after: dict[Value, float] = defaultdict(float)
        for value, p in first.items():
            for following, q in second.get(value, {self._nothing: 1.0}).items():
                after[following] += p * q
        return after

    def _rows(self, key: Value, t: Any, table: Transitions) -> list[dict[str, Any]]:
        names = (*self._layout.keys, self._layout.time, *self._layout.previous, *self._layout.values, self._probability)
        return [
            dict(zip(names, (*key, t, *previous, *value, p), strict=True))
            for previous, following in table.items()
            for value, p in following.items()
        ]
