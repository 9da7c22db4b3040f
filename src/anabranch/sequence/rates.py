"""The chance that a component's reading is lost, where it is that of its reader (`MISS BY reader FROM rates`)."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from anabranch.binding.typed import Typed, conjunction, conjuncts, references
from anabranch.binding.words import count_of
from anabranch.columns.conditions import Relations, holds
from anabranch.columns.dictionary import flat
from anabranch.columns.numbers import numbers_of
from anabranch.errors import DataError
from anabranch.language.findings import listed
from anabranch.sequence.analysis import Disjunct
from anabranch.sequence.query import BoundComponent, BoundRates, BoundSequence


def with_rates(query: BoundSequence, disjunct: Disjunct, relations: Relations) -> tuple[BoundComponent, ...]:
    """The components of a query with the chance of a loss of each."""
    found = []
    for component, own in zip(query.components, disjunct.own, strict=True):
        if component.miss is None and query.rates is not None:
            component = replace(component, miss=_rate(query.rates, component, own, relations))
        found.append(component)
    return tuple(found)


def _rate(rates: BoundRates, component: BoundComponent, own: Typed | None, relations: Relations) -> float:
    """The rate of the readers that a component can have been read by, if it is one."""
    table = relations[rates.relation.name.lower()]
    readers, chances = flat(table.column(0)), numbers_of(flat(table.column(1)))
    for reader, chance in zip(readers.to_pylist(), chances.tolist(), strict=True):
        if not 0 <= chance < 1:
            raise DataError(
                f"{rates.relation.name}: the chance that {reader} loses a reading is {chance:g}; "
                f"it must be 0 or more and below 1"
            )
    asked = tuple(part for part in conjuncts(own) if {name for _, name in references(part)} == {rates.column})
    fitting = holds(conjunction(asked), {rates.column: readers}, relations, len(readers))
    known = sorted(set(chances[fitting].tolist()))
    if len(known) != 1:
        names = listed(sorted(map(str, readers.filter(pa.array(fitting)).to_pylist()))[:5], "and")
        told = f"{count_of(len(known), 'rate')} ({names})" if known else "no rate"
        raise DataError(
            f"{rates.relation.name} has {told} for what {component.label} asks of {rates.column}; "
            f"add MISS {component.label} with a number, or a row to {rates.relation.name}"
        )
    return float(known[0])
