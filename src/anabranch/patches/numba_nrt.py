"""Numba's private option `_nrt`: compile a function without reference counting.

What is patched
    Nothing is replaced; the option, which Numba uses for its own functions, is passed to Numba's decorator.
Why
    Numba updates the reference count of every array that is passed to a function, at every call. Where a call compares
    two numbers, that takes much longer than the comparison. A function that allocates nothing does not need the counts.
Tried on
    Numba 0.61.0, 0.62.1 and 0.68.1.
Where it does not fit
    A Numba that does not know the option gets none. The functions count references: they are slower, with the same
    results.
"""

from __future__ import annotations

from typing import Any

from anabranch.patches.numba_options import known_options


def count_references(target: Any) -> dict[str, Any]:
    """Return the option for a function that allocates, or returns arrays: it would inherit that of its caller."""
    return known_options({"_nrt": True}, target)


def skip_reference_counts(target: Any) -> dict[str, Any]:
    """Return the option for Numba's decorator; empty where the compiler target does not know it."""
    return known_options({"_nrt": False}, target)
