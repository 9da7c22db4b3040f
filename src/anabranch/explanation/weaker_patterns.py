"""Finds the goal at which a PATTERN fails: its prefixes are run, and the goal without what comes before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from anabranch.binding.words import count_of
from anabranch.explanation.case import Case, Row
from anabranch.explanation.explainer import literal
from anabranch.language import nodes
from anabranch.pattern.query import BoundGoal, BoundPattern
from anabranch.text import probability_text

Answers = Callable[[Case], list[Row]]


def failing_goal(case: Case, query: BoundPattern, answers: Answers) -> Iterator[str]:
    """The goal that no event satisfies after those before it, and why."""
    earlier: list[Row] = []
    for number, goal in enumerate(query.goals, 1):
        if goal.absent:
            continue
        found = answers(_with_goals(case, query, query.goals[:number]))
        if not found:
            yield from _failure(case, query, number, earlier, answers)
            return
        earlier = found


def _failure(case: Case, query: BoundPattern, number: int, earlier: Sequence[Row], answers: Answers) -> Iterator[str]:
    goal = query.goals[number - 1]
    text = f"goal {number}, {goal_text(goal)}"
    if earlier:
        first = min(row["t"] for row in earlier)
        p = probability_text(max(row["probability"] for row in earlier))
        yield f"the goals before goal {number} are satisfied, first at {literal(first)}; the highest probability is {p}"
    alone = answers(_with_goals(case, query, (_without_conditions(goal),)))
    if not alone:
        yield f"no event matches {text}"
        return
    times = [row["t"] for row in alone]
    matched = f"{count_of(len(times), 'instant')} from {literal(min(times))} to {literal(max(times))}"
    p = probability_text(max(row["probability"] for row in alone))
    yield f"events match {text} at {matched}, the highest probability is {p}; but none follows the goals before it"
    yield from _obstacles(case, query, number, answers)


def _obstacles(case: Case, query: BoundPattern, number: int, answers: Answers) -> Iterator[str]:
    """What prevents the goal from following: its conditions, a NOT, or WITHIN."""
    prefix = query.goals[:number]
    free = (*prefix[:-1], _without_conditions(prefix[-1], keep_shared=True))
    if (prefix[-1].selections or prefix[-1].step_condition) and answers(_with_goals(case, query, free)):
        yield f"the conditions of WHERE or + on goal {number} exclude every event that follows"
    present = tuple(goal for goal in prefix if not goal.absent)
    if len(present) < len(prefix) and answers(_with_goals(case, query, present)):
        yield f"an event of a NOT before goal {number} always comes between"
    if query.within is not None and answers(_with_goals(case, replace(query, within=None), prefix)):
        yield f"WITHIN {query.within:g} is too short"


def _without_conditions(goal: BoundGoal, keep_shared: bool = False) -> BoundGoal:
    """The goal without the conditions that are tested after an event was chosen."""
    if keep_shared:
        return replace(goal, selections=(), step_condition=None)
    return replace(goal, selections=(), step_condition=None, kleene=False, shared=())


def _with_goals(case: Case, query: BoundPattern, goals: tuple[BoundGoal, ...]) -> Case:
    """The query with other goals; grouping variables that they do not bind are dropped."""
    bound = set[str]().union(*(goal.exported for goal in goals))
    group_by = tuple((name, variable) for name, variable in query.group_by if variable in bound)
    return case.with_bound(replace(query, goals=goals, group_by=group_by, per=None))


def goal_text(goal: BoundGoal) -> str:
    """A goal as it is written, without its conditions."""
    texts = []
    for alternative in goal.alternatives:
        terms = ", ".join(map(_term_text, alternative.terms))
        texts.append(f"{alternative.stream.name}({terms})")
    return (texts[0] if len(texts) == 1 else f"({' OR '.join(texts)})") + ("+" if goal.kleene else "")


def _term_text(term: object) -> str:
    if isinstance(term, nodes.Variable):
        return term.name
    return literal(term.value) if isinstance(term, nodes.Literal) else "_"
