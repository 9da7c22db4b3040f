"""Which compiler options the installed Numba knows: a helper of the patches that set undocumented ones.

Numba accepts any keyword in its decorators. It raises a KeyError for an unknown option when a function is first
compiled, which is too late for a fallback. Its table of options can be read before: the options are attributes of the
class `cpu_target.options`.

Tried on Numba 0.61.0, 0.62.1 and 0.68.1. Where the table is missing, no option counts as known.
"""

from __future__ import annotations

from typing import Any


def known_options(wanted: dict[str, Any], target: Any) -> dict[str, Any]:
    """Return the wanted options that a compiler target knows.

    Parameters
    ----------
    wanted : dict
        Options as a Numba decorator takes them.
    target : Any
        Numba's `numba.core.registry.cpu_target`.
    """
    table = getattr(target, "options", None)
    return {name: value for name, value in wanted.items() if hasattr(table, name)}
