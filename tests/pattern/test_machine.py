"""The general machine: NOT, alternatives and beginnings of partial results, one instant at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.oracles.pattern import bind_query

from anabranch.pattern.analysis import analyse
from anabranch.pattern.machine import Machine, Match, Partial, SetMachine, Signature

A, B, C = ("a",), ("b",), ("c",)
STREAM = "CREATE STREAM r KEY (k STRING) VALUE (v STRING) TIME t INTEGER;"


def machine_of(pattern: str, absent: Sequence[int] = (), within: float | None = None) -> Machine:
    query = bind_query(f"{STREAM} CREATE QUERY q AS PATTERN {pattern};", "q")
    goals = tuple(replace(goal, absent=number in absent) for number, goal in enumerate(query.goals))
    return Machine(analyse(replace(query, goals=goals, within=within)), {})


def event(n_goals: int, **values: tuple[str, ...]) -> Signature:
    """An event that is accepted by goals: `g2=("a",)` says that goal 2 has the value a."""
    return tuple(Match(True, values[f"g{goal}"]) if f"g{goal}" in values else None for goal in range(1, n_goals + 1))


def run(machine: Machine, *instants: Sequence[Signature]) -> list[bool]:
    """Whether the query is true at each instant."""
    partials: dict[Partial, int] = {}
    answers = []
    for number, events in enumerate(instants):
        partials, true = machine.advance(partials, dict.fromkeys(events, 1), 1, number, number - 1)
        partials = {partial: mask for partial, mask in partials.items() if mask}
        answers.append(bool(true))
    return answers


def test_a_not_ends_the_results_that_wait_for_the_goal_after_it() -> None:
    machine = machine_of("r('a', _) THEN r('b', _) THEN r('c', _)", absent=[1])
    first, guard, last = event(3, g1=()), event(3, g2=()), event(3, g3=())
    assert run(machine, [first], [last]) == [False, True]
    assert run(machine, [first], [guard], [last]) == [False, False, False]
    # Only an event strictly between the two counts.
    assert run(machine, [first, guard], [guard, last]) == [False, True]
    assert run(machine, [first], [guard, first], [last]) == [False, False, True]


def test_a_not_ends_only_results_with_its_values() -> None:
    machine = machine_of("r(x, 'a') THEN r(x, 'b') THEN r('d', x)", absent=[1])
    first, guard, last = event(3, g1=A), event(3, g2=B), event(3, g3=A)
    assert run(machine, [first], [guard], [last]) == [False, False, True]
    assert run(machine, [first], [event(3, g2=A)], [last]) == [False, False, False]


def test_a_not_before_a_plus_guards_its_first_event_only() -> None:
    machine = machine_of("r('a', _) THEN r('b', _) THEN r('c', _)+", absent=[1])
    first, guard, last = event(3, g1=()), event(3, g2=()), event(3, g3=())
    assert run(machine, [first], [last], [guard], [last]) == [False, True, False, True]


def test_within_drops_results_that_began_too_long_ago_and_keeps_the_later_beginning() -> None:
    machine = machine_of("r('a', _) THEN r('b', _)", within=1)
    first, last, other = event(2, g1=()), event(2, g2=()), event(2)
    assert run(machine, [first], [last]) == [False, True]
    assert run(machine, [first], [other], [last]) == [False, False, False]
    assert run(machine, [first], [first], [last]) == [False, False, True]
    partials, _ = machine.advance({Partial(0, False, (), 3): 0b11}, {first: 0b01}, 0b11, 4, 3)
    assert partials == {Partial(0, False, (), 4): 0b01, Partial(0, False, (), 3): 0b10}


def test_a_result_keeps_the_beginning_of_its_first_event() -> None:
    machine = machine_of("r('a', _)+ THEN r('b', _)", within=1)
    repeated, last = event(2, g1=()), event(2, g2=())
    partials, _ = machine.advance({Partial(0, True, (), 3): 1}, {repeated: 1}, 1, 4, 3)
    assert Partial(0, False, (), 4) in partials
    partials, _ = machine.advance({Partial(0, True, (), 3): 1}, {last: 1}, 1, 4, 3)
    assert partials == {Partial(0, True, (), 3): 1}


def test_a_tick_makes_results_older_and_drops_those_out_of_reach() -> None:
    sets = SetMachine(machine_of("r('a', _) THEN r('b', _)", within=2), 1000)
    state, _ = sets.step(sets.start, sets.letter_of(event(2, g1=())))
    assert state == {Partial(0, False, (), 0)}
    older = sets.tick(state, 2)
    assert older == {Partial(0, False, (), -1)}
    assert sets.step(older, sets.letter_of(event(2, g2=()))) == (frozenset(), True)
    assert sets.tick(older, 1) == frozenset()
