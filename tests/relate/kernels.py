"""Calls the kernel of RELATE directly: entities as windows, a query as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from tests.oracles.relate import Entity, Quantifier, Window

from anabranch.columns.times import order_doubles
from anabranch.relate import kernel
from anabranch.relate.query import COMPOSITE, SIMPLE
from anabranch.relate.windows import Windows

#: The window of every event of an entity, as time codes; for a recorded event, both ends are its time.
Codes = Sequence[tuple[int, int]]


class Decided(NamedTuple):
    """The result of the kernel for one pair."""

    probability: float
    complement: float


def bits(*relations: str) -> int:
    """Relations, simple or composite, as the bits that the kernel takes."""
    simple = {name for relation in relations for name in COMPOSITE.get(relation, (relation,))}
    return sum(1 << SIMPLE.index(name) for name in simple)


#: The phases, and the rate of a phase, of the state that each event of an entity begins.
Laws = Sequence[tuple[int, float]]


def decided(
    a: Codes,
    b: Codes,
    outer: Quantifier,
    inner: Quantifier,
    relations: int,
    doubles: bool = False,
    laws: Sequence[Laws] | None = None,
) -> Decided:
    """Call the kernel for one pair, or with `laws` the kernel for distributions."""
    n = len(b) // 2
    least, most = _limits(inner, n)
    table = kernel.segment_classes(np.arange(n + 1), least, most, relations, outer is None)
    classes = kernel.Classes(np.zeros(1, np.int64), np.zeros(1, np.int64), 0, *table)
    pairs, operands = np.array([[0, 0]]), [windows_of([x]) for x in (a, b)]
    # For ALL, hits are failures: at most 0 of them.
    least, most = (0, 0) if outer is None else _limits(outer, len(a) // 2)
    floor, needed = (max(0, least - 1), most + 1) if isinstance(outer, tuple) or outer is None else (least - 1, least)
    if laws is None:
        marked = [windows.marked() for windows in operands]
        counts = kernel.relate_pairs(pairs, *marked, classes, floor, needed, doubles)
    else:
        chained = [_with_laws(windows, of_entity).chained() for windows, of_entity in zip(operands, laws, strict=True)]
        counts = kernel.relate_chains(pairs, *chained, classes, floor, needed, doubles)
    is_true = [least <= number <= max(most, least) for number in range(floor, needed + 1)]
    return Decided(counts[0][is_true].sum(), counts[0][np.invert(is_true)].sum())


def _limits(quantifier: Quantifier, n_segments: int) -> tuple[int, int]:
    if quantifier is None:
        return n_segments, n_segments
    return quantifier if isinstance(quantifier, tuple) else (quantifier, n_segments)


def _with_laws(windows: Windows, laws: Laws) -> Windows:
    phases, rates = zip(*laws, strict=True)
    return replace(windows, phases=np.array(phases), rates=np.array(rates))


def windows_of(entities: Sequence[Codes]) -> Windows:
    """The windows of entities."""
    ends = np.array([window for entity in entities for window in entity], np.int64).reshape(-1, 2)
    events = np.concatenate([[0], np.cumsum([len(entity) for entity in entities])])
    return Windows(events, ends[:, 0].copy(), ends[:, 1].copy())


def codes_of(entity: Entity, scale: Fraction | int, origin: Fraction | int = 0, doubles: bool = False) -> list:
    """The windows of an entity's events as codes, narrowed by their neighbours; `scale` is the length of a unit."""
    ends = [(event.lo, event.hi) if isinstance(event, Window) else (event, event) for event in entity.events]
    lo = [max(low for low, _ in ends[: i + 1]) for i in range(len(ends))]
    hi = [min(high for _, high in ends[i:]) for i in range(len(ends))]
    instants = [[instant * scale + origin for instant in column] for column in (lo, hi)]
    if doubles:
        instants = [order_doubles(np.array([float(instant) for instant in column])).tolist() for column in instants]
    return [(int(low), int(high)) for low, high in zip(*instants, strict=True)]
