"""The oracle of PER for PATTERN: it enumerates every world, and counts in each one what is true.

Interpretation of the definitions
---------------------------------
- The *binding* of a result has the variables that GROUP BY could name: those in a key position of every goal, in a
  common one for the goals of one stream, and shared by the unfoldings of each Kleene. An answer in a world is one
  (binding, instant).
- `PER d AT LEAST n TIMES` counts the answers of a world in each window, for each group.
- `PER EPISODE ABOVE r GAP d` merges the rows of the query, (instant, group), whose probability is above r. Two of them
  follow each other if they are at consecutive instants of the streams, or at most d apart. The probability of an
  episode is that of the worlds in which the group is true at any instant from its first to its last.
- `PER KEYS` merges all rows of a group.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from anabranch.binding.per import PerEpisode, PerKeys, PerWindow
from anabranch.language import nodes
from anabranch.pattern.query import BoundPattern
from tests.oracles.conditions import Relations
from tests.oracles.pattern import Matcher, Row, Time, probabilities, results, worlds
from tests.untraced import untraced

Group = tuple[Hashable, ...]
#: The result of a query: from (t_from, group) to the other columns.
PerRows = dict[tuple[Any, ...], dict[str, Any]]
#: An answer in a world: its group, its binding and its time.
Truth = tuple[Group, Group, Time]

#: A probability that is equal to the number of ABOVE, but for rounding errors of sums, is not above it.
ROUNDING = 1e-12


@untraced
def per_rows(query: BoundPattern, rows: Mapping[str, Iterable[Row]], relations: Relations | None = None) -> PerRows:
    """The rows of a query with PER, by (t_from, group...); THRESHOLD is not applied."""
    relations = relations or {}
    if isinstance(query.per, PerKeys):
        return _keys(query, rows, relations)
    assert isinstance(query.per, PerWindow | PerEpisode)
    instants = sorted({row[stream.time.name] for stream in query.streams for row in rows.get(stream.name, ())})
    return span_rows(query.per, list(_truths(query, rows, relations)), instants)


def span_rows(
    per: PerWindow | PerEpisode, of_worlds: Sequence[tuple[set[Truth], float]], instants: Sequence[Time]
) -> PerRows:
    """The rows of `PER d` or `PER EPISODE`, given what is true in each world and its probability."""
    return _windows(of_worlds, per) if isinstance(per, PerWindow) else _episodes(of_worlds, instants, per)


def _windows(of_worlds: Sequence[tuple[set[Truth], float]], per: PerWindow) -> PerRows:
    probability: dict[Any, list[float]] = defaultdict(list)
    expected: dict[Any, list[float]] = defaultdict(list)
    for truths, p in of_worlds:
        counts: dict[Any, int] = defaultdict(int)
        for group, _, t in truths:
            counts[_window(t, per.length), group] += 1
        for answer, count in counts.items():
            expected[answer].append(p * count)
            if count >= per.at_least:
                probability[answer].append(p)
    return {
        (window, *group): {
            "t_to": _start(window, per.length, 1),
            "probability": math.fsum(probability[window, group]),
            "expected": math.fsum(expected[window, group]),
        }
        for window, group in expected
    }


def _window(t: Time, length: float) -> Time:
    """The start of the window of a time."""
    return _start(math.floor(t / length + 1e-9) * length, length, 0)


def _start(t: Time, length: float, later: int) -> Time:
    return t + later * length


def _episodes(of_worlds: Sequence[tuple[set[Truth], float]], instants: Sequence[Time], per: PerEpisode) -> PerRows:
    episodes: list[tuple[Group, list[Time], list[float]]] = []
    single: dict[Group, dict[Time, list[float]]] = defaultdict(lambda: defaultdict(list))
    for truths, p in of_worlds:
        for group, t in {(group, t) for group, _, t in truths}:
            single[group][t].append(p)
    for group, parts in single.items():
        answers = {t: math.fsum(ps) for t, ps in parts.items()}
        above = [(t, p) for t, p in sorted(answers.items()) if p > per.above + ROUNDING]
        for number, (t, p) in enumerate(above):
            last = above[number - 1][0] if number else None
            if last is not None and (instants.index(t) == instants.index(last) + 1 or t - last <= per.gap + 1e-9):
                episodes[-1][1].append(t)
                episodes[-1][2].append(p)
            else:
                episodes.append((group, [t], [p]))
    seen: dict[int, list[float]] = defaultdict(list)
    for truths, p in of_worlds:
        for number, (group, times, _) in enumerate(episodes):
            if any(of == group and times[0] <= t <= times[-1] for of, _, t in truths):
                seen[number].append(p)
    return {
        (times[0], *group): {
            "t_to": times[-1],
            "count": len(times),
            "probability": math.fsum(seen[number]),
            "expected": math.fsum(above),
        }
        for number, (group, times, above) in enumerate(episodes)
    }


def _keys(query: BoundPattern, rows: Any, relations: Relations) -> PerRows:
    return {
        (min(answers), *group): {
            "t_to": max(answers),
            "count": len(answers),
            "probability": max(answers.values()),
            "expected": math.fsum(answers.values()),
        }
        for group, answers in _answers_of_groups(query, rows, relations).items()
    }


def _answers_of_groups(query: BoundPattern, rows: Any, relations: Relations) -> dict[Group, dict[Time, float]]:
    """The probability of each row of the query without PER, by group and time."""
    by_group: dict[Group, dict[Time, float]] = defaultdict(dict)
    for answer, p in probabilities(query, rows, relations).items():
        t, *group = answer if query.group_by else (answer,)
        by_group[tuple(group)][t] = p
    return by_group


def _truths(query: BoundPattern, rows: Any, relations: Relations) -> Iterator[tuple[set[Truth], float]]:
    """The answers that are true in each world, and the probability of the world."""
    matcher = Matcher(relations)
    common = _common_keys(query)
    grouping = [name for _, name in query.group_by]
    for world, p in worlds(query.streams, rows):
        found = results(query, world, matcher)
        yield {(_values_of(result, grouping), _values_of(result, common), result.t) for result in found}, p


def _values_of(result: Any, names: Iterable[str]) -> Group:
    bindings = dict(result.bindings)
    return tuple(bindings[name] for name in names)


def _common_keys(query: BoundPattern) -> list[str]:
    """The variables that GROUP BY could name."""
    names = {term.name for goal in query.alternatives for term in goal.terms if isinstance(term, nodes.Variable)}
    return sorted(name for name in names if _is_common_key(query, name))


def _is_common_key(query: BoundPattern, name: str) -> bool:
    for stream in query.streams:
        positions = [
            {
                position
                for position, term in enumerate(goal.terms[: len(stream.keys)])
                if isinstance(term, nodes.Variable) and term.name == name
            }
            for goal in query.alternatives
            if goal.stream.name == stream.name
        ]
        if not set.intersection(*positions):
            return False
    return all(name in goal.shared for goal in query.goals if goal.kleene)
