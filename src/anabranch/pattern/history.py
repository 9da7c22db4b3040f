"""A chain instant by instant: what each of its keys can be, as sampling and joint states read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I32, I64, U64
from anabranch.pattern.intake import Intake, Received
from anabranch.pattern.machine import Signature
from anabranch.splitmix import GOLDEN, mix
from anabranch.transport.packing import hash_tuples


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What one key can be at one instant.

    Attributes
    ----------
    key, model : the key's number, and how it is uncertain
    prev, value, p : its rows, those of one previous value together
    signatures : of the events that match some goal, by value
    hashes : for each value code, a number that depends on the value alone
    seed : of what is drawn for the key at the instant
    """

    key: int
    model: int
    prev: I32
    value: I32
    p: F64
    signatures: dict[int, Signature]
    hashes: U64
    seed: int


#: A chain's instants in order: the time, and what each of its keys can be.
History = Sequence[tuple[int, Sequence[Outcomes]]]


class Histories:
    """Reads the histories of chains from the rows of a step.

    Numbers of keys and values tell in what order they arrived; what is drawn must not depend on it, and so goes by
    hashes.

    Parameters
    ----------
    intake, received : what was read, and by what
    signature, signatures : for each row the number of its event's signature, and the signatures
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
        """The history of a chain, given its rows by instant and key."""
        received = self._received
        t, key = received.rows.t[rows], received.key[rows]
        ends = np.append(np.flatnonzero((np.diff(t) != 0) | (np.diff(key) != 0)) + 1, len(rows))
        history: list[tuple[int, list[Outcomes]]] = []
        start = 0
        for end in ends.tolist():
            time = int(t[start])
            if not history or history[-1][0] != time:
                history.append((time, []))
            history[-1][1].append(self._outcomes(rows[start:end], time))
            start = end
        return history

    def _outcomes(self, rows: I64, t: int) -> Outcomes:
        received = self._received
        stream, key = int(received.rows.stream[rows[0]]), int(received.rows.key[rows[0]])
        hashes = self._value_hashes[stream]
        prev, value, p = received.rows.prev[rows], received.rows.value[rows], received.rows.p[rows]
        order = np.lexsort((p, hashes[value], hashes[prev]))
        signatures = {
            code: self._signatures[number]
            for code, number in zip(value.tolist(), self._signature[rows].tolist(), strict=True)
            if any(self._signatures[number])
        }
        return Outcomes(
            int(received.key[rows[0]]), int(received.model[rows[0]]), prev[order], value[order], p[order],
            signatures, hashes, self._seed_of(int(self._key_hashes[stream][key]), t),
        )  # fmt: skip

    def _seed_of(self, key: int, t: int) -> int:
        bits = 2**64 - 1
        with np.errstate(over="ignore"):
            of_key = mix(np.uint64(self._seed * int(GOLDEN) & bits) ^ np.uint64(key))
            return int(mix(of_key + np.uint64(t & bits)))

    @cached_property
    def _key_hashes(self) -> list[U64]:
        return [_hashes(self._intake.key_columns(stream), stream) for stream in range(self._intake.n_streams)]

    @cached_property
    def _value_hashes(self) -> list[U64]:
        return [_hashes(self._intake.value_columns(stream), stream) for stream in range(self._intake.n_streams)]


def _hashes(columns: list[pa.Array], stream: int) -> U64:
    """A number for each tuple that depends on nothing but it and the stream's place."""
    n_rows = len(columns[0])
    return hash_tuples([*columns, pa.repeat(pa.scalar(stream, pa.int64()), n_rows)], n_rows)
