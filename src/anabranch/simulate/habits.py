"""How simulated people choose where to go and how long they stay."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

COFFEE = "coffee"


def next_purpose(weights: Mapping[str, float], thirst: float, rng: np.random.Generator) -> str:
    """Draw the next purpose of a person by weight; `thirst` multiplies the weight of coffee."""
    odds = np.array([weight * (thirst if purpose == COFFEE else 1.0) for purpose, weight in weights.items()])
    return str(rng.choice(list(weights), p=odds / odds.sum()))


def draw_stay(mean: float, rng: np.random.Generator) -> float:
    """Draw the length of a stay; very short stays are rare, unlike the geometric stays of a Markov chain."""
    return rng.gamma(2.0, mean / 2.0)
