"""A whole stream held against its model: what is wrong with single rows, and with the rows of one key together.

A run checks what it reads as it goes; this is for looking at an input by itself, whatever queries it will serve.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import I32, Bools
from anabranch.catalog import Model
from anabranch.columns.dictionary import encode_tuples
from anabranch.relate.assembly import FAULTS, IntervalRows, assemble
from anabranch.transport.checks import OVERFULL, TOLERANCE, check_rows, quarantine
from anabranch.transport.packing import Layout, interval_numbers


def validate(table: pa.Table, layout: Layout, model: Model) -> pa.Table:
    """The rows that cannot be used, as a QUARANTINE table; all rows of a key are in `table`."""
    good, rejected = check_rows(table.select(layout.columns), layout)
    parts = [rejected]
    if good.num_rows and model in (Model.INDEPENDENT, Model.MARKOV):
        parts.append(_set_aside(good, layout, OVERFULL, _overfull(good, layout)))
    if good.num_rows and model is Model.INTERVALS:
        parts += _entities_at_fault(good, layout)
    return pa.concat_tables(parts)


def _set_aside(table: pa.Table, layout: Layout, reason: str, bad: Bools) -> pa.Table:
    return quarantine(layout.name, reason, table.filter(pa.array(bad)).to_pylist())


def _codes(table: pa.Table, names: Sequence[str]) -> I32:
    return encode_tuples([table[name] for name in names], table.num_rows)[0]


def _overfull(table: pa.Table, layout: Layout) -> Bools:
    """Rows of a (key, t), or (key, t, prev), whose probabilities sum above 1; a row given twice counts once."""
    group = _codes(table, (*layout.keys, layout.time, *layout.previous))
    _, firsts = np.unique(_codes(table, layout.columns), return_index=True)
    p = pc.cast(table[layout.probability], pa.float64()).to_numpy()
    sums = np.bincount(group[firsts], weights=p[firsts], minlength=group.max() + 1)
    return sums[group] > 1.0 + TOLERANCE


def _entities_at_fault(table: pa.Table, layout: Layout) -> Iterator[pa.Table]:
    """The rows of entities that cannot be, by reason."""
    entity = _codes(table, layout.keys)
    rows = IntervalRows.of(entity, interval_numbers(table, layout))
    fault = assemble(rows, int(entity.max()) + 1, layout.horizon).fault
    for number in np.unique(fault[fault > 0]):
        yield _set_aside(table, layout, FAULTS[int(number)], fault[entity] == number)
