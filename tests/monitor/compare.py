"""Compares answers of MONITOR with those of the oracle, or with each other."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from tests.oracles.monitor import Answer
from tests.oracles.monitor_predictions import instant
from tests.oracles.monitor_regions import SEARCH_ERROR

#: Instants are doubles, and a TIMESTAMP is rounded to microseconds.
INSTANT = 2e-6
#: The tolerance for probabilities that the oracle finds by search, and where it may have missed a local maximum.
PROBABILITY, PROBABILITY_MAXIMA = 2 * SEARCH_ERROR, 1e-2


def assert_same(
    answers: Sequence[Answer],
    expected: Sequence[Answer],
    labels: Sequence[str],
    several_maxima: bool = False,
) -> None:
    """Both have the same answers.

    With `several_maxima`, a probability may be higher than that of the oracle, which searches for the maximum.
    """
    unmatched = list(answers)
    for answer in expected:
        matching = [candidate for candidate in unmatched if is_same(candidate, answer, labels)]
        assert matching, f"missing {answer} among {unmatched}"
        best = min(matching, key=lambda candidate: _distance(candidate, answer))
        unmatched.remove(best)
        _assert_probability(best, answer, several_maxima)
        _assert_boundary(best, answer)
        _assert_certain(best, answer)
    assert not unmatched, f"unexpected: {unmatched}"


def predictions_of(answer: Answer, labels: Sequence[str]) -> tuple[Any, ...]:
    """The predictions that an answer is about."""
    return tuple(
        tuple((name, value if isinstance(value, str) else instant(value)) for name, value in answer[label].items())
        for label in labels
    )


def is_same(one: Answer, other: Answer, labels: Sequence[str]) -> bool:
    """Whether two answers are about the same predictions and have the same validity."""
    same = all(abs(float(one[name] - Fraction(other[name]))) <= INSTANT for name in ("valid_from", "valid_to"))
    return same and predictions_of(one, labels) == predictions_of(other, labels)


def _distance(one: Answer, other: Answer) -> float:
    """How different two answers about the same predictions are; two predictions may have the same key and time."""
    total = abs(one["probability"] - float(other["probability"]))
    if one.get("boundary") and other.get("boundary"):
        total += abs(len(one["boundary"]) - len(other["boundary"]))
        for corner, other_corner in zip(one["boundary"], other["boundary"], strict=False):
            total += sum(abs(float(a - Fraction(b))) for a, b in zip(corner, other_corner, strict=True))
    return total


def _assert_probability(answer: Answer, expected: Answer, several_maxima: bool) -> None:
    difference = answer["probability"] - float(expected["probability"])
    exact = isinstance(expected["probability"], Fraction)
    tolerance = 1e-9 if exact else PROBABILITY
    assert difference >= -tolerance, (answer, expected)
    assert difference <= (PROBABILITY_MAXIMA if several_maxima and not exact else tolerance), (answer, expected)


def _assert_boundary(answer: Answer, expected: Answer) -> None:
    """The corners are the same, up to corners that are almost equal."""
    if not answer.get("boundary") or not expected.get("boundary"):
        return
    corners, expected_corners = answer["boundary"], expected["boundary"]
    if corners == expected_corners:
        return
    assert max(_gap(corners, expected_corners), _gap(expected_corners, corners)) <= INSTANT, (answer, expected)


def _assert_certain(answer: Answer, expected: Answer) -> None:
    """The certain ranges are the same; those of the oracle are compared by `test_certain.py`."""
    for name in ("certain_from", "certain_to"):
        if expected.get(name) is None:
            assert name not in expected or answer[name] is None, (answer, expected)
        else:
            assert abs(answer[name] - expected[name]) <= INSTANT, (answer, expected)


def _gap(corners: Sequence[Sequence[Any]], others: Sequence[Sequence[Any]]) -> float:
    """The largest distance of a corner from the nearest of others, along the axis where it is largest.

    A curve may have thousands of corners, so only their differences from one of them are exact.
    """
    one, other = (
        np.array([[float(Fraction(a) - Fraction(b)) for a, b in zip(corner, others[0], strict=True)] for corner in own])
        for own in (corners, others)
    )
    return max(float(np.abs(other - corner).max(axis=1).min()) for corner in one)
