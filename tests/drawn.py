"""How many cases are drawn: by a property, and as a list, always the same, where one job serves many of them."""

from __future__ import annotations

from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

#: The examples of a property that does not say how many it needs. The cases of a kind vary in everything at once, and
#: several properties draw them; `HYPOTHESIS_PROFILE=thorough` draws many more for each, and other ones every time.
USUAL = 50


def examples(count: int) -> settings:
    """So many examples of a property by default; with another profile, as many times more as its usual ones."""
    return settings(max_examples=max(1, count * settings().max_examples // USUAL))


def drawn(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """The first `count` values that Hypothesis draws from a strategy."""
    values: list[Any] = []

    @settings(max_examples=count, phases=[Phase.generate], derandomize=True, database=None)
    @given(strategy)
    def collect(value: Any) -> None:
        values.append(value)

    collect()
    return values
