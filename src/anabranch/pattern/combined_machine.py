"""The machines of several queries as one, for the carried chains and the automata of combinations."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from anabranch.columns.conditions import Relations
from anabranch.pattern.analysis import PatternAnalysis
from anabranch.pattern.machine import Machine, Mask, Match, Partial, Signature


class CombinedMachine:
    """The machines of the operands of a combination, which read the same events.

    The goals of all operands are numbered on, and so are the alternatives in a signature. What is true at an instant is
    a tuple: the worlds in which each operand is.
    """

    def __init__(self, operands: Sequence[PatternAnalysis], relations: Relations) -> None:
        self._machines = [Machine(operand, relations) for operand in operands]
        self._first_goals = [0, *accumulate(machine.n_goals for machine in self._machines)]
        self._first_tests = [0, *accumulate(len(operand.tests) for operand in operands)]

    @property
    def timed(self) -> bool:
        """Whether some operand has WITHIN."""
        return any(machine.timed for machine in self._machines)

    def within_of(self, goal: int) -> float | None:
        """The WITHIN of the operand of a goal."""
        return self._machines[self._operand_of(goal)].within_of(goal)

    def _operand_of(self, goal: int) -> int:
        return bisect_right(self._first_goals, goal) - 1

    def advance(
        self,
        partials: Mapping[Partial, Mask],
        events: Mapping[Signature, Mask],
        everywhere: Mask,
        now: int = 0,
        oldest: int = 0,
    ) -> tuple[dict[Partial, Mask], Mask]:
        """`Machine.advance` of every operand."""
        after: dict[Partial, Mask] = {}
        true: list[Mask] = []
        own = self._by_operand(partials)
        for operand, machine in enumerate(self._machines):
            first = self._first_goals[operand]
            before = {partial: partials[number_on(partial, first)] for partial in own[operand]}
            results, worlds = machine.advance(before, self._events_of(operand, events), everywhere, now, oldest)
            after |= {number_on(partial, first): mask for partial, mask in results.items()}
            true.append(worlds)
        return after, tuple(true)

    def is_last(self, number: int) -> bool:
        """Whether an alternative, by its index in a signature, is one of the last goal of an operand."""
        operand = bisect_right(self._first_tests, number) - 1
        return self._machines[operand].is_last(number - self._first_tests[operand])

    def effective(self, partials: Iterable[Partial], signature: Signature) -> Signature:
        """A signature without the matches that have no effect on these partial results."""
        own, kept = self._by_operand(partials), list[Match | None]()
        for operand, machine in enumerate(self._machines):
            kept += machine.effective(own[operand], self._signature_of(operand, signature))
        return tuple(kept)

    def _by_operand(self, partials: Iterable[Partial]) -> list[list[Partial]]:
        """The partial results of each operand, with the numbers of its goals."""
        own: list[list[Partial]] = [[] for _ in self._machines]
        for partial in partials:
            operand = self._operand_of(partial.goal)
            own[operand].append(number_on(partial, -self._first_goals[operand]))
        return own

    def _signature_of(self, operand: int, signature: Signature) -> Signature:
        return signature[self._first_tests[operand] : self._first_tests[operand + 1]]

    def _events_of(self, operand: int, events: Mapping[Signature, Mask]) -> dict[Signature, Mask]:
        """The events as an operand sees them: some may look alike."""
        seen: dict[Signature, Mask] = {}
        for signature, mask in events.items():
            own = self._signature_of(operand, signature)
            seen[own] = seen[own] | mask if own in seen else mask
        return seen


def number_on(partial: Partial, first: int) -> Partial:
    """A partial result whose goals are numbered from `first` on."""
    return replace(partial, goal=partial.goal + first) if first else partial
