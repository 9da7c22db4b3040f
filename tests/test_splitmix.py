"""Random numbers: equal to the reference implementation, uniform, and without repetitions."""

from __future__ import annotations

import math

import numpy as np
from numpy.testing import assert_allclose

from anabranch.splitmix import GOLDEN, mix, uniform


def test_numbers_equal_the_reference_implementation() -> None:
    """The first five of seed 1234567, as Vigna's splitmix64.c computes them."""
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    seed = np.uint64(1234567)
    with np.errstate(over="ignore"):
        assert [int(mix(seed + np.uint64(n) * GOLDEN)) for n in range(1, 6)] == expected
    assert [uniform(seed, n) for n in range(5)] == [(number >> 11) / 2**53 for number in expected]


def test_random_numbers_are_uniform_and_do_not_repeat() -> None:
    drawn = np.array([uniform(np.uint64(seed), number) for seed in range(100) for number in range(1_000)])
    assert ((drawn >= 0) & (drawn < 1)).all()
    assert len(np.unique(drawn)) == len(drawn)
    # Each tenth of the range has a tenth of the numbers, within five standard deviations.
    assert_allclose(np.histogram(drawn, bins=10, range=(0, 1))[0], 10_000, atol=5 * math.sqrt(9_000))
