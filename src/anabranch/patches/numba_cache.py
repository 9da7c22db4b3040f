"""Numba's cache of a compiled function: a dispatcher asks another cache for its code.

What is patched
    The attribute `_cache` of one dispatcher. Numba's own cache cannot be used: it names files by the path and the
    modification time of a source file, so that a copied or installed package never finds them, it does not notice
    changes in other modules, and without a writable folder the decorator fails. A result is turned into bytes and back
    by the methods that Numba's cache uses (`CompileResult._reduce` and `_rebuild`).
Why
    Compiled kernels are shipped in wheels and shared by all processes of a machine.
Tried on
    Numba 0.68.1.
Where it does not fit
    A Numba whose dispatchers or results have other methods keeps no compiled code: every process compiles what it uses,
    which is slow, with the same results.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from numba.core import caching, compiler, serialize

#: From argument types and a compile function to a compile result.
Fetch = Callable[[Any, Callable[[], Any]], Any]


def use_cache(dispatcher: Any, fetch: Fetch) -> bool:
    """Let a dispatcher get its compile results from `fetch`; return whether it was patched.

    Parameters
    ----------
    dispatcher : Any
        A dispatcher of Numba.
    fetch : callable
        Gets argument types and a function that compiles for them; returns a compile result.
    """
    if not _fits(dispatcher):
        return False
    dispatcher._cache = _Cache(dispatcher, fetch)
    return True


def _fits(dispatcher: Any) -> bool:
    return (
        hasattr(dispatcher, "_cache")
        and hasattr(getattr(dispatcher, "_compiler", None), "compile")
        and hasattr(caching, "NullCache")
        and all(hasattr(compiler.CompileResult, name) for name in ("_reduce", "_rebuild"))
    )


class _Cache(caching.NullCache):  # type: ignore[misc, unused-ignore]
    """What a dispatcher takes for its cache on disk; it always has the code, because it compiles what is missing."""

    def __init__(self, dispatcher: Any, fetch: Fetch) -> None:
        self._dispatcher = dispatcher
        self._fetch = fetch

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        args = tuple(getattr(sig, "args", sig))
        return self._fetch(args, lambda: compile_result(self._dispatcher, args))


def compile_result(dispatcher: Any, args: tuple[Any, ...]) -> Any:
    """Compile the function of a dispatcher for argument types, without adding the result to the dispatcher."""
    return dispatcher._compiler.compile(args, None)


def to_bytes(result: Any) -> bytes:
    """A compile result as bytes; its machine code and what is needed to call it."""
    return bytes(serialize.dumps(result._reduce()))


def from_bytes(data: bytes, target_context: Any) -> Any:
    """The compile result of `to_bytes`. The bytes must come from a folder that only the user can write: see `store`."""
    return compiler.CompileResult._rebuild(target_context, *pickle.loads(data))  # noqa: S301  (written by this package)


def target_of(target_context: Any) -> tuple[str, str, str]:
    """What machine code is compiled for: the platform, the processor and its features."""
    triple, processor, features = target_context.codegen().magic_tuple()
    return str(triple), str(processor), str(features)


def set_environments(result: Any) -> None:
    """Connect a new compile result with the Python objects that its parts refer to, as loading from disk does."""
    for environment in result._find_referenced_environments():
        result.library.codegen.set_env(environment.env_name, environment)
