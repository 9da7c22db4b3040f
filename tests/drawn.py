"""Values of a Hypothesis strategy as a list, always the same: for tests where one Spark job serves many of them."""

from __future__ import annotations

from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st


def drawn(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """The first `count` values that Hypothesis draws from a strategy."""
    values: list[Any] = []

    @settings(max_examples=count, phases=[Phase.generate], derandomize=True, database=None)
    @given(strategy)
    def collect(value: Any) -> None:
        values.append(value)

    collect()
    return values
