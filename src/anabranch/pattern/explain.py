"""The plan of a PATTERN query, in words."""

from __future__ import annotations

from anabranch.errors import Finding, WorkbookError
from anabranch.language.bound import BoundPattern
from anabranch.pattern.analysis import EXTENDED, REGULAR, SAFE, UNSAFE, PatternAnalysis, analyse
from anabranch.plan import Plan, Step

_ARTICLE = {SAFE: "a safe", UNSAFE: "an unsafe"}


def plan(query: BoundPattern) -> Plan:
    """Analyse a query and say how it will be run, or why it will not.

    Raises
    ------
    WorkbookError
        If the query asks for something that means nothing, such as grouping by what it is not independent on.
    """
    analysis, findings = analyse(query)
    if findings:
        raise WorkbookError(findings)
    if analysis.classification not in (REGULAR, EXTENDED):
        return _plan(analysis, refused=_refusal(analysis))
    return _plan(analysis)


def _plan(analysis: PatternAnalysis, refused: Finding | None = None) -> Plan:
    query = analysis.query
    return Plan(
        query=query.name,
        kind="PATTERN",
        classification=analysis.classification,
        why=analysis.why,
        routing=_routing(analysis),
        cost=_cost(analysis),
        steps=_steps(analysis),
        refused=refused,
        span=query.span,
    )


def _refusal(analysis: PatternAnalysis) -> Finding:
    return Finding(
        "class-not-built",
        f"{analysis.query.name} is {_ARTICLE[analysis.classification]} query ({analysis.why[-1]}), "
        "which this version does not answer",
        "it answers regular and extended regular queries: share only variables that are keys of every goal",
        analysis.query.span,
    )


def _routing(analysis: PatternAnalysis) -> str:
    if not analysis.chain:
        return "one chain reads every event, so all rows meet in one partition"
    # Names that begin with an underscore were given to wildcards of the query.
    named = [name for name in analysis.chain if not name.startswith("_")]
    return f"rows are spread by {', '.join(named) or 'their key'}; each binding is a chain of its own"


def _cost(analysis: PatternAnalysis) -> str:
    if not analysis.markov:
        return "time grows with the rows; memory with the chains: one weight per automaton state"
    if analysis.single:
        return "time grows with the table rows; memory with the chains: one weight per value and automaton state"
    return (
        "time and memory grow with the product of the values of the Markov keys that feed one chain; "
        "beyond 1,048,576 weights the run is refused"
    )


def _steps(analysis: PatternAnalysis) -> tuple[Step, ...]:
    streams = ", ".join(f"{stream.name} ({stream.model.value})" for stream in analysis.streams)
    kernel = "joint" if analysis.markov and not analysis.single else "single" if analysis.markov else "independent"
    group = ", ".join(name for name, _ in analysis.group_by)
    combine = f"for each {group}" if group else "1 - prod(1 - p) over the chains" if analysis.chain else "none needed"
    return (
        Step("read", streams),
        Step("route", "check rows, set bad ones aside, pack the rest into one blob a bucket"),
        Step("match", f"{len(analysis.query.goals)} goals, symbols once per distinct key and value"),
        Step("carry", f"the {kernel} kernel over each chain's instants"),
        Step("combine", combine),
    )
