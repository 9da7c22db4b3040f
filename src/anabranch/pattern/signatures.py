"""The signatures of events: how each matches the goals, with the values that partial results keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from anabranch.arrays import I32, I64
from anabranch.pattern.analysis import PatternAnalysis
from anabranch.pattern.automaton import accept_bit, match_bit
from anabranch.pattern.bindings import Expansion
from anabranch.pattern.intake import Intake, Received
from anabranch.pattern.machine import Match, Signature
from anabranch.transport.rows import Rows


def read_signatures(intake: Intake, analysis: PatternAnalysis, rows: Rows) -> tuple[I32, list[Signature], I64]:
    """For each row the index of its event's signature, the list of signatures, and each row's symbols.

    Symbols are those of the alternatives of goals (`Intake.alternatives`).
    """
    indexes: dict[Signature, int] = {}
    signature_of_row = np.zeros(len(rows), np.int32)
    masks = np.zeros(len(rows), np.int64)
    exposed = [kept.exposed for kept in analysis.kept]
    for events in intake.distinct_events(rows, with_keys=True):
        symbols = intake.alternatives(events, analysis)
        masks[events.rows] = symbols[events.event]
        matches: list[list[Match | None]] = []
        for number, test in enumerate(analysis.tests):
            if test.stream != events.stream:
                matches.append([None] * len(symbols))
                continue
            columns = [events.columns[test.variable_columns[name]].to_pylist() for name in exposed[test.goal]]
            values: list[tuple[object, ...]] = list(zip(*columns, strict=True)) if columns else [()] * len(symbols)
            matches.append(_matches(symbols, number, values))
        signatures = zip(*matches, strict=True)
        codes = [indexes.setdefault(signature, len(indexes)) for signature in signatures]
        signature_of_row[events.rows] = np.array(codes, np.int32)[events.event]
    return signature_of_row, list(indexes), masks


def _matches(symbols: I64, number: int, values: list[tuple[object, ...]]) -> list[Match | None]:
    """How each distinct event matches an alternative of a goal; None if it does not."""
    matched = (symbols & match_bit(number) != 0).tolist()
    accepted = (symbols & accept_bit(number) != 0).tolist()
    return [
        Match(accept, bound) if match else None for match, accept, bound in zip(matched, accepted, values, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Signed:
    """The rows of a step with their signatures.

    Attributes
    ----------
    received : the rows
    signature, signatures : the index of each row's signature, and the signatures
    mask : the symbols of each row's event
    """

    received: Received
    signature: I32
    signatures: Sequence[Signature]
    mask: I64

    @classmethod
    def of(cls, intake: Intake, analysis: PatternAnalysis, received: Received) -> Signed:
        """The rows that a step received."""
        return cls(received, *read_signatures(intake, analysis, received.rows))

    @classmethod
    def of_operands(cls, intake: Intake, operands: Sequence[PatternAnalysis], received: Received) -> Signed:
        """The same with the signatures for the goals of several queries; `mask` says whether any matches."""
        read = [read_signatures(intake, operand, received.rows) for operand in operands]
        indexes, index = np.unique(np.stack([signature for signature, _, _ in read]), axis=1, return_inverse=True)
        signatures = [
            tuple(match for number, (_, known, _) in zip(numbers, read, strict=True) for match in known[number])
            for numbers in indexes.T.tolist()
        ]
        mask = np.bitwise_or.reduce([own for _, _, own in read])
        return cls(received, index.reshape(-1).astype(np.int32), signatures, mask)

    def repeated(self, expansion: Expansion, n_nodes: int) -> Signed:
        """The rows, repeated for each binding that they can change; the chains are bindings from here on."""
        received, rows = self.received, expansion.rows
        pairs, index = np.unique(np.stack([self.signature[rows], expansion.mask]), axis=1, return_inverse=True)
        signatures: dict[Signature, int] = {}
        codes = [
            signatures.setdefault(_restricted(self.signatures[signature], mask), len(signatures))
            for signature, mask in pairs.T.tolist()
        ]
        repeated = replace(
            received, rows=received.rows.take(rows), key=received.key[rows], model=received.model[rows],
            chain=expansion.node, used=np.arange(len(rows)), starts=expansion.starts(n_nodes),
        )  # fmt: skip
        return Signed(repeated, np.array(codes, np.int32)[index.reshape(-1)], list(signatures), expansion.mask)


def _restricted(signature: Signature, mask: int) -> Signature:
    """How an event matches each goal for a binding, given the symbols that the event has for it."""
    return tuple(
        Match(bool(mask & accept_bit(goal)), match.values) if match is not None and mask & match_bit(goal) else None
        for goal, match in enumerate(signature)
    )
