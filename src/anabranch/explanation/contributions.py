"""The effect of each piece of evidence: it is left out, and the same job is run again.

Of many pieces, blocks are left out first, and the block with the largest effect is divided, until the strongest pieces
are known. A block whose pieces have no effect together is not divided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from anabranch.explanation.pieces import Piece

#: How many pieces an explanation shows.
SHOWN = 20
#: Up to so many pieces, each is left out by itself.
EACH = 100
#: Into how many parts a block is divided.
PARTS = 8
#: The most runs that are made to find the strongest pieces.
MOST_RUNS = 400
#: A smaller effect is a rounding error.
ROUNDING = 1e-9

Without = Callable[[Sequence[Piece]], float]


@dataclass(frozen=True, slots=True)
class Contribution:
    """The effect of one piece of evidence on the probability of an answer.

    Attributes
    ----------
    piece : the piece
    without : the probability without this piece
    effect : how much higher the probability is with it
    """

    piece: Piece
    without: float
    effect: float


@dataclass(frozen=True, slots=True)
class Contributions:
    """The strongest pieces, the strongest first, and what is known about the others.

    `n_pieces` is the number of all, `complete` says whether each was left out by itself or in a block without effect.
    """

    items: tuple[Contribution, ...]
    n_pieces: int
    n_effective: int
    complete: bool


@dataclass(order=True, slots=True)
class _Block:
    rank: float
    number: int
    pieces: Sequence[Piece] = field(compare=False)
    without: float = field(compare=False)


def contributions(pieces: Sequence[Piece], probability: float, without: Without, shown: int = SHOWN) -> Contributions:
    """The effects of the strongest pieces; `without` gives the probability without some of them."""
    size = 1 if len(pieces) <= EACH else -(-len(pieces) // EACH)
    runs = 0

    def block(part: Sequence[Piece]) -> _Block:
        nonlocal runs
        runs += 1
        p = without(part)
        return _Block(-abs(probability - p), runs, part, p)

    waiting = [block(pieces[start : start + size]) for start in range(0, len(pieces), size)]
    heapify(waiting)
    found: list[_Block] = []
    while waiting and -waiting[0].rank > ROUNDING and runs < MOST_RUNS:
        strongest = heappop(waiting)
        if len(strongest.pieces) == 1:
            found.append(strongest)
            if len(found) >= shown and size > 1:
                break
            continue
        size_of_part = -(-len(strongest.pieces) // PARTS)
        for start in range(0, len(strongest.pieces), size_of_part):
            heappush(waiting, block(strongest.pieces[start : start + size_of_part]))
    complete = not any(-other.rank > ROUNDING for other in waiting)
    n_effective = len(found) + sum(len(other.pieces) for other in waiting if -other.rank > ROUNDING)
    items = tuple(Contribution(block.pieces[0], block.without, probability - block.without) for block in found[:shown])
    return Contributions(items, len(pieces), n_effective, complete)
