"""How many cases Hypothesis draws for a property, and fixed lists of cases for jobs that run many at once."""

from __future__ import annotations

from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

#: The number of examples of a property that sets none. The cases of a kind vary in everything at once, and several
#: properties draw them; `HYPOTHESIS_PROFILE=thorough` draws many more for each, and different ones in every run.
DEFAULT_EXAMPLES = 50


def examples(count: int) -> settings:
    """Set the number of examples of a property for the default profile; other profiles scale it."""
    return settings(max_examples=max(1, count * settings().max_examples // DEFAULT_EXAMPLES))


def drawn(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """Return the first `count` values that Hypothesis draws from a strategy; they are the same in every run."""
    values: list[Any] = []

    @settings(max_examples=count, phases=[Phase.generate], derandomize=True, database=None)
    @given(strategy)
    def collect(value: Any) -> None:
        values.append(value)

    collect()
    return values
