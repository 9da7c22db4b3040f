"""Kernels compiled with less work: half of a run of all tests from nothing is Numba's."""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.dispatcher import Dispatcher

from tests.untraced import untraced

#: Whose functions are compiled as said here; Numba's own need to know constants.
OURS = ("anabranch.", "benchmarks.")

_compile = Dispatcher.compile
_call_template = Dispatcher.get_call_template


def compile_with_less_work() -> None:
    """Compile without being watched by coverage, and for the types of arguments, whatever their values.

    Where a compiled function calls another with a constant, Numba compiles the other for this very constant; and where
    a loop begins with a constant, once more for any value as soon as it has seen the end of the loop. The result is
    the same: what is inlined knows its constants anyway.
    """
    Dispatcher.compile = untraced(_compile)
    Dispatcher.get_call_template = _call_template_of_types


def _call_template_of_types(self: Dispatcher, args: Any, kws: Any) -> Any:
    if self.py_func.__module__.startswith(OURS):
        args = tuple(map(types.unliteral, args))
        kws = {name: types.unliteral(value) for name, value in dict(kws).items()}
    return _call_template(self, args, kws)
