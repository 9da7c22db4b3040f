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
    """For each row the index of its event's signature, the list of signatures, and each row's symbols."""
    indexes: dict[Signature, int] = {}
    signature_of_row = np.zeros(len(rows), np.int32)
    masks = np.zeros(len(rows), np.int64)
    for events in intake.distinct_events(rows, with_keys=True):
        symbols = intake.masks(events, analysis)
        masks[events.rows] = symbols[events.event]
        matches_of_goals: list[list[Match | None]] = []
        for goal, (test, kept) in enumerate(zip(analysis.tests, analysis.kept, strict=True)):
            if test.stream != events.stream:
                matches_of_goals.append([None] * len(symbols))
                continue
            columns = [events.columns[test.variable_columns[name]].to_pylist() for name in kept.exposed]
            values: list[tuple[object, ...]] = list(zip(*columns, strict=True)) if columns else [()] * len(symbols)
            matches_of_goals.append(_matches(symbols, goal, values))
        signatures = zip(*matches_of_goals, strict=True)
        codes = [indexes.setdefault(signature, len(indexes)) for signature in signatures]
        signature_of_row[events.rows] = np.array(codes, np.int32)[events.event]
    return signature_of_row, list(indexes), masks


def _matches(symbols: I64, goal: int, values: list[tuple[object, ...]]) -> list[Match | None]:
    """How each distinct event matches a goal; None if it does not."""
    matched = (symbols & match_bit(goal) != 0).tolist()
    accepted = (symbols & accept_bit(goal) != 0).tolist()
    return [
        Match(accept, bound) if match else None for match, accept, bound in zip(matched, accepted, values, strict=True)
    ]
