"""The oracle of queries over answers: in each world of the streams that are read, answers are true or false.

A world fixes what happened in the streams that are read. In a world, an answer of a PATTERN query is true or false, by
the definitions of `tests/oracles/pattern.py`. The events of a stream of answers are those that are true. The query over
them is evaluated on these events, and the probabilities of the worlds in which one of its answers is true are added.
So no probability of an answer is ever multiplied.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from anabranch.binding.bound import BoundQuery
from anabranch.catalog import Stream
from anabranch.constrain.query import BoundConstrain
from anabranch.language import nodes
from anabranch.pattern.query import BoundCascade, BoundPattern
from anabranch.sequence.query import BoundSequence
from tests.local import bound_query
from tests.oracles import constrain, sequence
from tests.oracles.pattern import Event, Matcher, Row, answer_of, at_least, probabilities, results, worlds
from tests.untraced import untraced

#: Every world needs the bound queries.
bound = lru_cache(maxsize=64)(bound_query)

#: The probabilities of the last query: every world needs them.
_KNOWN: dict[Hashable, dict[Hashable, float]] = {}


@untraced
def ask(workbook: str, name: str, rows: Mapping[str, Iterable[Row]]) -> dict[Hashable, float]:
    """The probability of every answer above 0, by its events, or for PATTERN by t and group."""
    outer = bound(workbook, name)
    outer = outer.outer if isinstance(outer, BoundCascade) else outer
    streams = outer.streams
    read = {stream.name: stream for stream in base_streams(workbook, outer)}
    matcher = Matcher({})
    weights: dict[Hashable, list[float]] = defaultdict(list)
    for world, probability in worlds(read.values(), rows):
        events = [event for stream in streams for event in events_of(workbook, stream, world, matcher, rows)]
        for answer, share in answers_in_world(outer, events, matcher).items():
            weights[answer].append(probability * share)
    return {answer: total for answer, parts in weights.items() if (total := math.fsum(parts)) > 0}


def base_streams(workbook: str, query: BoundQuery) -> Iterator[Stream]:
    """The streams that are read, through all queries between."""
    for stream in query.streams:
        if isinstance(stream.source, nodes.QuerySource):
            yield from base_streams(workbook, bound(workbook, stream.source.name))
        else:
            yield stream


def events_of(
    workbook: str, stream: Stream, world: Sequence[Event], matcher: Matcher, rows: Mapping[str, Iterable[Row]]
) -> list[Event]:
    """The events of a stream in a world; an answer that is true, and reaches THRESHOLD, is an event of its group."""
    if not isinstance(stream.source, nodes.QuerySource):
        return [event for event in world if event.stream == stream.name]
    inner = bound(workbook, stream.source.name)
    events = [event for read in inner.streams for event in events_of(workbook, read, world, matcher, rows)]
    true = {answer_of(inner, result) for result in results(inner, events, matcher)}
    if inner.threshold:
        true &= at_least(known_probabilities(workbook, stream.source.name, rows), inner.threshold).keys()
    return [Event(stream.name, tuple(group), t) for t, *group in sorted(true)]


def known_probabilities(workbook: str, name: str, rows: Mapping[str, Iterable[Row]]) -> dict[Hashable, float]:
    """The probabilities of the answers of a query over streams that are read."""
    key = (workbook, name, repr(rows))
    if key not in _KNOWN:
        _KNOWN.clear()
        _KNOWN[key] = probabilities(bound(workbook, name), rows)
    return _KNOWN[key]


def answers_in_world(outer: BoundQuery, events: Sequence[Event], matcher: Matcher) -> dict[Hashable, float]:
    """The answers of the outer query if exactly these events happened, each with its probability then."""
    if isinstance(outer, BoundPattern):
        answers = {answer_of(outer, result) for result in results(outer, events, matcher)}
        return {answer if isinstance(answer, tuple) else (answer,): 1.0 for answer in answers}
    rows: dict[str, list[dict[str, Any]]] = {stream.name: [] for stream in outer.streams}
    streams = {stream.name: stream for stream in outer.streams}
    for event in events:
        stream = streams[event.stream]
        names = [column.name for column in (*stream.keys, *stream.values)]
        rows[event.stream].append(
            {**dict(zip(names, event.values, strict=True)), stream.time.name: event.t, stream.probability: 1.0}
        )
    if isinstance(outer, BoundSequence):
        found = [(match, match["probability"]) for match in sequence.matches(outer, rows)]
    else:
        assert isinstance(outer, BoundConstrain)
        found = [(solution, 1.0) for solution in constrain.solutions(outer, rows)]
    return {key_of(outer, answer): share for answer, share in found}


def key_of(outer: BoundQuery, answer: Mapping[str, Any]) -> Hashable:
    """What identifies an answer of SEQUENCE or CONSTRAIN: the keys and the time of each event."""
    parts = []
    for operand in outer.combined_events:
        event = answer[operand.label]
        names = [column.name for column in (*operand.stream.keys, operand.stream.time)]
        parts.append(None if event is None else tuple(event[name] for name in names))
    return tuple(parts)
