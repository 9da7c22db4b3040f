"""How many cases Hypothesis draws for a property, and fixed lists of cases for jobs that run many at once."""

from __future__ import annotations

from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

#: The number of examples of a property that sets none, in the profile `full`. The cases of a kind vary in everything at
#: once, and several properties draw them.
FULL_EXAMPLES = 50
#: The same in the profile `default`, that of `make test`. docs/decisions/test-time.md says why.
DEFAULT_EXAMPLES = 16
#: The least number of examples. Hypothesis begins with the simplest cases, which have few answers.
LEAST_EXAMPLES = 5


def examples(count: int, least: int = LEAST_EXAMPLES) -> settings:
    """Set the number of examples of a property in the profile `full`; other profiles scale it, down to `least`."""
    scaled = count * settings().max_examples // FULL_EXAMPLES
    return settings(max_examples=max(scaled, min(count, least)))


def drawn(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """Return the first `count` values that Hypothesis draws from a strategy; they are the same in every run."""
    values: list[Any] = []

    @settings(max_examples=count, phases=[Phase.generate], derandomize=True, database=None)
    @given(strategy)
    def collect(value: Any) -> None:
        values.append(value)

    collect()
    return values
