"""What the contestants are asked: about one pair of entities, or about many in one call."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anabranch.compiled import compiled

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


class Asked(NamedTuple):
    """Two entities and a query.

    Attributes
    ----------
    times_a, lo_a, hi_a, times_b, lo_b, hi_b : F64
        The events of a and of b: times NaN where lost; lo and hi are read for lost events alone.
    outer, inner : int
        The quantifiers: k for AT LEAST k, 0 for ALL.
    relations : int
        Bits in the order of SIMPLE.
    """

    times_a: F64
    lo_a: F64
    hi_a: F64
    times_b: F64
    lo_b: F64
    hi_b: F64
    outer: int
    inner: int
    relations: int


class ManyAsked(NamedTuple):
    """Many pairs of entities and a query.

    Attributes
    ----------
    pairs : (n, 2) I64
        The numbers of the two entities of each pair.
    events : I64
        Where the events of each entity begin, with one entry more than entities.
    times, lo, hi : F64
        Of the events of all entities, end to end.
    outer, inner, relations : int
        As in `Asked`.
    """

    pairs: I64
    events: I64
    times: F64
    lo: F64
    hi: F64
    outer: int
    inner: int
    relations: int


@compiled
def asked_of(many: ManyAsked, n: int) -> Asked:
    """What is asked about one of the pairs."""
    times, lo, hi = many.times, many.lo, many.hi
    a, end_a = many.events[many.pairs[n, 0]], many.events[many.pairs[n, 0] + 1]
    b, end_b = many.events[many.pairs[n, 1]], many.events[many.pairs[n, 1] + 1]
    return Asked(
        times[a:end_a], lo[a:end_a], hi[a:end_a], times[b:end_b], lo[b:end_b], hi[b:end_b],
        many.outer, many.inner, many.relations,
    )  # fmt: skip
