"""The probabilities of pairs of entities: the kernel is called only for pairs that the windows do not decide."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from anabranch.arrays import F64, I64
from anabranch.errors import TooLarge
from anabranch.relate import kernel
from anabranch.relate.analysis import ALL, RelateAnalysis
from anabranch.relate.windows import Windows

#: The most weights of a pair; the kernel allocates three doubles per weight.
MOST_WEIGHTS = 1 << 26


def relate(analysis: RelateAnalysis, doubles: bool, first: Windows, second: Windows, pairs: I64) -> tuple[F64, F64]:
    """The probability that the query holds for each pair (n, 2) of entity numbers, and the complement.

    The kernel is not needed if one entity ends before the other begins, or has fewer segments than the query requires.

    Raises
    ------
    TooLarge
        If the consecutive lost events of a pair need more than MOST_WEIGHTS weights.
    """
    a, b = pairs[:, 0], pairs[:, 1]
    is_before, is_after = first.latest[a] < second.earliest[b], first.earliest[a] > second.latest[b]
    has_segments = (analysis.outer == ALL) | (first.lengths[a] // 2 >= analysis.outer)
    has_segments &= (analysis.inner == ALL) | (second.lengths[b] // 2 >= analysis.inner)
    holds = np.where(is_before, analysis.has_relation("PRECEDES"), analysis.has_relation("PRECEDED BY")) & has_segments
    probability, complement = holds.astype(np.float64), (~holds).astype(np.float64)
    overlapping = np.flatnonzero(~is_before & ~is_after & has_segments)
    if len(overlapping):
        classes = class_tables(second.lengths[b[overlapping]], analysis)
        hits, misses = _decided(analysis, doubles, first, second, pairs[overlapping], classes)
        # For ALL, hits are failures.
        true, false = (misses, hits) if analysis.outer == ALL else (hits, misses)
        # A certain pair has probability exactly 1, without rounding errors.
        probability[overlapping] = np.where(false == 0, 1.0, np.minimum(true, 1.0))
        complement[overlapping] = np.where(true == 0, 1.0, np.minimum(false, 1.0))
    return probability, complement


def _decided(
    analysis: RelateAnalysis, doubles: bool, first: Windows, second: Windows, pairs: I64, classes: kernel.Classes
) -> tuple[F64, F64]:
    """The probabilities of enough hits, and of fewer, by the kernel for the laws of the two streams."""
    a, b = pairs[:, 0], pairs[:, 1]
    if first.has_laws or second.has_laws:
        chains_a, chains_b = first.chained(a), second.chained(b)
        _check_size(chains_a.longest[a], chains_b.longest[b], classes, analysis)
        return kernel.relate_chains(pairs, chains_a, chains_b, classes, analysis.hits_needed, doubles)
    firsts, seconds = first.marked(a), second.marked(b)
    _check_size(firsts.longest[a], seconds.longest[b], classes, analysis)
    return kernel.relate_pairs(pairs, firsts, seconds, classes, analysis.hits_needed, doubles)


def _check_size(longest_a: I64, longest_b: I64, classes: kernel.Classes, analysis: RelateAnalysis) -> None:
    """Raise TooLarge if a pair needs too many weights."""
    cells = int(((longest_a + 1) * (longest_b + 1)).max())
    weights = cells * int(classes.count.max()) * (analysis.hits_needed + 1)
    if weights > MOST_WEIGHTS:
        lost = f"two entities have {longest_a.max()} and {longest_b.max()} consecutive lost events"
        hint = "use a smaller AT LEAST, or filter out such entities"
        raise TooLarge(f"{lost}, which needs {weights:,} weights (at most {MOST_WEIGHTS:,} are allowed); {hint}")


def class_tables(lengths: I64, analysis: RelateAnalysis) -> kernel.Classes:
    """The segment classes for second entities with these numbers of events, one table after the other."""
    distinct = np.unique(lengths)
    tables = [_table(int(n), analysis.inner, analysis.relations, analysis.outer == ALL) for n in distinct]
    first_row = np.full(int(distinct[-1]) + 1, -1, np.int64)
    first_row[distinct] = np.concatenate([[0], np.cumsum(distinct + 1)[:-1]])
    widest = max(after.shape[1] for _, after, *_ in tables)
    count, after, hit, hit_tie, begun, begun_tie = (
        np.concatenate([_widened(column, widest) for column in columns]) for columns in zip(*tables, strict=True)
    )
    return kernel.Classes(first_row, count, after, hit, hit_tie, begun, begun_tie)


@lru_cache(maxsize=4096)
def _table(n_events: int, inner: int, relations: int, hit_is_failure: bool) -> tuple[npt.NDArray[Any], ...]:
    return kernel.segment_classes(n_events, inner, relations, hit_is_failure)


def _widened(column: npt.NDArray[Any], width: int) -> npt.NDArray[Any]:
    return column if column.ndim == 1 else np.pad(column, ((0, 0), (0, width - column.shape[1])))
