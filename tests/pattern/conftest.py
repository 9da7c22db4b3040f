"""A fixture for tests of exact evaluation."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from anabranch.pattern import joint


@pytest.fixture(scope="module")
def nothing_is_too_large() -> Iterator[None]:
    """No case is sampled: a chain that is too large for an automaton is carried, whatever that takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint, "MOST_WORK", 10**9)
        patch.setattr(joint, "MOST_STATES", 10**9)
        yield
