"""How kernel functions are compiled: `compiled`, and `compiled_inline` for the smallest of them, such as `assign`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from numba import njit
from numba.core import types
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target

#: Numba also makes a form of every function that C could call, which takes a twelfth of the compiler's time.
_OPTIONS: dict[str, Any] = {"cache": True, "no_cfunc_wrapper": True}
_LEAF_OPTIONS: dict[str, Any] = {**_OPTIONS, "forceinline": True, "_nrt": False}


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call, for the types of its arguments, and keep the result on disk."""
    return _for_types(njit(**_OPTIONS)(function))


def compiled_inline(function: Callable[..., Any]) -> Any:
    """Compile a function that allocates nothing, into its callers.

    Numba counts the references of every array that is handed to a function, at every call. Where a call compares two
    numbers, that takes much longer than the comparison. A function that makes no arrays need not count. The option
    is one of Numba's own use: where a version does not know it, the function is slower, and as right.
    """
    try:
        return _for_types(njit(**_LEAF_OPTIONS)(function))
    except (KeyError, TypeError):
        return compiled(function)


def load_compiler() -> None:
    """Load what Numba loads at the first call of any of them, a third of a second: processes forked then have it."""
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


def _for_types(dispatcher: Any) -> Any:
    """Let callers that are compiled themselves ask for types alone, not for constants.

    Where a compiled function calls another with a constant, Numba compiles the other for this very constant; and where
    a loop begins with a constant, once more for any value as soon as it has seen the end of the loop. That takes half
    of the time of a first use, and gains nothing: what is inlined knows its constants anyway.
    """
    if isinstance(dispatcher, Dispatcher):  # not where NUMBA_DISABLE_JIT leaves functions as they are
        templates = partial(_template_of_types, dispatcher.get_call_template)
        dispatcher.get_call_template = templates  # type: ignore[method-assign]
    return dispatcher


def _template_of_types(template: Callable[..., Any], args: Any, kws: Any) -> Any:
    return template(
        tuple(map(types.unliteral, args)), {name: types.unliteral(each) for name, each in dict(kws).items()}
    )


@compiled_inline
def assign(target: Any, source: Any) -> None:
    """Write an array over the beginning of another that has room for it; both have one dimension, or two.

    Where slices are assigned, Numba compiles the messages of all that might not fit, which takes seconds.
    """
    if source.ndim == 1:
        for i in range(len(source)):
            target[i] = source[i]
    else:
        for i in range(len(source)):
            for j in range(source.shape[1]):
                target[i, j] = source[i, j]
