"""The plan of a PATTERN query, in words."""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.binding.declarations import WHOLE_ARCHIVE
from anabranch.errors import WorkbookError
from anabranch.language import nodes
from anabranch.language.unparse import unparse
from anabranch.pattern.analysis import PatternAnalysis, analyse, by_plan, objections, why_not_by_intervals
from anabranch.pattern.query import BoundGoal, BoundPattern
from anabranch.pattern.safe_plan import Project, Seq
from anabranch.plan import Plan, Step

_GROWING_PAST = "what it must remember grows with the past; run it over an archive"


def plan(query: BoundPattern) -> Plan:
    """Analyse a query and say how it will be run.

    Raises
    ------
    WorkbookError
        If the query asks for something that means nothing, such as grouping by what it is not independent on.
    """
    analysis = analyse(query)
    findings = objections(analysis)
    if findings:
        raise WorkbookError(findings)
    planned = by_plan(analysis) is not None
    return Plan(
        query=query.name,
        kind="PATTERN",
        classification=analysis.classification,
        why=analysis.why,
        method=_method(analysis, planned),
        routing=_routing(analysis),
        cost=_cost(analysis, planned),
        steps=tuple(_steps(analysis, planned)),
        streams=_streams(analysis),
        span=query.span,
    )


def _streams(analysis: PatternAnalysis) -> str:
    if not analysis.can_stream:
        return _GROWING_PAST
    for stream in analysis.streams:
        if isinstance(stream.source, nodes.InferredSource) and stream.source.method in WHOLE_ARCHIVE:
            return f"{stream.name} is inferred by {stream.source.method}, which needs all readings; FILTER does not"
    return "yes"


def _method(analysis: PatternAnalysis, planned: bool) -> str:
    if analysis.surely_exact:
        return "exact"
    query = analysis.query
    sampled = f"sampling to within {query.accuracy:g} at confidence {query.confidence:g}, seed {query.seed}"
    if planned:
        return f"exact, by the safe plan; {sampled} should one of its leaves be too large"
    return f"exact where the joint state of a chain is small, else {sampled}"


def _routing(analysis: PatternAnalysis) -> str:
    if analysis.surely_exact:
        spread = list(analysis.chain)
    else:
        spread = [analysis.chain[place] for _, place in analysis.group_by]
    if not spread:
        return "all rows meet in one partition" if analysis.chain else "one chain reads every event, in one partition"
    # Names that begin with an underscore were given to wildcards of the query.
    named = [name for name in spread if not name.startswith("_")]
    return f"rows are spread by {', '.join(named) or 'their key'}; each binding is a chain of its own"


def _cost(analysis: PatternAnalysis, planned: bool) -> str:
    if planned:
        return (
            "time grows with the square of the instants, times the keys and their table rows at an instant; "
            "memory with the rows"
        )
    if not analysis.can_stream:
        return (
            "exact: with the rows, times the sets of partial results that can exist and the product of the values of "
            "the Markov keys of a chain, while both are small (at most 1,048,576 weights); sampling: with the rows, "
            "times the worlds drawn, 64 to a machine word (some 25,000 worlds at accuracy 0.01)"
        )
    if not analysis.markov:
        return "time grows with the rows; memory with the chains: one weight per automaton state"
    if analysis.single:
        return "time grows with the table rows; memory with the chains: one weight per value and automaton state"
    return (
        "time and memory grow with the product of the values of the Markov keys that feed one chain; "
        "beyond 1,048,576 weights an archive is sampled and a stream is refused"
    )


def _steps(analysis: PatternAnalysis, planned: bool) -> Iterator[Step]:
    yield Step("read", ", ".join(f"{stream.name} ({stream.model.value})" for stream in analysis.streams))
    yield Step("route", "check rows, set bad ones aside, pack the rest into one blob a bucket")
    for stream in analysis.streams:
        if isinstance(stream.source, nodes.InferredSource):
            yield Step("infer", f"{stream.name} from {stream.source.stream} by {stream.source.method}, key by key")
    yield Step("match", f"{len(analysis.query.goals)} goals, symbols once per distinct key and value")
    if analysis.plan is not None:
        for line in plan_tree(analysis.plan, analysis):
            yield Step("plan", line)
        refusal = why_not_by_intervals(analysis)
        if refusal is not None:
            yield Step("plan", f"not by intervals: {refusal}")
    if analysis.can_stream:
        shape = "joint" if analysis.markov and not analysis.single else "single" if analysis.markov else "independent"
        yield Step("carry", f"the {shape} kernel over each chain's instants")
    elif not planned:
        yield Step("carry", "the set of partial results, as an automaton or in sampled worlds")
    group = ", ".join(name for name, _ in analysis.group_by)
    some_chain = "1 - prod(1 - p) over the chains" if analysis.chain else "none needed"
    yield Step("combine", f"for each {group}" if group else some_chain)


def plan_tree(plan: Project, analysis: PatternAnalysis) -> Iterator[str]:
    """A safe plan as an indented tree of projection, selection, seq and reg."""
    goals = analysis.query.goals

    def lines(node: Project, indent: str) -> Iterator[str]:
        if node.variables:
            yield f"{indent}projection of {', '.join(node.variables)}"
            indent += "  "
        part = node.part
        if isinstance(part, Seq):
            if analysis.tests[part.goal].accept is not None:
                yield f"{indent}selection at goal {part.goal + 1}"
                indent += "  "
            yield f"{indent}seq"
            yield from lines(part.head, indent + "  ")
            yield f"{indent}  goal {part.goal + 1}: {_shown(goals[part.goal])}"
        else:
            yield f"{indent}reg: {' THEN '.join(_shown(goal) for goal in goals[: part.goals])}"

    return lines(plan, "")


def _shown(goal: BoundGoal) -> str:
    terms = ", ".join(unparse(term) for term in goal.terms)
    return f"{goal.stream.name}({terms}){'+' if goal.kleene else ''}"
