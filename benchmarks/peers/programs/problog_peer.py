"""ProbLog: exact inference over a program."""

from __future__ import annotations

from collections.abc import Callable

from problog import get_evaluatable
from problog.program import PrologString
from protocol import answer


def make(request: dict) -> Callable[[], list[float]]:
    """Return a function that evaluates the program of a request; the answers are the sum of its probabilities."""

    def run() -> list[float]:
        found = get_evaluatable().create_from(PrologString(request["program"])).evaluate()
        return [sum(probability > 0 for probability in found.values()), sum(found.values())]

    return run


answer(make)
