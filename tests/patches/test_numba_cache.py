"""Compile results from another cache than Numba's, as bytes and back."""

from __future__ import annotations

import pytest
from numba import njit
from numba.core import caching
from numba.core.registry import cpu_target

from anabranch.patches import numba_cache


def plus_one(value):
    return value + 1


def test_a_dispatcher_gets_its_code_from_the_cache() -> None:
    kept: dict[tuple, bytes] = {}

    def fetch(args, compile_kernel):
        if args not in kept:
            kept[args] = numba_cache.to_bytes(compile_kernel())
        return numba_cache.from_bytes(kept[args], cpu_target.target_context)

    first, second = njit(plus_one), njit(plus_one)
    assert numba_cache.use_cache(first, fetch) and numba_cache.use_cache(second, fetch)
    assert first(1) == second(1) == 2
    assert first(1.5) == 2.5
    assert len(kept) == 2


def test_the_target_names_platform_processor_and_features() -> None:
    triple, processor, features = numba_cache.target_of(cpu_target.target_context)
    assert triple and processor and isinstance(features, str)


class OtherDispatcher:
    """A dispatcher of another version."""


@pytest.mark.parametrize("dispatcher", [plus_one, OtherDispatcher()], ids=["plain function", "other attributes"])
def test_what_is_no_such_dispatcher_stays_as_it_is(dispatcher) -> None:
    before = dict(vars(dispatcher))
    assert not numba_cache.use_cache(dispatcher, lambda args, compile_kernel: None)
    assert vars(dispatcher) == before


def test_without_numbas_cache_classes_nothing_is_patched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(caching, "NullCache")
    dispatcher = njit(plus_one)
    assert not numba_cache.use_cache(dispatcher, lambda args, compile_kernel: None)
    assert dispatcher(1) == 2
