"""Calls with a constant: a patched dispatcher is compiled for types alone, an unpatched one for the constant too."""

from __future__ import annotations

import pytest
from numba import njit, types

from anabranch.patches.numba_templates import compile_for_types


def times(value, factor=2):
    return value * factor


def compiled_for(times_compiled) -> list[tuple]:
    """The argument types that a function is compiled for by a caller with constants."""

    @njit
    def caller(value):
        return times_compiled(value, 3) + times_compiled(value, factor=4)

    assert caller(5) == 35
    return times_compiled.signatures


def test_a_patched_function_is_compiled_once_for_its_types() -> None:
    function = njit(times)
    assert compile_for_types(function)
    assert compiled_for(function) == [(types.int64, types.int64)]


def test_numba_compiles_for_constants_by_itself() -> None:
    # The reason for the patch; where Numba stops to do so, the patch can go.
    assert any(isinstance(kind, types.Literal) for signature in compiled_for(njit(times)) for kind in signature)


class OtherParameters:
    """A dispatcher of another version."""

    def get_call_template(self, context, args, kws):
        raise NotImplementedError


@pytest.mark.parametrize("dispatcher", [times, OtherParameters()], ids=["plain function", "other parameters"])
def test_what_is_no_such_dispatcher_stays_as_it_is(dispatcher) -> None:
    before = dict(vars(dispatcher))
    assert not compile_for_types(dispatcher)
    assert vars(dispatcher) == before


def test_without_the_function_for_types_nothing_is_patched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(types, "unliteral")
    assert not compile_for_types(njit(times))


def test_an_unpatched_function_gives_the_same_results() -> None:
    patched, unpatched = njit(times), njit(times)
    compile_for_types(patched)
    compiled_for(patched)
    compiled_for(unpatched)
    assert patched(2.5, 2) == unpatched(2.5, 2) == times(2.5, 2)
