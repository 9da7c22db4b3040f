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
    if not type(tracer).__module__.startswith("coverage"):
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


def traced_at_first(function: Callable[..., Any], calls: int) -> Callable[..., Any]:
    """The function, seen by the tracer of coverage for so many calls, and unseen from then on."""
    without = untraced(function)
    count = itertools.count()

    @wraps(function)
    def seen_at_first(*arguments: Any, **named: Any) -> Any:
        return (function if next(count) < calls else without)(*arguments, **named)

    return seen_at_first
