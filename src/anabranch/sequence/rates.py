"""Loss probabilities of components by their reader (`MISS BY reader FROM rates`)."""

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
    """The components of a query, each with its loss probability."""
    components = []
    for component, condition in zip(query.components, disjunct.own, strict=True):
        if component.miss is None and query.rates is not None:
            component = replace(component, miss=_rate(query.rates, component, condition, relations))
        components.append(component)
    return tuple(components)


def _rate(rates: BoundRates, component: BoundComponent, condition: Typed | None, relations: Relations) -> float:
    """The loss probability of the readers that satisfy the condition on a component; they must all have the same."""
    table = relations[rates.relation.name.lower()]
    readers, chances = flat(table.column(0)), numbers_of(flat(table.column(1)))
    for reader, chance in zip(readers.to_pylist(), chances.tolist(), strict=True):
        if not 0 <= chance < 1:
            raise DataError(
                f"{rates.relation.name}: the probability that {reader} loses a reading is {chance:g}; "
                f"it must be 0 or more and below 1"
            )
    on_reader = tuple(
        conjunct for conjunct in conjuncts(condition) if {name for _, name in references(conjunct)} == {rates.column}
    )
    fitting = holds(conjunction(on_reader), {rates.column: readers}, relations, len(readers))
    known = sorted(set(chances[fitting].tolist()))
    if len(known) != 1:
        names = listed(sorted(map(str, readers.filter(pa.array(fitting)).to_pylist()))[:5], "and")
        rates_found = f"{count_of(len(known), 'rate')} ({names})" if known else "no rate"
        raise DataError(
            f"{rates.relation.name} has {rates_found} for the {rates.column} of {component.label}; "
            f"add MISS {component.label} with a number, or a row to {rates.relation.name}"
        )
    return float(known[0])
