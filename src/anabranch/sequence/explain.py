"""The plan of a SEQUENCE query, for `explain`."""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.binding.words import condition_text, count_of
from anabranch.language.findings import listed
from anabranch.plan import Plan, Step
from anabranch.sequence.analysis import SequenceAnalysis
from anabranch.sequence.query import BoundComponent, BoundDelay, BoundSequence, GivenDelay


def plan(analysis: SequenceAnalysis) -> Plan:
    """Describe how a query is run, or why it cannot run."""
    query = analysis.query
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
        streams="yes" if query.within is not None else _UNBOUNDED,
        refused=refused,
        span=query.span,
    )


_UNBOUNDED = "without WITHIN, events would be kept forever; add WITHIN, such as WITHIN 12 HOURS"


def _classification(query: BoundSequence) -> str:
    negatives = sum(component.negative for component in query.components)
    runs = sum(component.run for component in query.components)
    missing = [component.label for component in query.components if component.may_miss]
    events = f"sequence of {count_of(len(query.components) - negatives - runs, 'event')}"
    events += f" and {count_of(runs, 'run')} of events" if runs else ""
    events += f" with {negatives} that must not happen" if negatives else ""
    return f"{events}; readings of {listed(missing, 'and')} may be lost" if missing else f"{events}; no reading is lost"


def _why(analysis: SequenceAnalysis) -> Iterator[str]:
    query = analysis.query
    for number, disjunct in enumerate(analysis.disjuncts):
        if len(analysis.disjuncts) > 1:
            yield f"alternative {number + 1} of {len(analysis.disjuncts)} of WHERE (each is searched separately):"
        for component, own in zip(query.components, disjunct.own, strict=True):
            condition = f"has {condition_text(own)}" if own is not None else "is any event"
            yield f"{component.text} {condition} (stream {component.stream.name})"
    for component in query.components:
        if component.may_miss:
            yield _loss_text(query, component)
        elif query.has_occurs and component.delay is not None:
            yield f"the delay of {component.label} is {_law_text(component.delay)}"
        if component.occurs is not None:
            yield f"{component.label} happens at all with probability {component.occurs:g}"
        yield from (_given_text(query, component, law) for law in component.given)


def _loss_text(query: BoundSequence, component: BoundComponent) -> str:
    if component.miss is None:
        column = "reader" if query.rates is None else query.rates.column
        probability = f"the probability of its {column}"
    else:
        probability = f"probability {component.miss:g}"
    loss = f"a reading of {component.label} is lost with {probability}"
    return loss if component.delay is None else f"{loss}; its delay is {_law_text(component.delay)}"


def _given_text(query: BoundSequence, component: BoundComponent, law: GivenDelay) -> str:
    others = listed([other.label for other in query.components if other.name in law.components], "and")
    if law.happened:
        return f"where {others} happened unread, the gap up to {component.label} is {_law_text(law.delay)}"
    return f"where {others} did not happen, the delay of {component.label} is {_law_text(law.delay)}"


def _law_text(delay: BoundDelay) -> str:
    parameters = ", ".join(f"{parameter:g}" for parameter in delay.parameters)
    return f"{delay.law} '{delay.path}'" if delay.path else f"{delay.law}({parameters})"


def _routing(analysis: SequenceAnalysis) -> str:
    if not analysis.key:
        return "all events go to one bucket: no equality joins all positive components"
    names = [component.name for component in analysis.query.components]
    labels = {component.name: component.label for component in analysis.query.components}
    classes = [
        " = ".join(
            f"{labels[name]}.{column}" for name, column in sorted(equal_columns, key=lambda pair: names.index(pair[0]))
        )
        for equal_columns in analysis.key
    ]
    unkeyed = [labels[name] for name in names if analysis.key_columns(name) is None]
    copied = f"; events of {listed(unkeyed, 'and')} go to every bucket" if unkeyed else ""
    return f"events are routed by {' and '.join(classes)}{copied}"


def _cost(query: BoundSequence) -> str:
    answers = "answers with the events of their runs" if query.has_runs else "answers"
    kept = "all events" if query.within is None else "the events in a window"
    early = ", and in each micro-batch with the events that wait for the watermark" if "early" in query.emit else ""
    return f"time grows with events and {answers}{early}; memory grows with {kept} that match a component"


def _steps(analysis: SequenceAnalysis) -> Iterator[Step]:
    query = analysis.query
    yield Step("read", ", ".join(stream.name for stream in query.streams))
    yield Step("select", "find the components that each event matches; evaluate each distinct condition once")
    kept = f"whose matches can reach {query.threshold:g}" if query.threshold else "that can be part of a match"
    yield Step("queue", f"keep events {kept}, by an upper bound on their score")
    direction = (
        "forward from each first event, when its window closes" if query.ending_open else "back from each last event"
    )
    yield Step("search", f"{direction}; scores of gaps are looked up in tables")
    runs = listed([component.label for component in query.components if component.run], "and")
    if runs:
        yield Step("runs", f"add all events of {runs} between the events around them, at least one each")
    joint = dict.fromkeys(
        condition_text(condition)
        for disjunct in analysis.disjuncts
        for condition in (*disjunct.joint, *analysis.equalities(disjunct))
    )
    for condition in joint:
        yield Step("filter", f"{condition}: tested as soon as its events are found")
    scores = {
        "joint": "the probability that the missing events happened and were lost",
        "posterior": "the probability that the missing events happened, given the readings",
    }
    by_length = "the probability of the match among all that can have happened unread, given the lengths of its gaps"
    yield Step("score", by_length if query.has_occurs else scores[query.scoring])
    if query.has_probabilities:
        excluded = ", and that no event happened that excludes the match" if query.excludes_events else ""
        of_runs = f", with at least one of {runs}" if runs else ""
        yield Step("weigh", f"times the probability that its events happened{of_runs}{excluded}")
    if "best" in query.emit:
        yield Step("emit", "the most probable match of each " + ("first" if query.ending_open else "last") + " event")
    if "next" in query.emit:
        yield Step("emit", "the first match of each first event")
    if "expired" in query.emit:
        yield Step("emit", "also partial matches that did not continue before their window closed")
    if "early" in query.emit:
        yield Step("emit", "on a stream, also each match when its last event arrives, as provisional")
