"""The signatures of events: how each matches the goals, with the values that partial results keep."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import I32, I64
from anabranch.pattern.analysis import PatternAnalysis
from anabranch.pattern.automaton import accept_bit, match_bit
from anabranch.pattern.intake import Intake
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
