"""Coverage looks away where it would count nothing new: watching an oracle costs as much again as its work."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any


@contextmanager
def unseen() -> Iterator[None]:
    """What is done here is unseen by the tracer of coverage; a debugger sees it."""
    tracer = sys.gettrace()
    if not _is_of_coverage(tracer):
        yield
        return
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)


def untraced(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, unseen by the tracer of coverage."""

    @wraps(function)
    def unseen_function(*arguments: Any, **named: Any) -> Any:
        with unseen():
            return function(*arguments, **named)

    return unseen_function


@contextmanager
def seen_at_first(handle: Any, calls: int) -> Iterator[None]:
    """Let coverage see the first examples of a property, but not how Hypothesis draws them."""
    tracer, whole, count = sys.gettrace(), handle.inner_test, itertools.count()

    @wraps(whole)
    def example(*arguments: Any, **named: Any) -> Any:
        if next(count) >= calls or not _is_of_coverage(tracer):
            return whole(*arguments, **named)
        sys.settrace(tracer)
        try:
            return whole(*arguments, **named)
        finally:
            sys.settrace(None)

    handle.inner_test = example
    try:
        with unseen():
            yield
    finally:
        handle.inner_test = whole


def _is_of_coverage(tracer: Any) -> bool:
    return type(tracer).__module__.startswith("coverage")
