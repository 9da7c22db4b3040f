"""The oracle of combinations of PATTERN queries, against answers that were computed by hand."""

from __future__ import annotations

import pytest

from tests.oracles.pattern_combination import ask

WORKBOOK = """
CREATE STREAM r KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE STREAM s KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE QUERY a AS PATTERN r(p, 'a') THEN r(p, 'b') GROUP BY p;
CREATE QUERY b AS PATTERN s(p, 'a') GROUP BY p;
CREATE QUERY n AS NOT b;
CREATE QUERY q AS {formula};
"""
ROWS = {
    "r": [
        {"k": "k1", "v": "a", "t": 1, "p": 0.5},
        {"k": "k1", "v": "b", "t": 2, "p": 0.5},
        {"k": "k1", "v": "c", "t": 2, "p": 0.5},
    ],
    "s": [{"k": "k2", "v": "a", "t": 2, "p": 0.25}, {"k": "k1", "v": "a", "t": 2, "p": 0.5}],
}


@pytest.mark.parametrize(
    ("formula", "answers"),
    [
        ("a AND b", {(2, "k1"): 0.125}),
        ("a OR b", {(2, "k1"): 0.625, (2, "k2"): 0.25}),
        ("NOT a", {(1, "k1"): 1.0, (2, "k1"): 0.75}),
        ("NOT a AND n", {(1, "k1"): 1.0, (2, "k1"): 0.375, (2, "k2"): 0.75}),
        ("a GIVEN n", {(2, "k1"): 0.25}),
        ("b GIVEN a", {(2, "k1"): 0.5}),
    ],
)
def test_answers_by_hand(formula: str, answers: dict) -> None:
    assert ask(WORKBOOK.format(formula=formula), "q", ROWS) == pytest.approx(answers)
