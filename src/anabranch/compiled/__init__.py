"""How kernel functions are compiled: `compiled`, `compiled_uncounted`, and `compiled_inline` for the smallest of them.

A function that Python calls is compiled once per machine, or was compiled in advance (`store.py`, `signatures.py`,
`build.py`). A function that only other kernels call is compiled into its callers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from numba import njit
from numba.core.registry import cpu_target

from anabranch.compiled import store
from anabranch.patches.numba_cache import use_cache
from anabranch.patches.numba_cfunc_wrapper import skip_cfunc_wrapper
from anabranch.patches.numba_nrt import count_references, skip_reference_counts
from anabranch.patches.numba_options import known_options
from anabranch.patches.numba_parts import use_parts
from anabranch.patches.numba_templates import compile_for_types

_BASE_OPTIONS: dict[str, Any] = {**skip_cfunc_wrapper(cpu_target)}
_OPTIONS: dict[str, Any] = {**_BASE_OPTIONS, **count_references(cpu_target)}
_UNCOUNTED_OPTIONS: dict[str, Any] = {**_BASE_OPTIONS, **skip_reference_counts(cpu_target)}
_INLINE_OPTIONS: dict[str, Any] = {**_UNCOUNTED_OPTIONS, **known_options({"forceinline": True}, cpu_target)}


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function for the types of its arguments, or load the compiled code from disk, at its first call."""
    return _dispatcher(function, _OPTIONS)


def compiled_uncounted(function: Callable[..., Any]) -> Any:
    """Compile a function that neither allocates nor returns arrays, without reference counting.

    A call of another function counts the references of all arrays in its arguments, also of those in a named tuple:
    for a tuple of twenty arrays, that takes longer than a small function itself.
    """
    return _dispatcher(function, _UNCOUNTED_OPTIONS)


def compiled_inline(function: Callable[..., Any]) -> Any:
    """Compile a function that allocates nothing into its callers, without reference counting."""
    return _dispatcher(function, _INLINE_OPTIONS)


def load_compiler() -> None:
    """Load what Numba loads at the first compiled call (a third of a second), before workers are forked."""
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


def _dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    dispatcher, part = njit(**options)(function), njit(**options)(function)
    compile_for_types(part)
    if not use_parts(dispatcher, part):
        compile_for_types(dispatcher)
    use_cache(dispatcher, partial(_fetch, f"{function.__module__}:{function.__name__}"))
    return dispatcher


def _fetch(function: str, args: Any, compile_kernel: Callable[[], Any]) -> Any:
    return store.fetch(function, args, compile_kernel, cpu_target.target_context)


@compiled_inline
def assign(target: Any, source: Any) -> None:
    """Copy an array to the start of another that has room for it; both have one dimension, or both two.

    For an assignment of slices, Numba also compiles the error messages for shapes that do not fit. That takes seconds.
    """
    if source.ndim == 1:
        for i in range(len(source)):
            target[i] = source[i]
    else:
        for i in range(len(source)):
            for j in range(source.shape[1]):
                target[i, j] = source[i, j]
