"""Called functions without machine code: the same results, less code, and a fallback."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numba.core import codegen

from anabranch.patches import numba_parts
from anabranch.patches.numba_parts import use_parts


def doubled(values):
    return values * 2.0


def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


def with_parts(function):
    dispatcher, part = njit(function), njit(function)
    assert use_parts(dispatcher, part)
    return dispatcher, part


def test_a_called_function_gets_no_machine_code() -> None:
    called, part = with_parts(doubled)

    @njit
    def caller(values):
        return called(values) + 1.0

    assert caller(np.array([1.5])).tolist() == [4.0]
    assert not called.overloads
    (result,) = part.overloads.values()
    assert not result.library.codegen._engine.is_symbol_defined(result.fndesc.llvm_func_name)


def test_python_can_call_the_same_function_before_and_after() -> None:
    called, _ = with_parts(doubled)

    @njit
    def caller(values):
        return called(values) + 1.0

    assert called(np.array([1.5])).tolist() == [3.0]
    assert caller(np.array([1.5])).tolist() == [4.0]
    assert called(np.array([2.5])).tolist() == [5.0]


def test_an_error_in_a_part_reaches_python() -> None:
    def positive(value):
        if value <= 0:
            raise ValueError("not positive")
        return value

    called, _ = with_parts(positive)

    @njit
    def caller(value):
        return called(value) + 1

    assert caller(2) == 3
    with pytest.raises(ValueError, match="not positive"):
        caller(-1)


def test_a_recursive_function_is_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = factorial
    called, _ = with_parts(plain)
    monkeypatch.setitem(globals(), "factorial", called)

    @njit
    def caller(n):
        return called(n) + 1

    assert caller(5) == 121
    assert called(5) == 120


class OtherDispatcher:
    """A dispatcher of another version."""


@pytest.mark.parametrize("dispatcher", [doubled, OtherDispatcher()], ids=["plain function", "other attributes"])
def test_what_is_no_such_dispatcher_stays_as_it_is(dispatcher) -> None:
    before = dict(vars(dispatcher))
    assert not use_parts(dispatcher, dispatcher)
    assert vars(dispatcher) == before


def test_another_code_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(codegen.CPUCodeLibrary, "_optimize_final_module")
    assert not use_parts(njit(doubled), njit(doubled))
    assert numba_parts._LIBRARY_STEPS
