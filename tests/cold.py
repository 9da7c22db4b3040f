"""Tests of cold keys with few rows: almost every key is cold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from anabranch.transport import pages


@contextmanager
def few_are_hot() -> Iterator[None]:
    """Every key that can become cold does, a page has at most two, and the filter is always used."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "MOST_IDLE", 0)
        patch.setattr(pages, "COLD_PER_IDLE", 1 << 20)
        patch.setattr(pages, "MOST_ROWS", 2)
        patch.setattr(pages, "FEW_CALLS", 0)
        yield
