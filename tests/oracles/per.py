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
    """`PER EPISODE ABOVE above GAP gap`: answers of the same keys, in order of time, that touch what precedes them.

    An answer touches an episode if it begins before the episode ends or within `gap` of its end, or if the episode ends
    at the instant of the streams (`instants`) before that of the answer.
    """
    consecutive = set(pairwise(sorted(set(instants))))
    episodes: dict[Any, list[list[Answer]]] = {}
    for answer in sorted(answers, key=lambda answer: answer["begin"]):
        if answer["probability"] > above + 1e-12:
            of_keys = episodes.setdefault(answer["keys"], [])
            end = max((other["end"] for other in of_keys[-1]), default=None) if of_keys else None
            if end is not None and (answer["begin"] <= end + gap or (end, answer["begin"]) in consecutive):
                of_keys[-1].append(answer)
            else:
                of_keys.append([answer])
    return _merged([episode for of_keys in episodes.values() for episode in of_keys], threshold)


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
