"""Binds PATTERN queries: goals to their streams, and each condition to the first prefix that binds its variables."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

from anabranch.binding.bound import BoundQuery
from anabranch.binding.conditions import ConditionBinder
from anabranch.binding.per import PerEpisode, PerKeys, PerWindow
from anabranch.binding.query_binder import Inner, QueryBinder
from anabranch.binding.type_rules import a_type, coerce_string, constant_hint, type_of
from anabranch.binding.typed import Constant, Reference, Typed, conjuncts, references
from anabranch.binding.words import count_of
from anabranch.catalog import Column, Model, Stream
from anabranch.language import nodes
from anabranch.language.findings import Findings, listed, shown
from anabranch.language.limits import MAX_GOALS
from anabranch.language.types import Type, comparable
from anabranch.pattern.cascade_binding import cascade_of
from anabranch.pattern.combination import Combination
from anabranch.pattern.combination_binding import Combining
from anabranch.pattern.query import BoundCombination, BoundGoal, BoundPattern
from anabranch.pattern.syntax import Goal, Pattern, Step, Term

#: The highest n of AT LEAST n TIMES: the state has a weight for each count.
MOST_TIMES = 1000
#: The options of METHOD; without it, answers are exact if that is cheap enough.
METHODS = ("EXACT", "SAMPLING")
#: The options of EMIT.
EMITTED = ("EARLY",)


@dataclass(slots=True)
class _Prefix:
    """The variables after some goals: the exported ones with their types, and the hint for each one that a + hides."""

    exported: dict[str, Type] = field(default_factory=dict)
    hidden: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Alternative:
    """One alternative of a goal; `stream` is None if it is unknown."""

    stream: Stream | None
    terms: tuple[Term, ...]
    types: dict[str, Type]
    filter: Typed | None = None


@dataclass(slots=True)
class _Goal:
    """A goal while it is being bound."""

    alternatives: list[_Alternative]
    exports: set[str] = field(default_factory=set)
    shared: tuple[str, ...] = ()
    step_condition: Typed | None = None
    selections: list[Typed] = field(default_factory=list)


class Binder(QueryBinder):
    """Binds one PATTERN."""

    kind = "PATTERN"
    models = (Model.CERTAIN, Model.INDEPENDENT, Model.MARKOV)
    answer_columns = frozenset({"t", "probability", "lower", "upper", "method"})
    takes_per = (PerWindow, PerEpisode, PerKeys)

    #: The combinations that name this query, from the outermost; none of them can be an operand.
    path: tuple[str, ...] = ()

    def bind(self, body: Pattern | Combination) -> BoundPattern | None:
        """Return the bound query, or None if there are findings."""
        return self.pattern(body) if isinstance(body, Pattern) else self.combination(body)

    def as_one(self, bound: BoundQuery, inner_of: Inner) -> BoundQuery | None:
        """A PATTERN and the PATTERN queries whose answers it reads, as one automaton."""
        if not isinstance(bound, BoundPattern) or isinstance(bound, BoundCombination):
            return None
        return cascade_of(bound, inner_of)

    def combination(self, body: Combination) -> BoundPattern | None:
        """Bind a combination of queries."""
        combining = Combining(self.query.name, self.catalog, self.findings, self.operand)
        accuracy, confidence = self.sampling_options(body)
        early = self.is_early(body)
        combination = combining.bind(body)
        if combination is None or self.findings:
            return None
        return replace(
            combination, threshold=self.threshold, accuracy=accuracy, confidence=confidence, seed=body.seed or 0,
            method=body.method, span=self.query.span, early=early,
        )  # fmt: skip

    def operand(self, query: nodes.CreateQuery) -> BoundPattern | None:
        """Bind an operand of a combination; None if it has errors, or is the combination itself."""
        path = (*self.path, self.query.name.lower())
        if query.name.lower() in path:
            return None  # the cycle is reported with the references between entries
        binder = Binder(query, self.catalog, self.findings)
        binder.path = path
        body: Any = query.body  # a PATTERN, as `Combining` has checked
        return binder.bind(body)

    def pattern(self, body: Pattern) -> BoundPattern | None:
        """Bind a PATTERN."""
        prefix = _Prefix()
        goals: list[_Goal] = []
        for number, step in enumerate(body.steps):
            if step.absent:
                goals.append(self.absent(step, prefix, body.steps[number + 1 :]))
            else:
                goals.append(self.goal(step, prefix))
            if step.where is not None:
                self.select(step.where, goals, prefix)
        if body.where is not None:
            self.select(body.where, goals, prefix)
        self.check_size(body)
        group_by = self.group_by(body, prefix)
        within = self.duration("WITHIN", body.within, positive=True)
        accuracy, confidence = self.sampling_options(body)
        early = self.is_early(body)
        self.check_times()
        bound = [_finished(step, goal) for step, goal in zip(body.steps, goals, strict=True)]
        if self.findings:
            return None
        return BoundPattern(
            self.query.name, tuple(goal for goal in bound if goal), group_by,
            self.threshold, accuracy, confidence, body.seed or 0, body.method, within, self.query.span, early,
        )  # fmt: skip

    def sampling_options(self, body: Pattern | Combination) -> tuple[float, float]:
        """The accuracy and the confidence of sampling; report invalid options."""
        accuracy = self.ratio("ACCURACY", body.accuracy, 0.01, body.clause_span("ACCURACY"), open_ends=True)
        confidence = self.ratio("CONFIDENCE", body.confidence, 0.99, body.clause_span("CONFIDENCE"), open_ends=True)
        if body.seed is not None and body.seed < 0:
            message = f"SEED must be 0 or more, not {body.seed}"
            self.findings.add("out-of-range", message, body.clause_span("SEED"), "write an integer such as 7")
        if body.method is not None and body.method not in METHODS:
            span, hint = body.clause_span("METHOD"), f"use {listed(METHODS)}"
            self.findings.unknown("METHOD option", body.method, METHODS, span, hint)
        return accuracy, confidence

    def is_early(self, body: Pattern | Combination) -> bool:
        """Whether a query has EMIT EARLY; report another option of EMIT, and PER."""
        span = body.clause_span("EMIT")
        for word in body.emit:
            if word not in EMITTED:
                self.findings.unknown("EMIT option", word, EMITTED, span, f"use {listed(EMITTED)}")
        if body.emit and self.per is not None:
            message = "EMIT EARLY gives provisional answers at instants, but rows of PER are made of final ones"
            self.findings.add("early-per", message, span, "remove EMIT EARLY or PER")
        return "EARLY" in body.emit

    def check_times(self) -> None:
        """Report a number of times that the automaton cannot count to."""
        if isinstance(self.per, PerWindow) and self.per.at_least > MOST_TIMES:
            message = f"AT LEAST must be at most {MOST_TIMES:,} in a PATTERN, not {self.per.at_least:,}"
            self.findings.add("out-of-range", message, self.query.clause_span("PER"), "use shorter windows")

    def check_size(self, body: Pattern) -> None:
        """Report more alternatives than the symbols of an event can tell apart."""
        alternatives = [goal for step in body.steps for goal in step.alternatives]
        if len(alternatives) > MAX_GOALS:
            message = f"this pattern has {len(alternatives)} goals, with those after OR (at most {MAX_GOALS})"
            hint = "use a filter instead of OR: r(x)[x IN ('a', 'b')]"
            self.findings.add("too-many", message, alternatives[MAX_GOALS].span, hint)

    # ------------------------------------------------------------ goals

    def goal(self, step: Step, prefix: _Prefix) -> _Goal:
        """Bind one goal, with its filters and its +, and add its exported variables to `prefix`."""
        node = step.goal
        alternatives, types = self.alternatives(step, prefix)
        shared = self.shared(step, types, prefix)
        goal = _Goal(alternatives, set(types) if step.kleene is None else set(shared), shared)
        condition = step.kleene.condition if step.kleene else None
        if condition is not None and not _is_true(condition):
            goal.step_condition = self.bound(condition, prefix.exported | types, prefix.hidden)
        for name in types:
            if name in goal.exports:
                prefix.exported[name] = _merged(prefix.exported.get(name), types[name])
                prefix.hidden.pop(name, None)
            elif name not in prefix.exported:
                sharing = f"+<{', '.join([*shared, name])} | ...>"
                hint = f"{node.stream}(...)+ does not export it; share it with {sharing}, or move the condition there"
                prefix.hidden[name] = hint
        return goal

    def alternatives(self, step: Step, prefix: _Prefix) -> tuple[list[_Alternative], dict[str, Type]]:
        """Bind the alternatives of a goal, which have the same variables; also the types of these."""
        alternatives: list[_Alternative] = []
        types: dict[str, Type] = {}
        for node in step.alternatives:
            alternative = self.alternative(node, _Prefix(prefix.exported | types))
            if alternatives and alternative.types.keys() != types.keys():
                name = min(alternative.types.keys() ^ types.keys())
                message = f"the goals of an OR bind the same variables, but only one of these has {shown(name)}"
                self.findings.add("not-in-both", message, node.span, "use the variable in both, or write _ for it")
            alternatives.append(alternative)
            types |= alternative.types
        return alternatives, types

    def alternative(self, node: Goal, prefix: _Prefix) -> _Alternative:
        """Bind the stream, the terms and the filter of a goal."""
        stream = self.stream(node.stream, node.span)
        columns = self.columns(stream, node)
        terms = tuple(self.term(term, column) for term, column in zip(node.terms, columns, strict=True))
        alternative = _Alternative(stream, terms, self.variable_types(terms, columns, prefix))
        if node.filter is not None:
            hint = "a filter [...] can only use the variables of its goal; move the condition to WHERE"
            alternative.filter = self.bound(node.filter, alternative.types, dict.fromkeys(prefix.exported, hint))
        return alternative

    def absent(self, step: Step, prefix: _Prefix, later: tuple[Step, ...]) -> _Goal:
        """Bind the goal of a NOT; report a variable that only a later goal binds."""
        alternatives, types = self.alternatives(step, prefix)
        bound_later = {
            term.name.lower()
            for other in later
            if not other.absent
            for goal in other.alternatives
            for term in goal.terms
            if isinstance(term, nodes.Variable)
        }
        for term in step.goal.terms:
            if not isinstance(term, nodes.Variable) or term.name.lower() in prefix.exported:
                continue
            if term.name.lower() in bound_later:
                message = f"variable {shown(term.name)} is bound by a goal after this NOT, so it has no value here"
                self.findings.add("bound-later", message, term.span, "use another name, or write _ for any value")
            prefix.hidden.setdefault(term.name.lower(), "no event has matched the goal of a NOT, so it binds nothing")
        return _Goal(alternatives)

    def columns(self, stream: Stream | None, node: Goal) -> tuple[Column, ...]:
        """Return the column of each term; report a wrong number of terms, and return unnamed columns then."""
        if stream is not None:
            columns = (*stream.keys, *stream.values)
            if len(columns) == len(node.terms):
                return columns
            names = f"KEY ({_names(stream.keys)})" + (f", VALUE ({_names(stream.values)})" if stream.values else "")
            terms = count_of(len(node.terms), "term")
            message = f"stream {stream.name} has {count_of(len(columns), 'column')}, {names}, but this goal has {terms}"
            self.findings.add("arity", message, node.span, "write one term per column, _ for any value")
        return tuple(Column("") for _ in node.terms)

    def term(self, term: Term, column: Column) -> Term:
        """A term with its variable in lower case, or its constant converted to the type of the column."""
        if isinstance(term, nodes.Variable):
            return replace(term, name=term.name.lower())
        if isinstance(term, nodes.Wildcard):
            return term
        if term.value is None:
            message = "NULL means that there is no event, so it matches nothing"
            self.findings.add("null-term", message, term.span, "write _ for any value")
            return term
        constant = coerce_string(Constant(term.value, type_of(term.value), term.span), column.type)
        if not comparable(constant.type, column.type):
            message = f"column {column.name} is {a_type(column.type)}, but this is {a_type(constant.type)}"
            self.findings.add("type-mismatch", message, term.span, constant_hint(constant, column.name, column.type))
        return nodes.Literal(constant.value, span=term.span) if isinstance(constant, Constant) else term

    def variable_types(self, terms: tuple[Term, ...], columns: tuple[Column, ...], prefix: _Prefix) -> dict[str, Type]:
        """Return the type of each variable of a goal; report a variable used for columns of different types."""
        types: dict[str, Type] = {}
        for term, column in zip(terms, columns, strict=True):
            if isinstance(term, nodes.Variable):
                known = types.get(term.name, prefix.exported.get(term.name, Type.UNKNOWN))
                if not comparable(known, column.type):
                    column_type = f"column {column.name} is {a_type(column.type)}"
                    message = f"variable {shown(term.name)} is {a_type(known)}, but {column_type}"
                    self.findings.add("type-mismatch", message, term.span, "use another variable")
                types[term.name] = _merged(known, column.type)
        return types

    def shared(self, step: Step, types: dict[str, Type], prefix: _Prefix) -> tuple[str, ...]:
        """Return the variables V of `+<V | cond>`; report those that are not in the goal, and bound ones not in V."""
        if step.kleene is None:
            return ()
        shared: dict[str, None] = {}
        for variable in step.kleene.shared:
            name = variable.name.lower()
            if name not in types:
                hint = f"the variables are {listed(types, 'and')}" if types else "the goal has no variables"
                self.findings.unknown("variable", variable.name, types, variable.span, hint, f"{step.goal.stream}(...)")
            elif name in shared:
                message = f"{shown(variable.name)} is shared twice"
                self.findings.add("name-twice", message, variable.span, "remove one of them")
            else:
                shared[name] = None
        bound_earlier = prefix.exported.keys() - shared.keys()
        for term in step.goal.terms:
            if isinstance(term, nodes.Variable) and term.name.lower() in bound_earlier:
                message = f"variable {shown(term.name)} is already bound, but this + does not share it"
                hint = f"share it with +<{', '.join([*shared, term.name])} | ...>, or rename it"
                self.findings.add("not-shared", message, term.span, hint)
        return tuple(shared)

    # ------------------------------------------------------------ conditions

    def bound(self, node: nodes.Expr, types: dict[str, Type], unusable: dict[str, str]) -> Typed | None:
        """Bind a condition over these variables; `unusable` has the hints for variables not allowed here."""
        scope = _VariableScope(types, unusable, self.findings)
        return ConditionBinder(self.catalog, self.findings, scope).condition(node)

    def select(self, node: nodes.Expr, goals: list[_Goal], prefix: _Prefix) -> None:
        """Assign each conjunct to the first goal whose prefix exports all its variables."""
        for conjunct in conjuncts(self.bound(node, prefix.exported, prefix.hidden)):
            missing = {name for _, name in references(conjunct)}
            for goal in goals:
                missing -= goal.exports
                if not missing:
                    goal.selections.append(conjunct)
                    break

    def group_by(self, body: Pattern, prefix: _Prefix) -> tuple[tuple[str, str], ...]:
        """The grouping variables, as written and in lower case."""
        scope = _VariableScope(prefix.exported, prefix.hidden, self.findings)
        grouped = self.distinct((variable.name, variable.span) for variable in body.group_by)
        for variable in body.group_by:
            scope.variable(variable)
        for label, span in grouped.values():
            if body.emit and label.lower() == "status":
                message = f"the answers of EMIT EARLY already have a column {shown(label)}"
                self.findings.add("answer-column", message, span, "use another name")
        return tuple((label, name) for name, (label, _) in grouped.items())


class _VariableScope:
    """The names in a condition of a PATTERN: variables, some of which may not be usable here."""

    functions: Collection[str] = ("ABS",)

    def __init__(self, types: dict[str, Type], unusable: dict[str, str], findings: Findings) -> None:
        self.types = types
        self.unusable = unusable
        self.findings = findings

    def variable(self, node: nodes.Variable) -> Reference | None:
        name = node.name.lower()
        if name in self.types:
            return Reference(None, name, self.types[name], span=node.span)
        if name in self.unusable:
            message = f"variable {shown(node.name)} cannot be used here"
            self.findings.add("not-exported", message, node.span, self.unusable[name])
        else:
            hint = f"the variables are {listed(self.types, 'and')}" if self.types else "no variables are bound here"
            self.findings.unknown("variable", node.name, self.types, node.span, hint)
        return None

    def attribute(self, node: nodes.Attribute) -> Reference | None:
        message = f"PATTERN conditions use variables, but {shown(f'{node.owner}.{node.name}')} is a column"
        self.findings.add("not-a-variable", message, node.span, "write the variable of this column in the goal")
        return None

    def event(self, node: nodes.Variable, spatial: bool) -> Reference | None:
        return self.variable(node)


def _merged(known: Type | None, new: Type) -> Type:
    """The type of a variable that is used for columns of both types."""
    if known is None or known is Type.UNKNOWN:
        return new
    return Type.DOUBLE if {known, new} == {Type.INTEGER, Type.DOUBLE} else known


def _is_true(node: nodes.Expr) -> bool:
    """Whether the condition is the constant TRUE."""
    return isinstance(node, nodes.Literal) and node.value is True


def _names(columns: tuple[Column, ...]) -> str:
    return ", ".join(column.name for column in columns)


def _finished(step: Step, goal: _Goal) -> BoundGoal | None:
    alternatives = [
        BoundGoal(alternative.stream, alternative.terms, alternative.filter, span=node.span)
        for node, alternative in zip(step.alternatives, goal.alternatives, strict=True)
        if alternative.stream is not None
    ]
    if not alternatives:
        return None
    return replace(
        alternatives[0],
        kleene=step.kleene is not None,
        shared=goal.shared,
        step_condition=goal.step_condition,
        selections=tuple(goal.selections),
        absent=step.absent,
        others=tuple(alternatives[1:]),
        span=step.span,
    )
