"""PER by its definition, over a list of answers: every window, episode and set of keys, one after the other.

An answer is a dict with `keys` (hashable), `begin` and `end` (numbers), and `probability`. Times are exact: integers,
or fractions of the decimals that a user writes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

Answer = dict[str, Any]
Row = dict[str, Any]
Number = int | Fraction


def window_rows(answers: Iterable[Answer], length: Number, at_least: int = 1, threshold: float = 0.0) -> list[Row]:
    """`PER d AT LEAST n TIMES`: an answer is part of every window [k d, (k + 1) d) that overlaps it.

    It is about one instant, or about the instants from `begin` up to `end`, which is excluded.
    """
    probabilities: dict[tuple[int, Any], list[float]] = {}
    for answer in answers:
        first = math.floor(answer["begin"] / length)
        for number in range(first, max(first + 1, math.ceil(answer["end"] / length))):
            probabilities.setdefault((number, answer["keys"]), []).append(answer["probability"])
    rows = []
    for (number, keys), of_window in probabilities.items():
        m, total = len(of_window), math.fsum(of_window)
        if m < at_least:
            continue
        lower = max(of_window) if at_least == 1 else max(0.0, (total - at_least + 1) / (m - at_least + 1))
        row = {"t_from": number * length, "t_to": (number + 1) * length, "keys": keys, "probability": lower}
        row |= {"expected": total, "lower": lower, "upper": min(1.0, total / at_least), "method": "bounds"}
        rows.append(row)
    return [row for row in rows if row["probability"] >= threshold - 1e-12]


def episode_rows(
    answers: Iterable[Answer],
    above: float = 0.0,
    gap: Number = 0,
    threshold: float = 0.0,
    instants: Sequence[Number] = (),
) -> list[Row]:
    """`PER EPISODE ABOVE above GAP gap`: answers of the same keys that touch each other, directly or through others.

    Answers touch if they overlap, if one begins within `gap` of the end of the other, or if they are at consecutive
    `instants` of the streams.
    """
    consecutive = set(pairwise(sorted(set(instants))))
    chosen = [answer for answer in answers if answer["probability"] > above + 1e-12]
    episodes: list[list[Answer]] = []
    for answer in chosen:
        touched = [part for part in episodes if any(_touch(answer, other, gap, consecutive) for other in part)]
        episodes = [part for part in episodes if part not in touched]
        episodes.append([answer, *(other for part in touched for other in part)])
    return _merged(episodes, threshold)


def _touch(one: Answer, other: Answer, gap: Number, consecutive: set[tuple[Number, Number]]) -> bool:
    if one["keys"] != other["keys"]:
        return False
    first, second = sorted((one, other), key=lambda answer: answer["begin"])
    return second["begin"] <= first["end"] + gap or (first["end"], second["begin"]) in consecutive


def key_rows(answers: Iterable[Answer], threshold: float = 0.0) -> list[Row]:
    """`PER KEYS`: all answers of the same keys."""
    by_keys: dict[Any, list[Answer]] = {}
    for answer in answers:
        by_keys.setdefault(answer["keys"], []).append(answer)
    return _merged(by_keys.values(), threshold)


def _merged(groups: Iterable[list[Answer]], threshold: float) -> list[Row]:
    rows = []
    for group in groups:
        probabilities = [answer["probability"] for answer in group]
        row = {"t_from": min(answer["begin"] for answer in group), "t_to": max(answer["end"] for answer in group)}
        row |= {"keys": group[0]["keys"], "count": len(group), "probability": max(probabilities)}
        rows.append(row | {"expected": math.fsum(probabilities)})
    return [row for row in rows if row["probability"] >= threshold - 1e-12]
