"""Pauses coverage where tracing would reach no new lines: tracing an oracle doubles its time."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any


@contextmanager
def not_traced() -> Iterator[None]:
    """Pause the tracer of coverage; the tracer of a debugger stays."""
    tracer = sys.gettrace()
    if not _is_coverage(tracer):
        yield
        return
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)


def untraced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, not traced by coverage."""

    @wraps(function)
    def without_tracing(*arguments: Any, **keywords: Any) -> Any:
        with not_traced():
            return function(*arguments, **keywords)

    return without_tracing


@contextmanager
def traced_for_first_calls(handle: Any, calls: int) -> Iterator[None]:
    """Let coverage trace the first examples of a Hypothesis property, but not how Hypothesis draws them."""
    tracer, inner_test, count = sys.gettrace(), handle.inner_test, itertools.count()

    @wraps(inner_test)
    def example(*arguments: Any, **keywords: Any) -> Any:
        if next(count) >= calls or not _is_coverage(tracer):
            return inner_test(*arguments, **keywords)
        sys.settrace(tracer)
        try:
            return inner_test(*arguments, **keywords)
        finally:
            sys.settrace(None)

    handle.inner_test = example
    try:
        with not_traced():
            yield
    finally:
        handle.inner_test = inner_test


def _is_coverage(tracer: Any) -> bool:
    return type(tracer).__module__.startswith("coverage")
