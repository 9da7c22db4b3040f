"""The plan of a SEQUENCE query, in words."""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.binding.words import count_of, in_words
from anabranch.language.findings import listed
from anabranch.plan import Plan, Step
from anabranch.sequence.analysis import SequenceAnalysis, analyse
from anabranch.sequence.query import BoundComponent, BoundDelay, BoundSequence


def plan(query: BoundSequence) -> Plan:
    """Say how a query will be run, or why it cannot be."""
    analysis = analyse(query)
    refused = analysis.objection()
    return Plan(
        query=query.name,
        kind="SEQUENCE",
        classification=_classification(query),
        why=tuple(_why(analysis)),
        method="exact",
        routing=_routing(analysis),
        cost=_cost(query),
        steps=() if refused else tuple(_steps(analysis)),
        streams="yes" if query.within is not None else _ENDLESS,
        refused=refused,
        span=query.span,
    )


_ENDLESS = "without WITHIN nothing bounds the time between two events, so they would be kept for good; add one"


def _classification(query: BoundSequence) -> str:
    positives = sum(not component.negative for component in query.components)
    negatives = len(query.components) - positives
    missing = [component.label for component in query.components if component.may_miss]
    events = f"sequence of {count_of(positives, 'event')}"
    events += f" with {negatives} that must not happen" if negatives else ""
    return f"{events}; readings of {listed(missing, 'and')} may be lost" if missing else f"{events}; no reading is lost"


def _why(analysis: SequenceAnalysis) -> Iterator[str]:
    query = analysis.query
    for number, disjunct in enumerate(analysis.disjuncts):
        if len(analysis.disjuncts) > 1:
            yield f"way {number + 1} of {len(analysis.disjuncts)} to meet WHERE; a match of any of them is a match"
        for component, own in zip(query.components, disjunct.own, strict=True):
            asked = f"has {in_words(own)}" if own is not None else "is any event"
            yield f"{'!' if component.negative else ''}{component.label} {asked} (of {component.stream.name})"
    for component in query.components:
        if component.may_miss:
            yield _of_loss(query, component)


def _of_loss(query: BoundSequence, component: BoundComponent) -> str:
    chance = f"{component.miss:g} of" if component.miss is not None else f"by its {query.rates and query.rates.column}"
    told = f"{chance} the readings of {component.label} are lost"
    return told if component.delay is None else f"{told}; its delay is {_law(component.delay)}"


def _law(delay: BoundDelay) -> str:
    given = f" '{delay.path}'" if delay.path else f"({', '.join(f'{each:g}' for each in delay.parameters)})"
    return f"{delay.law}{given}"


def _routing(analysis: SequenceAnalysis) -> str:
    if not analysis.key:
        return "all events in one place: no equality joins all positive components"
    names = [component.name for component in analysis.query.components]
    labels = {component.name: component.label for component in analysis.query.components}
    classes = [
        " = ".join(f"{labels[name]}.{column}" for name, column in sorted(place, key=lambda each: names.index(each[0])))
        for place in analysis.key
    ]
    everywhere = [labels[name] for name in names if analysis.key_columns(name) is None]
    copied = f"; events of {listed(everywhere, 'and')} go to every bucket" if everywhere else ""
    return f"events meet by {' and '.join(classes)}{copied}"


def _cost(query: BoundSequence) -> str:
    if query.within is None:
        return "time grows with events and answers, memory with all events that fit a component"
    return "time grows with events and answers, memory with the events that fit a component within the window"


def _steps(analysis: SequenceAnalysis) -> Iterator[Step]:
    query = analysis.query
    yield Step("read", ", ".join(stream.name for stream in query.streams))
    yield Step("select", "the components that each event can be, each different demand asked once")
    bound = f"that can reach {query.threshold:g}" if query.threshold else "that can be part of a match"
    yield Step("queue", f"events {bound}, by an upper bound of all ways to them")
    end = "each first event on, when its window has closed" if query.ending_open else "each last event back"
    yield Step("search", f"from {end}; scores of gaps come from tables")
    joint = dict.fromkeys(
        in_words(condition)
        for disjunct in analysis.disjuncts
        for condition in (*disjunct.joint, *analysis.equalities(disjunct))
    )
    for condition in joint:
        yield Step("filter", f"{condition}: asked as soon as its events are found")
    scored = {
        "joint": "that what is missing happened and was lost",
        "posterior": "that what is missing happened, among all that can have happened unread",
    }
    yield Step("score", f"the probability {scored[query.scoring]}")
    if "best" in query.emit:
        yield Step("emit", "the most probable match of each " + ("first" if query.ending_open else "last") + " event")
    if "expired" in query.emit:
        yield Step("emit", "also what nothing continued before its window closed")
