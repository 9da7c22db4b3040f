"""Answers of MONITOR held against the truth, or against each other."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tests.oracles.monitor import Answer
from tests.oracles.monitor_predictions import instant
from tests.oracles.monitor_regions import SEARCH_ERROR

#: Instants are doubles, and a TIMESTAMP is rounded to microseconds.
INSTANT = 2e-6
#: A region shorter than this may be a contact that rounding made or missed.
CONTACT = 1e-8
#: How far a probability may be from one that the oracle has searched for, also where it may have missed a hill.
PROBABILITY, PROBABILITY_HILLS = 2 * SEARCH_ERROR, 1e-2


def assert_same(found: Sequence[Answer], wanted: Sequence[Answer], labels: Sequence[str], hills: bool = False) -> None:
    """Every answer of one is in the other, and nothing else, but for contacts.

    With `hills` a probability may be higher than the truth's, which was searched for.
    """
    left = list(found)
    for answer in wanted:
        near = [each for each in left if _is_same(each, answer, labels)]
        if not near:
            assert _length(answer) < CONTACT, f"missing {answer} among {left}"
            continue
        best = min(near, key=lambda each: _distance(each, answer))
        left.remove(best)
        _assert_probability(best, answer, hills)
        _assert_boundary(best, answer)
    assert all(_length(each) < CONTACT for each in left), f"not wanted: {left}"


def who(answer: Answer, labels: Sequence[str]) -> tuple[Any, ...]:
    """The predictions that an answer is about."""
    return tuple(
        tuple((name, value if isinstance(value, str) else instant(value)) for name, value in answer[label].items())
        for label in labels
    )


def _is_same(one: Answer, other: Answer, labels: Sequence[str]) -> bool:
    same = all(abs(float(one[name] - Fraction(other[name]))) <= INSTANT for name in ("valid_from", "valid_to"))
    return same and who(one, labels) == who(other, labels)


def _distance(one: Answer, other: Answer) -> float:
    """How different two answers about the same predictions are: two predictions of one key and time look alike."""
    total = abs(one["probability"] - float(other["probability"]))
    if one.get("boundary") and other.get("boundary"):
        total += abs(len(one["boundary"]) - len(other["boundary"]))
        for corner, other_corner in zip(one["boundary"], other["boundary"], strict=False):
            total += sum(abs(float(a - Fraction(b))) for a, b in zip(corner, other_corner, strict=True))
    return total


def _length(answer: Answer) -> float:
    return float(answer["valid_to"] - answer["valid_from"])


def _assert_probability(found: Answer, wanted: Answer, hills: bool) -> None:
    difference = found["probability"] - float(wanted["probability"])
    exact = isinstance(wanted["probability"], Fraction)
    tolerance = 1e-9 if exact else PROBABILITY
    assert difference >= -tolerance, (found, wanted)
    assert difference <= (PROBABILITY_HILLS if hills and not exact else tolerance), (found, wanted)


def _assert_boundary(found: Answer, wanted: Answer) -> None:
    """The same corners, whatever rounding did to corners that are almost one."""
    if not found.get("boundary") or not wanted.get("boundary"):
        return
    for some, others in ((found["boundary"], wanted["boundary"]), (wanted["boundary"], found["boundary"])):
        for corner in some:
            gaps = [
                max(abs(float(Fraction(a) - Fraction(b))) for a, b in zip(corner, other, strict=True))
                for other in others
            ]
            assert min(gaps) <= INSTANT, (found, wanted)
