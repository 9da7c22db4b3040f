"""A whole stream held against its model: what is wrong with single rows, and with the rows of one key together.

A run checks what it reads as it goes; this is for looking at an input by itself, whatever questions it will serve.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.catalog import Model
from anabranch.rows.checks import OVERFULL, TOLERANCE, check_rows, quarantine
from anabranch.rows.dictionary import encode_tuples
from anabranch.rows.packing import Layout
from anabranch.rows.times import encode_times


def validate(table: pa.Table, layout: Layout, model: Model) -> pa.Table:
    """The rows that cannot be used, as a QUARANTINE table; all rows of a key are in `table`."""
    good, rejected = check_rows(table.select(layout.columns), layout)
    parts = [rejected]
    if good.num_rows and model in (Model.INDEPENDENT, Model.MARKOV):
        parts.append(_set_aside(good, layout, OVERFULL, _overfull(good, layout)))
    if good.num_rows and model is Model.INTERVALS:
        parts.append(_set_aside(good, layout, "the times of its entity decrease", _decreasing(good, layout)))
    return pa.concat_tables(parts)


def _set_aside(table: pa.Table, layout: Layout, reason: str, bad: npt.NDArray[np.bool_]) -> pa.Table:
    return quarantine(layout.name, reason, table.filter(pa.array(bad)).to_pylist())


def _codes(table: pa.Table, names: Sequence[str]) -> npt.NDArray[np.int32]:
    return encode_tuples([table[name] for name in names], table.num_rows)[0]


def _overfull(table: pa.Table, layout: Layout) -> npt.NDArray[np.bool_]:
    """Rows of a (key, t), or (key, t, prev), whose probabilities sum above 1; a row given twice counts once."""
    group = _codes(table, (*layout.keys, layout.time, *layout.previous))
    _, firsts = np.unique(_codes(table, layout.columns), return_index=True)
    p = pc.cast(table[layout.probability], pa.float64()).to_numpy()
    sums = np.bincount(group[firsts], weights=p[firsts], minlength=group.max() + 1)
    return sums[group] > 1.0 + TOLERANCE


def _decreasing(table: pa.Table, layout: Layout) -> npt.NDArray[np.bool_]:
    """All rows of an entity whose recorded times go back where its positions go on."""
    entity = _codes(table, layout.keys)
    recorded = np.flatnonzero(table[layout.time].is_valid().to_numpy())
    position = table[layout.order].to_numpy()[recorded]
    t = encode_times(table[layout.time].drop_null(), layout.time_kind)
    order = np.lexsort((position, entity[recorded]))
    same = entity[recorded][order][1:] == entity[recorded][order][:-1]
    back = same & (t[order][1:] < t[order][:-1])
    return np.isin(entity, entity[recorded][order][1:][back])
