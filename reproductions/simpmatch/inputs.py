"""The input of the algorithms: one pair of entities and a query, or many pairs."""

from __future__ import annotations

from typing import NamedTuple

from anabranch.arrays import F64, I64
from anabranch.compiled import compiled


class PairInput(NamedTuple):
    """Two entities, a and b, and a query about them.

    Attributes
    ----------
    times_a, lo_a, hi_a, times_b, lo_b, hi_b : F64
        The events of a and of b: times are NaN if lost; lo and hi are only read for lost events.
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


class PairsInput(NamedTuple):
    """Many pairs of entities and a query.

    Attributes
    ----------
    pairs : (n, 2) I64
        The numbers of the two entities of each pair.
    starts : I64
        Where the events of each entity start, with one entry more than entities.
    times, lo, hi : F64
        The events of all entities, concatenated.
    outer, inner, relations : int
        As in `PairInput`.
    """

    pairs: I64
    starts: I64
    times: F64
    lo: F64
    hi: F64
    outer: int
    inner: int
    relations: int


@compiled
def pair_input(all_pairs: PairsInput, n: int) -> PairInput:
    """Return the input for pair number n."""
    times, lo, hi = all_pairs.times, all_pairs.lo, all_pairs.hi
    first, second = all_pairs.pairs[n, 0], all_pairs.pairs[n, 1]
    a, end_a = all_pairs.starts[first], all_pairs.starts[first + 1]
    b, end_b = all_pairs.starts[second], all_pairs.starts[second + 1]
    return PairInput(
        times[a:end_a], lo[a:end_a], hi[a:end_a], times[b:end_b], lo[b:end_b], hi[b:end_b],
        all_pairs.outer, all_pairs.inner, all_pairs.relations,
    )  # fmt: skip
