"""How the smallest functions of the kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def leaf(function: Callable[..., Any]) -> Any:
    """Compile a function that allocates nothing, into its callers.

    Numba counts the references of every array that is handed to a function, at every call. Where a call compares two
    numbers, that takes much longer than the comparison. A function that makes no arrays need not count. The option
    is one of Numba's own use: where a version does not know it, the function is slower, and as right.
    """
    options: dict[str, Any] = {"forceinline": True, "_nrt": False}
    try:
        return njit(cache=True, **options)(function)
    except (KeyError, TypeError):
        return njit(cache=True)(function)
