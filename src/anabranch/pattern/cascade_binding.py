"""PATTERN over answers of PATTERN queries for the same keys: one automaton, whose answers are exact.

The automata of the queries that are read run as one (`product.py`). Which of them are true at an instant is an event
for the automaton of the outer query. So its state is that of all of them and its own, and no answer of an inner query
has a probability of its own: the dependence between answers is that of the states.
"""

from __future__ import annotations

from collections.abc import Iterable

from anabranch.binding.query_binder import Inner
from anabranch.binding.reading import source_name
from anabranch.catalog import Stream
from anabranch.language import nodes
from anabranch.language.unparse import unparse
from anabranch.pattern.analysis import analyse
from anabranch.pattern.combining import CombinedAnalysis
from anabranch.pattern.query import BoundCascade, BoundCombination, BoundGoal, BoundPattern


def cascade_of(outer: BoundPattern, inner_of: Inner) -> BoundCascade | None:
    """The outer query and those that it reads as one; None if they cannot be one automaton for each key."""
    inner = [read for stream in outer.streams if (read := inner_of(stream)) is not None]
    operands = tuple(query for query, _ in inner if isinstance(query, BoundPattern) and _is_plain(query))
    if len(operands) < len(outer.streams) or not _is_plain(outer) or outer.per is not None:
        return None
    groups = {_groups(stream, query) for stream, query in zip(outer.streams, operands, strict=True)}
    terms = {_variables(goal) for goal in outer.alternatives}
    if len(groups) > 1 or len(terms) > 1 or None in groups | terms:
        return None
    (names,), (variables,) = groups, terms
    position = dict(zip(variables or (), names or (), strict=True))
    streams = [stream.name.lower() for stream in outer.streams]
    declared = tuple(unparse(stream.declaration) for stream in outer.streams)
    cascade = BoundCascade(
        name=outer.name,
        goals=tuple(goal for operand in operands for goal in operand.goals),
        group_by=tuple((written, position[variable]) for written, variable in outer.group_by),
        threshold=outer.threshold,
        span=outer.span,
        operands=operands,
        definitions=(*declared, *(text for _, text in inner)),
        outer=outer,
        reads=tuple((name, number) for number, name in enumerate(streams)),
        limit=outer.limit,
    )
    return cascade if _is_one_automaton(cascade, names or ()) else None


def _is_plain(query: BoundPattern) -> bool:
    """Whether an automaton reads every event once, and nothing is left out of the answers of an inner query."""
    return not (query.within is not None or query.method or query.early or query.bounded)


def _groups(stream: Stream, inner: BoundPattern) -> tuple[str, ...] | None:
    """The grouping variables of an inner query as keys of the stream; None if its rows are not all answers."""
    node = stream.declaration
    complete = not (inner.per or inner.threshold or inner.limit or isinstance(inner, BoundCombination))
    if not complete or stream.values or node.where is not None or node.joins or node.time_format or node.zone:
        return None
    keys = tuple(source_name(stream, key.name).lower() for key in stream.keys)
    variables = {written.lower(): variable for written, variable in inner.group_by}
    is_time = source_name(stream, stream.time.name).lower() == "t"
    return tuple(variables[key] for key in keys) if is_time and set(keys) == set(variables) else None


def _variables(goal: BoundGoal) -> tuple[str, ...] | None:
    """The variables of a goal of the outer query; None if it has conditions, or other events can match it."""
    names = tuple(term.name for term in goal.terms if isinstance(term, nodes.Variable))
    plain = goal.filter is None and goal.step_condition is None and not goal.selections
    shared = not goal.kleene or set(goal.shared) == set(names)
    return names if plain and shared and len(set(names)) == len(goal.terms) else None


def _is_one_automaton(cascade: BoundCascade, names: Iterable[str]) -> bool:
    """Whether the keys of the answers are the chains of all queries, so that one key has one state."""
    analysis = analyse(cascade)
    exactly = isinstance(analysis, CombinedAnalysis) and analysis.exactly and analyse(cascade.outer).regular
    # A goal with a + that does not share the key also matches the events of other keys.
    return exactly and all(set(one.chain) == set(names) for one in (analysis, *map(analyse, cascade.operands)))
