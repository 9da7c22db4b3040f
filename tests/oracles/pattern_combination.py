"""The oracle of combinations of PATTERN queries: every operand is evaluated in the same possible worlds.

A combination has a truth at every instant of all streams that it names, for every group that exists: from the first
instant at which a key of the group has a row in any of these streams. Without GROUP BY there is one group, which always
exists. In a world, an operand is true for a group at an instant if it has a result there (`pattern.py`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from anabranch.catalog import Stream
from anabranch.language import nodes
from anabranch.pattern.combination import Combination, Combined, Formula, operands_of
from anabranch.pattern.query import BoundPattern
from tests.local import parsed
from tests.oracles.conditions import Relations
from tests.oracles.pattern import Matcher, Row, Time, answer_of, bind_query, results, worlds
from tests.oracles.pattern_per import PerRows, span_rows
from tests.untraced import untraced

Group = tuple[Any, ...]


@untraced
def ask(
    workbook: str, name: str, rows: Mapping[str, Iterable[Row]], relations: Relations | None = None
) -> dict[Hashable, float]:
    """The probability of every answer above 0, by t, or with GROUP BY by (t, value of each grouping variable)."""
    asked: dict[Hashable, list[float]] = defaultdict(list)
    conditions: dict[Hashable, list[float]] = defaultdict(list)
    for true, given, probability in in_worlds(workbook, name, rows, relations):
        for answer in given:
            conditions[answer].append(probability)
        for answer in true & given:
            asked[answer].append(probability)
    return {answer: math.fsum(parts) / math.fsum(conditions[answer]) for answer, parts in asked.items()}


@untraced
def ask_per(workbook: str, name: str, rows: Mapping[str, Iterable[Row]], relations: Relations | None = None) -> PerRows:
    """The rows of a combination with `PER d` or `PER EPISODE`, without GIVEN: an answer is one (group, instant)."""
    combination = bind_query(workbook, name)
    truths = [
        ({_truth(answer) for answer in true}, probability)
        for true, _, probability in in_worlds(workbook, name, rows, relations)
    ]
    instants = {row[stream.time.name] for stream in combination.streams for row in rows.get(stream.name, ())}
    return span_rows(combination.per, truths, sorted(instants))


def _truth(answer: Any) -> tuple[Group, Group, Time]:
    t, *group = answer if isinstance(answer, tuple) else (answer,)
    return tuple(group), (), t


def in_worlds(
    workbook: str, name: str, rows: Mapping[str, Iterable[Row]], relations: Relations | None = None
) -> Iterator[tuple[set[Hashable], set[Hashable], float]]:
    """For each world, the answers for which the formula is true, those for which GIVEN is, and its probability."""
    declarations = {statement.name.lower(): statement for statement in parsed(workbook).statements}
    body = declarations[name.lower()].body
    conditions = () if body.given is None else (body.given,)
    formulas = (body.formula, *conditions)
    named = {operand.name.lower() for formula in formulas for operand in leaves(formula, declarations)}
    operands = {operand: bind_query(workbook, operand) for operand in sorted(named)}
    streams = {stream.name: stream for operand in operands.values() for stream in operand.streams}
    matcher = Matcher(relations or {})
    answers = list(existing(operands.values(), streams.values(), rows))
    for world, probability in worlds(streams.values(), rows):
        true = {
            operand: {answer_of(query, result) for result in results(query, world, matcher)}
            for operand, query in operands.items()
        }
        asked = {answer for answer in answers if holds(body.formula, declarations, true, answer)}
        given = {
            answer for answer in answers if all(holds(formula, declarations, true, answer) for formula in conditions)
        }
        yield asked, given, probability


def leaves(formula: Formula, declarations: Mapping[str, nodes.CreateQuery]) -> Iterator[Any]:
    """The operands of a formula that are PATTERN queries, also of operands that are combinations."""
    for operand in operands_of(formula):
        body = declarations[operand.name.lower()].body
        if isinstance(body, Combination):
            yield from leaves(body.formula, declarations)
        else:
            yield operand


def existing(
    operands: Iterable[BoundPattern], streams: Iterable[Stream], rows: Mapping[str, Iterable[Row]]
) -> Iterator[Hashable]:
    """The instants of all streams, with the groups that exist at each."""
    queries = list(operands)
    instants = sorted({row[stream.time.name] for stream in streams for row in rows.get(stream.name, ())})
    if not queries[0].group_by:
        yield from instants
        return
    names = [variable for _, variable in queries[0].group_by]
    first: dict[Group, Time] = {}
    for query in queries:
        for goal in query.goals:
            columns = dict(zip((term_name(term) for term in goal.key_terms), goal.stream.keys, strict=True))
            for row in rows.get(goal.stream.name, ()):
                group = tuple(row[columns[name].name] for name in names)
                first[group] = min(first.get(group, row[goal.stream.time.name]), row[goal.stream.time.name])
    for group, begin in first.items():
        yield from ((t, *group) for t in instants if t >= begin)


def term_name(term: Any) -> Any:
    """The variable of a term; something else for constants and wildcards."""
    return term.name if isinstance(term, nodes.Variable) else term


def holds(
    formula: Formula, declarations: Mapping[str, nodes.CreateQuery], true: Mapping[str, set[Hashable]], answer: Hashable
) -> bool:
    """Whether a formula is true at an instant for a group, given the answers of each operand in the world."""
    if isinstance(formula, Combined):
        parts = [holds(part, declarations, true, answer) for part in formula.parts]
        return {"AND": all(parts), "OR": any(parts), "NOT": not parts[0]}[formula.op]
    body = declarations[formula.name.lower()].body
    if isinstance(body, Combination):
        return holds(body.formula, declarations, true, answer)
    return answer in true[formula.name.lower()]
