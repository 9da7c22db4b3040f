"""The plan of a PATTERN query, for `explain`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import NormalDist

from anabranch.binding.derived_streams import WHOLE_ARCHIVE
from anabranch.binding.per import PerEpisode, PerWindow
from anabranch.binding.words import count_of
from anabranch.language import nodes
from anabranch.language.unparse import unparse
from anabranch.pattern.analysis import PatternAnalysis
from anabranch.pattern.classes import UNSAFE
from anabranch.pattern.combining import CombinedAnalysis
from anabranch.pattern.interval_plans import by_plan, why_not_by_intervals
from anabranch.pattern.query import BoundGoal, Truth
from anabranch.pattern.safe_plan import Project, Seq
from anabranch.plan import Plan, Step

#: Why PER multiplies the cost.
_FORMS: dict[type, str] = {
    PerWindow: "the counter of PER",
    PerEpisode: "PER EPISODE: the probabilities, then whether it was true since the episode began",
}


def plan(analysis: PatternAnalysis) -> Plan:
    """Describe how a query is run."""
    query = analysis.query
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
        refused=analysis.objection,
        span=query.span,
    )


def _streams(analysis: PatternAnalysis) -> str:
    for stream in analysis.streams:
        if isinstance(stream.source, nodes.InferredSource) and stream.source.method in WHOLE_ARCHIVE:
            return f"{stream.name} is inferred by {stream.source.method}, which needs all readings; use METHOD JOINT"
    return "yes"


def _method(analysis: PatternAnalysis, planned: bool) -> str:
    query = analysis.query
    if query.bounded is not None:
        return "bounds that hold for every dependence; probability is the lower one"
    if analysis.weighted:
        fails = "" if analysis.surely_exact else "; the run fails if the joint state of a chain is too large"
        return f"exact, given the readings up to {_horizon(analysis)}{fails}"
    if analysis.surely_exact and query.method != "SAMPLING":
        return "exact"
    if query.method == "EXACT":
        return "exact; the run fails if the joint state of a chain is too large"
    sampled = f"sampling with accuracy {query.accuracy:g}, confidence {query.confidence:g} and seed {query.seed}"
    if query.method == "SAMPLING":
        return sampled
    if planned:
        return f"exact, by the safe plan; {sampled} if a leaf of the plan is too large"
    return f"exact if the joint state of a chain is small, else {sampled}"


def _horizon(analysis: PatternAnalysis) -> str:
    """Up to when readings count for the answer at an instant."""
    sources = [stream.source for stream in analysis.streams]
    lags = [source.argument for source in sources if isinstance(source, nodes.InferredSource)]
    written = [unparse(lag) for lag in lags if isinstance(lag, nodes.Duration)]
    instant = "the end of each window" if isinstance(analysis.query.per, PerWindow) else "each instant"
    return f"{', '.join(written)} after {instant}" if written else instant


def _routing(analysis: PatternAnalysis) -> str:
    combined = isinstance(analysis, CombinedAnalysis) and analysis.cascade is None
    complete_groups = isinstance(analysis.query.per, PerEpisode) or combined
    if analysis.by_weights and not complete_groups:
        routed_by = list(analysis.chain)
    else:
        routed_by = [analysis.chain[index] for _, index in analysis.group_by if index < len(analysis.chain)]
    if isinstance(analysis, CombinedAnalysis) and analysis.in_one_bucket:
        routed_by = []
    if not routed_by:
        return "all rows go to one bucket" + ("" if analysis.chain else ": there is one chain")
    # Variables that begin with an underscore were added for wildcards of the query.
    named = [name for name in routed_by if not name.startswith("_")]
    return f"rows are routed by {', '.join(named) or 'their key'}; each binding is a separate chain"


def _cost(analysis: PatternAnalysis, planned: bool) -> str:
    if analysis.query.bounded is not None:
        return "time grows with the instants of each chain, times the automaton states and letters, without a kernel"
    cost = _cost_of_chain(analysis, planned)
    if analysis.repeated:
        cost = f"for each binding of {', '.join(analysis.repeated)} that the data can make true: {cost}"
    per = analysis.query.per
    if isinstance(per, PerWindow | PerEpisode):
        times = per.at_least + 1 if isinstance(per, PerWindow) else 3
        return f"{cost}; all of it times {times} for {_FORMS[type(per)]}"
    if isinstance(analysis, CombinedAnalysis):
        cost = f"{cost}; {_cost_of_combining(analysis)}"
    early = "; in each micro-batch, the state is copied and the rows that wait for the watermark are processed too"
    return f"{cost}{early}" if analysis.query.early else cost


def _cost_of_combining(analysis: CombinedAnalysis) -> str:
    """What a combination costs beyond a query: the states of the operands multiply."""
    rows = "; one row for each group and instant" if analysis.combination.true_by_default else ""
    if not analysis.regular:
        return f"the sets of partial results of the operands multiply{rows}"
    machines = [operand.kleene for operand in analysis.operands]
    if analysis.cascade is not None:
        machines.append(tuple(goal.kleene for goal in analysis.cascade.outer.goals))
    bits = sum(len(kleene) - 1 + sum(kleene) for kleene in machines)
    passes = (
        ""
        if analysis.cascade is not None or len(analysis.group_by) == len(analysis.chain)
        else ", for each set of operands that are true together"
    )
    return f"an automaton state is one of each operand: at most {2**bits:,} states{passes}{rows}"


def _cost_of_chain(analysis: PatternAnalysis, planned: bool) -> str:
    worlds = _worlds(analysis.query.accuracy, analysis.query.confidence)
    sampling = (
        f"time grows with the rows, times the sampled worlds (about {worlds:,}), 64 per machine word; memory grows "
        "with the worlds, times the partial results"
    )
    if analysis.query.within is not None:
        sampling += " of the time in WITHIN"
    if analysis.query.method == "SAMPLING":
        return sampling
    if planned:
        return (
            "time grows with the square of the number of instants, times the keys and their table rows per instant; "
            "memory grows with the rows"
        )
    if analysis.query.within is not None:
        return (
            "exact: time grows with the rows, times the sets of partial results with their ages, which are at most the "
            f"instants within {analysis.query.within:g} to the power of the goals before the last; sampling: {sampling}"
        )
    if not analysis.regular:
        return (
            "exact: time grows with the rows, times the sets of partial results and the product of the values of the "
            f"MARKOV keys of a chain (at most 1,048,576 weights); sampling: {sampling}"
        )
    if not analysis.markov:
        return "time grows with the rows; memory grows with the chains: one weight per automaton state"
    if analysis.single:
        return "time grows with the table rows; memory grows with the chains: one weight per value and automaton state"
    return (
        "time and memory grow with the product of the values of the MARKOV keys of a chain; "
        "above 1,048,576 weights, an archive is sampled and a stream needs METHOD SAMPLING"
    )


def _worlds(accuracy: float, confidence: float) -> int:
    """How many worlds are sampled, to two digits."""
    worlds = (NormalDist().inv_cdf((1 + confidence) / 2) / (2 * accuracy)) ** 2
    return int(float(f"{worlds:.1e}"))


def _steps(analysis: PatternAnalysis, planned: bool) -> Iterator[Step]:
    yield Step("read", ", ".join(f"{stream.name} ({stream.model.value})" for stream in analysis.streams))
    yield Step("route", "check rows, quarantine invalid ones, pack the others into one packet per bucket")
    for stream in analysis.streams:
        if isinstance(stream.source, nodes.InferredSource):
            source = stream.source
            yield Step("infer", f"{stream.name} from {source.stream} by {_inference(source)}, for each key")
            yield Step("model", _model(source))
    if isinstance(analysis, CombinedAnalysis):
        yield from _operand_steps(analysis)
    goals = count_of(len(analysis.tests), "goal")
    yield Step("match", f"test {goals} once per distinct key and value")
    if analysis.bound:
        if analysis.repeated:
            names = ", ".join(analysis.repeated)
            yield Step("bind", f"one chain for each binding of {names}; they share events and automaton")
        if len(analysis.repeated) < len(analysis.bound):
            yield Step("bind", f"divide answers by {', '.join(analysis.tests[-1].binds)}, which the last goal binds")
    if analysis.plan is not None:
        if analysis.classification == UNSAFE:
            yield Step("plan", "if it is too large and no key of the data feeds both sides of a seq:")
        for line in plan_tree(analysis.plan, analysis):
            yield Step("plan", line)
        refusal = why_not_by_intervals(analysis)
        if refusal is not None:
            yield Step("plan", f"cannot be computed from intervals: {refusal}")
    if analysis.query.bounded is not None:
        yield Step("carry", "bound the probability of each automaton state from instant to instant")
    elif analysis.query.method == "SAMPLING":
        yield Step("carry", "track the set of partial results in sampled worlds")
    elif analysis.query.within is not None:
        yield Step("carry", "track the set of partial results with their ages, as an automaton or in sampled worlds")
    elif analysis.regular:
        shape = "joint" if analysis.markov and not analysis.single else "single" if analysis.markov else "independent"
        yield Step("carry", f"run the {shape} kernel over the instants of each chain")
    elif not planned:
        yield Step("carry", "track the set of partial results, as an automaton or in sampled worlds")
        if analysis.last_values:
            yield Step(
                "carry", "on a stream: each event ends the results before it, so their last values are the state"
            )
    if not analysis.by_automaton and analysis.query.method is None:
        yield Step("carry", "on a stream: every possible state of a chain while these are few, else sampled worlds")
    group = ", ".join(name for name, _ in analysis.group_by)
    any_chain = "1 - prod(1 - p) over the chains" if analysis.chain else "not needed: there is one chain"
    if isinstance(analysis, CombinedAnalysis) and analysis.cascade is None and analysis.chain:
        any_chain = "an operand is true if it is so for any chain"
    if isinstance(analysis.query.per, PerWindow) and len(analysis.chain) > len(analysis.group_by):
        any_chain = "the counts of the chains are added"
    if analysis.query.bounded is not None and analysis.chain:
        any_chain = "the highest lower bound of the chains, and the sum of their upper bounds"
    yield Step("combine", f"one answer per {group}" if group else any_chain)
    if analysis.query.early:
        yield Step("emit", "on a stream, also what is known about instants that are not complete, as provisional")


def _operand_steps(analysis: CombinedAnalysis) -> Iterator[Step]:
    """What is combined: the formula, then each operand with its class."""
    query = analysis.combination
    names = [operand.name for operand in query.operands]
    if analysis.cascade is not None:
        yield Step("lineage", "exact: one automaton for this query and those whose answers it reads")
        yield Step("formula", " THEN ".join(_goal_text(goal) for goal in analysis.cascade.outer.goals))
    else:
        given = "" if query.given is None else f" GIVEN {_formula_text(query.given, names)}"
        yield Step("formula", _formula_text(query.formula, names) + given)
    for operand in analysis.operands:
        goals = " THEN ".join(_goal_text(goal) for goal in operand.query.goals)
        yield Step("operand", f"{operand.query.name} ({operand.classification}): {goals}")


def _formula_text(formula: Truth, names: Sequence[str]) -> str:
    if isinstance(formula, int):
        return names[formula]
    parts = [
        _formula_text(part, names) if isinstance(part, int) or part.op == "NOT" else f"({_formula_text(part, names)})"
        for part in formula.parts
    ]
    return f"NOT {parts[0]}" if formula.op == "NOT" else f" {formula.op} ".join(parts)


def _inference(source: nodes.InferredSource) -> str:
    """The method, and what it costs where that is not clear."""
    by = "" if source.by is None else f" with a model for each {source.by}"
    if not isinstance(source.argument, nodes.Duration):
        return f"{source.method}{by}"
    lag = unparse(source.argument)
    return f"{source.method} {lag}{by}: each step looks {lag} ahead again, and answers come {lag} later"


def _model(source: nodes.InferredSource) -> str:
    """The model, and what its optional files change: a plan reads no files."""
    readings = "all readings" if source.method in WHOLE_ARCHIVE else "readings so far"
    return (
        f"{source.path}; if it has stages.csv, stays go through stages, and if it has tempering.csv, the likelihoods "
        f"of readings have its exponent for {readings}"
    )


def plan_tree(plan: Project, analysis: PatternAnalysis) -> Iterator[str]:
    """A safe plan as an indented tree of the operators projection, selection, seq and reg."""
    goals = analysis.query.goals

    def lines(node: Project, indent: str) -> Iterator[str]:
        if node.variables:
            yield f"{indent}projection of {', '.join(node.variables)}"
            indent += "  "
        part = node.part
        if isinstance(part, Seq):
            if any(test.accept is not None for test in analysis.tests_of(part.goal)):
                yield f"{indent}selection at goal {part.goal + 1}"
                indent += "  "
            yield f"{indent}seq"
            yield from lines(part.head, indent + "  ")
            yield f"{indent}  goal {part.goal + 1}: {_goal_text(goals[part.goal])}"
        else:
            yield f"{indent}reg: {' THEN '.join(_goal_text(goal) for goal in goals[: part.goals])}"

    return lines(plan, "")


def _goal_text(goal: BoundGoal) -> str:
    text = " OR ".join(
        f"{alternative.stream.name}({', '.join(unparse(term) for term in alternative.terms)})"
        for alternative in goal.alternatives
    )
    return f"{'NOT ' if goal.absent else ''}{f'({text})' if goal.others else text}{'+' if goal.kleene else ''}"
