"""Numba's undocumented options: passed to the real compiler, and left out where a compiler does not know them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numba import njit
from numba.core.registry import cpu_target

from anabranch.patches.numba_cfunc_wrapper import skip_cfunc_wrapper
from anabranch.patches.numba_nrt import skip_reference_counts
from anabranch.patches.numba_options import known_options


def first_plus_one(values):
    return values[0] + 1.0


def without_options() -> SimpleNamespace:
    """A compiler target that knows other options only."""
    return SimpleNamespace(options=type("Options", (), {"fastmath": True}))


def test_the_installed_numba_knows_both_options() -> None:
    assert skip_cfunc_wrapper(cpu_target) == {"no_cfunc_wrapper": True}
    assert skip_reference_counts(cpu_target) == {"_nrt": False}


@pytest.mark.parametrize("target", [without_options(), SimpleNamespace()], ids=["other options", "no table"])
def test_unknown_options_are_left_out_and_the_function_compiles(target: SimpleNamespace) -> None:
    assert skip_cfunc_wrapper(target) == {}
    assert skip_reference_counts(target) == {}
    function = njit(**skip_cfunc_wrapper(target), **skip_reference_counts(target))(first_plus_one)
    assert function(np.array([1.5])) == 2.5


def test_numba_refuses_an_unknown_option_at_the_first_call_only() -> None:
    assert known_options({"not_an_option": True}, cpu_target) == {}
    function = njit(not_an_option=True)(first_plus_one)
    with pytest.raises(KeyError, match="not_an_option"):
        function(np.array([1.5]))


def test_without_the_wrapper_there_is_no_function_for_c() -> None:
    ir = {}
    for name, options in {"usual": {}, "patched": skip_cfunc_wrapper(cpu_target)}.items():
        function = njit(**options)(first_plus_one)
        assert function(np.array([1.5])) == 2.5
        ir[name] = "".join(function.inspect_llvm().values())
    assert "@cfunc." in ir["usual"]
    assert "@cfunc." not in ir["patched"]


def test_with_the_option_a_function_is_compiled_without_reference_counts() -> None:
    counts = {}
    for name, options in {"usual": {}, "patched": skip_reference_counts(cpu_target)}.items():
        function = njit(**options)(first_plus_one)
        assert function(np.array([1.5])) == 2.5
        (overload,) = function.overloads.values()
        counts[name] = overload.target_context.enable_nrt
    assert counts == {"usual": True, "patched": False}
