"""Numba's `Dispatcher.get_call_template`: compile a called function for types, not for constants.

What is patched
    The method `get_call_template` of one dispatcher, by an attribute of the same name on the object. It removes the
    constants ("literal types") from the argument types before Numba looks for a compiled version.
Why
    Where a compiled function calls another with a constant, Numba compiles the other for this constant. Where a loop
    starts from a constant, Numba compiles once more for any value after it has seen the end of the loop. That takes
    half of the time of a first use and gains nothing: inlined code knows its constants anyway.
Tried on
    Numba 0.61.0, 0.62.1 and 0.68.1.
Where it does not fit
    A dispatcher without this method, or whose method has other parameters, is left as it is, and so are all where
    `types.unliteral` is missing. Numba then compiles functions for constants too, which takes longer.
    `NUMBA_DISABLE_JIT=1` leaves plain functions, which have no such method either.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from numba import types


def compile_for_types(dispatcher: Any) -> bool:
    """Make a dispatcher ignore constants in the arguments of its compiled callers; return whether it was patched."""
    get_call_template = getattr(dispatcher, "get_call_template", None)
    if get_call_template is None or not hasattr(types, "unliteral"):
        return False
    if list(inspect.signature(get_call_template).parameters) != ["args", "kws"]:
        return False
    dispatcher.get_call_template = partial(_template_for_types, get_call_template)
    return True


def _template_for_types(get_call_template: Callable[..., Any], args: Any, kws: Any) -> Any:
    return get_call_template(
        tuple(map(types.unliteral, args)), {name: types.unliteral(kind) for name, kind in dict(kws).items()}
    )
