"""Sampled worlds: true locations that are drawn uniformly around the readings.

The locations of a world are a function of its number and of the number of the event in the solution, so they depend
neither on other solutions nor on the split of a stream into micro-batches.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from anabranch.arrays import F64
from anabranch.constrain.factors import N_WORLDS
from anabranch.constrain.nearness import PLANE, SPHERE, Space
from anabranch.splitmix import mix_all

#: How many random numbers a location has.
_NUMBERS = 3


def drawn_locations(space: Space, readings: F64, errors: F64, event: int) -> F64:
    """(n, worlds, 3): true locations of the event with this number in each of n solutions, in all worlds.

    Parameters
    ----------
    readings, errors : (n, 3) and (n,); errors are angles on the sphere
    """
    first, second, third = _random_numbers(event)
    if space is SPHERE:
        return _on_sphere(readings, errors, first, second)
    turn = 2 * np.pi * second
    if space is PLANE:
        offsets = np.sqrt(first) * np.stack([np.cos(turn), np.sin(turn), np.zeros(N_WORLDS)])
    else:
        height = 2 * third - 1
        level = np.sqrt(1 - height**2)
        offsets = np.cbrt(first) * np.stack([level * np.cos(turn), level * np.sin(turn), height])
    return readings[:, None, :] + errors[:, None, None] * offsets.T


def _on_sphere(readings: F64, errors: F64, first: F64, second: F64) -> F64:
    """Points of caps of the unit sphere, in directions between two that are at right angles to the reading."""
    half = np.arcsin(np.sqrt(first) * np.sin(errors / 2)[:, None])
    # The axis in which the reading is shortest is not parallel to it.
    axis = np.eye(3)[np.abs(readings).argmin(axis=1)]
    one = np.cross(readings, axis)
    one /= np.linalg.norm(one, axis=1)[:, None]
    other = np.cross(readings, one)
    turn = 2 * np.pi * second[:, None]
    directions = np.cos(turn) * one[:, None, :] + np.sin(turn) * other[:, None, :]
    return np.cos(2 * half)[:, :, None] * readings[:, None, :] + np.sin(2 * half)[:, :, None] * directions


@lru_cache(maxsize=64)
def _random_numbers(event: int) -> F64:
    """(3, worlds): random numbers in [0, 1) for the event with this number."""
    first = np.uint64(event) * np.uint64(_NUMBERS * N_WORLDS)
    bits = mix_all(first + np.arange(_NUMBERS * N_WORLDS, dtype=np.uint64))
    return ((bits >> np.uint64(11)) * 2.0**-53).reshape(_NUMBERS, N_WORLDS)
