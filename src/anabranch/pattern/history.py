"""The possible values of each key of a chain, instant by instant, for joint states and sampled worlds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I32, I64, U64
from anabranch.columns.hashing import hash_tuples
from anabranch.pattern import kernel
from anabranch.pattern.intake import Intake, Received
from anabranch.pattern.machine import Signature
from anabranch.splitmix import GOLDEN, mix


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The possible values of one key at one instant.

    Attributes
    ----------
    key, model : the number of the key, and the model of its stream
    prev, value, p : its rows; rows with the same previous value are consecutive
    signatures : the signature of each value whose event matches some goal
    hashes : for each value code, a hash of the value, which does not depend on the code
    seed : the seed of the random numbers for this key and instant
    """

    key: int
    model: int
    prev: I32
    value: I32
    p: F64
    signatures: dict[int, Signature]
    hashes: U64
    seed: int

    def alternatives(self) -> dict[int, list[tuple[int, float]]]:
        """For each previous value the possible values with their probabilities, *nothing* last."""
        alternatives: dict[int, list[tuple[int, float]]] = defaultdict(list)
        rest_of: dict[int, float] = defaultdict(lambda: 1.0)
        for prev, value, p in zip(self.prev.tolist(), self.value.tolist(), self.p.tolist(), strict=True):
            if p > 0.0:
                alternatives[prev].append((value, p))
                rest_of[prev] -= p
        for prev, rest in rest_of.items():
            if rest > kernel.ROUNDING:
                alternatives[prev].append((0, rest))
        return dict(alternatives)


#: Gives the distribution of a Markov key before the rows of a step, if it had rows.
Earlier = Callable[[int], Mapping[int, float] | None]


@dataclass(slots=True)
class Past:
    """The distribution of the value of each MARKOV key that has had no effect on a chain.

    Such a key is independent of the chain, and its distribution is enough.

    Parameters
    ----------
    earlier : gives the distribution of a key before the rows of this step, if it had rows
    """

    earlier: Earlier | None = None
    _now: dict[int, Mapping[int, float]] = field(default_factory=dict)

    def of(self, key: int) -> Mapping[int, float]:
        """The values of a key and their probabilities; a key without rows has the value *nothing*."""
        before = self._now.get(key)
        if before is None and self.earlier is not None:
            before = self.earlier(key)
        return before or {0: 1.0}

    def advance(self, outcomes: Outcomes) -> None:
        """Move a key on by its rows at an instant."""
        after: dict[int, float] = defaultdict(float)
        alternatives = outcomes.alternatives()
        for previous, weight in self.of(outcomes.key).items():
            for value, p in alternatives.get(previous, [(0, 1.0)]):
                after[value] += weight * p
        self._now[outcomes.key] = after


#: The instants of a chain in order: the time, and the possible values of each key with rows at it.
History = Sequence[tuple[int, Sequence[Outcomes]]]


class Histories:
    """Makes the histories of chains from the rows of a step.

    The numbers of keys and values depend on the order of arrival. Sampled worlds must not, so seeds are made of hashes.

    Parameters
    ----------
    intake, received : the intake, and the rows that it returned
    signature, signatures : the index of each row's signature, and the signatures
    seed : SEED of the query
    """

    def __init__(
        self,
        intake: Intake,
        received: Received,
        signature: I32,
        signatures: Sequence[Signature],
        seed: int,
    ) -> None:
        self._intake = intake
        self._received = received
        self._signature = signature
        self._signatures = signatures
        self._seed = seed

    def of(self, rows: I64) -> History:
        """The history of a chain, given its rows in the order of instants and keys.

        The keys of an instant are in an order that does not depend on their numbers.
        """
        received = self._received
        t, key = received.rows.t[rows], received.key[rows]
        ends = np.append(np.flatnonzero((np.diff(t) != 0) | (np.diff(key) != 0)) + 1, len(rows))[: len(rows)]
        history: list[tuple[int, list[Outcomes]]] = []
        start = 0
        for end in ends.tolist():
            time = int(t[start])
            if not history or history[-1][0] != time:
                history.append((time, []))
            history[-1][1].append(self._outcomes(rows[start:end], time))
            start = end
        for _, keys in history:
            keys.sort(key=attrgetter("seed"))
        return history

    def _outcomes(self, rows: I64, t: int) -> Outcomes:
        received = self._received
        stream, key = int(received.rows.stream[rows[0]]), int(received.rows.key[rows[0]])
        hashes = self._value_hashes[stream]
        prev, value, p = received.rows.prev[rows], received.rows.value[rows], received.rows.p[rows]
        order = np.lexsort((p, hashes[value], hashes[prev]))
        signatures = {
            code: self._signatures[index]
            for code, index in zip(value.tolist(), self._signature[rows].tolist(), strict=True)
            if any(self._signatures[index])
        }
        return Outcomes(
            int(received.key[rows[0]]), int(received.model[rows[0]]), prev[order], value[order], p[order],
            signatures, hashes, self._seed_of(int(self._key_hashes[stream][key]), t),
        )  # fmt: skip

    def _seed_of(self, key_hash: int, t: int) -> int:
        bits = 2**64 - 1
        with np.errstate(over="ignore"):
            key_seed = mix(np.uint64(self._seed * int(GOLDEN) & bits) ^ np.uint64(key_hash))
            return int(mix(key_seed + np.uint64(t & bits)))

    @cached_property
    def _key_hashes(self) -> list[U64]:
        return [_hashes(self._intake.key_columns(stream), stream) for stream in range(self._intake.n_streams)]

    @cached_property
    def _value_hashes(self) -> list[U64]:
        return [_hashes(self._intake.value_columns(stream), stream) for stream in range(self._intake.n_streams)]


def _hashes(columns: list[pa.Array], stream: int) -> U64:
    """A hash of each tuple of a stream's key or value columns, and of the number of the stream."""
    n_rows = len(columns[0])
    return hash_tuples([*columns, pa.repeat(pa.scalar(stream, pa.int64()), n_rows)], n_rows)
