"""Coverage looks away where it would count nothing new: watching an oracle costs as much again as its work."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any


def untraced(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, unseen by the tracer of coverage; a debugger sees it."""

    @wraps(function)
    def unseen(*arguments: Any, **named: Any) -> Any:
        tracer = sys.gettrace()
        if not type(tracer).__module__.startswith("coverage"):
            return function(*arguments, **named)
        sys.settrace(None)
        try:
            return function(*arguments, **named)
        finally:
            sys.settrace(tracer)

    return unseen


def traced_at_first(function: Callable[..., Any], calls: int) -> Callable[..., Any]:
    """The function, seen by the tracer of coverage for so many calls, and unseen from then on."""
    unseen = untraced(function)
    count = itertools.count()

    @wraps(function)
    def seen_at_first(*arguments: Any, **named: Any) -> Any:
        return (function if next(count) < calls else unseen)(*arguments, **named)

    return seen_at_first
