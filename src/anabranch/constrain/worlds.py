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
    share, directions, heights = _draws(event)
    if space is SPHERE:
        return _on_sphere(readings, errors, share, directions)
    if space is PLANE:
        offsets = np.sqrt(share)[:, None] * np.column_stack([directions, np.zeros(N_WORLDS)])
    else:
        level = np.sqrt(1 - heights**2)[:, None] * directions
        offsets = np.cbrt(share)[:, None] * np.column_stack([level, heights])
    return readings[:, None, :] + errors[:, None, None] * offsets


def _on_sphere(readings: F64, errors: F64, share: F64, directions: F64) -> F64:
    """Points of caps of the unit sphere, in directions between two that are at right angles to the reading."""
    # The axis in which the reading is shortest is not parallel to it.
    axis = np.eye(3)[np.abs(readings).argmin(axis=1)]
    one = np.cross(readings, axis)
    one /= np.linalg.norm(one, axis=1)[:, None]
    basis = np.stack([one, np.cross(readings, one), readings], axis=1)
    # The share of the area of a cap that is nearer than an angle is the square of the ratio of half-angle sines.
    half_sine = np.sqrt(share) * np.sin(errors / 2)[:, None]
    sine, cosine = 2 * half_sine * np.sqrt(1 - half_sine**2), 1 - 2 * half_sine**2
    return np.stack([sine * directions[:, 0], sine * directions[:, 1], cosine], axis=2) @ basis


@lru_cache(maxsize=64)
def _draws(event: int) -> tuple[F64, F64, F64]:
    """For each world, the share of a disc that is nearer than the event, its direction (worlds, 2), and a height."""
    first = np.uint64(event) * np.uint64(_NUMBERS * N_WORLDS)
    bits = mix_all(first + np.arange(_NUMBERS * N_WORLDS, dtype=np.uint64))
    share, turn, height = ((bits >> np.uint64(11)) * 2.0**-53).reshape(_NUMBERS, N_WORLDS)
    return share, np.column_stack([np.cos(2 * np.pi * turn), np.sin(2 * np.pi * turn)]), 2 * height - 1
