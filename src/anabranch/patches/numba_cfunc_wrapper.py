"""Numba's undocumented option `no_cfunc_wrapper`: do not build a C-callable wrapper for each compiled function.

What is patched
    Nothing is replaced; the option is passed to Numba's decorator.
Why
    Numba builds the wrapper for every function. Nothing here is called from C, and the wrappers take a twelfth of the
    compiler's time.
Tried on
    Numba 0.61.0, 0.62.1 and 0.68.1.
Where it does not fit
    A Numba that does not know the option gets none. It builds the wrappers, and compiling takes longer.
"""

from __future__ import annotations

from typing import Any

from anabranch.patches.numba_options import known_options


def skip_cfunc_wrapper(target: Any) -> dict[str, Any]:
    """Return the option for Numba's decorator; empty where the compiler target does not know it."""
    return known_options({"no_cfunc_wrapper": True}, target)
