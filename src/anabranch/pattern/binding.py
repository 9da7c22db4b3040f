"""PATTERN: goals against their streams, conditions at the prefix where they apply."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from anabranch.binding.conditions import ConditionBinder, a_type, fitted, type_of
from anabranch.binding.queries import QueryBinder
from anabranch.binding.typed import Constant, Reference, Typed, conjuncts, references
from anabranch.binding.words import count_of
from anabranch.catalog import Column, Model, Stream
from anabranch.language import nodes
from anabranch.language.findings import Findings, listed, shown
from anabranch.language.types import Type, comparable
from anabranch.pattern.query import BoundGoal, BoundPattern
from anabranch.pattern.syntax import Goal, Pattern, Step, Term


@dataclass(slots=True)
class _Prefix:
    """What is known after some goals: the variables they export, by type, and those that a + keeps to itself."""

    exported: dict[str, Type] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Goal:
    """A goal while it is being bound; `stream` is None where it is not known."""

    stream: Stream | None
    terms: tuple[Term, ...]
    types: dict[str, Type]
    exports: set[str]
    filter: Typed | None = None
    shared: tuple[str, ...] = ()
    step_condition: Typed | None = None
    selections: list[Typed] = field(default_factory=list)


class Binder(QueryBinder):
    """Binds one PATTERN."""

    kind = "PATTERN"
    models = (Model.CERTAIN, Model.INDEPENDENT, Model.MARKOV)
    answer_columns = frozenset({"t", "probability", "lower", "upper", "method"})

    def bind(self, query: Pattern) -> BoundPattern | None:
        """The bound query, None where the findings say why there is none."""
        prefix = _Prefix()
        goals: list[_Goal] = []
        for step in query.steps:
            goals.append(self.goal(step, prefix))
            if step.where is not None:
                self.select(step.where, goals, prefix)
        if query.where is not None:
            self.select(query.where, goals, prefix)
        group_by = self.group_by(query, prefix)
        accuracy = self.ratio("ACCURACY", query.accuracy, 0.01, query.place("ACCURACY"), open_ends=True)
        confidence = self.ratio("CONFIDENCE", query.confidence, 0.99, query.place("CONFIDENCE"), open_ends=True)
        if query.seed is not None and query.seed < 0:
            message = f"SEED must be 0 or more, and is {query.seed}"
            self.findings.add("out-of-range", message, query.place("SEED"), "write a whole number such as 7")
        bound = [_finished(step, goal) for step, goal in zip(query.steps, goals, strict=True)]
        if self.findings:
            return None
        return BoundPattern(
            self.query.name, tuple(goal for goal in bound if goal), group_by,
            self.threshold, accuracy, confidence, query.seed or 0, self.query.span,
        )  # fmt: skip

    # ------------------------------------------------------------ goals

    def goal(self, step: Step, prefix: _Prefix) -> _Goal:
        """One goal, with its filter and its +; `prefix` is extended by what it exports."""
        node = step.goal
        stream = self.stream(node.stream, node.span)
        columns = self.columns(stream, node)
        terms = tuple(self.term(term, column) for term, column in zip(node.terms, columns, strict=True))
        types = self.variable_types(terms, columns, prefix)
        shared = self.shared(step, types, prefix)
        goal = _Goal(stream, terms, types, set(types) if step.kleene is None else set(shared), shared=shared)
        if node.filter is not None:
            why = "a filter [...] uses its goal's own variables; ask about others in WHERE"
            goal.filter = self.bound(node.filter, types, dict.fromkeys(prefix.exported, why))
        condition = step.kleene.condition if step.kleene else None
        if condition is not None and not _is_true(condition):
            goal.step_condition = self.bound(condition, prefix.exported | types, prefix.kept)
        for name in types:
            if name in goal.exports:
                prefix.exported[name] = _merged(prefix.exported.get(name), types[name])
                prefix.kept.pop(name, None)
            elif name not in prefix.exported:
                sharing = f"+<{', '.join([*shared, name])} | ...>"
                why = f"{node.stream}(...)+ does not export it; share it with {sharing}, or ask in its condition"
                prefix.kept[name] = why
        return goal

    def columns(self, stream: Stream | None, node: Goal) -> tuple[Column, ...]:
        """The column of each term; unknown ones where the goal does not fit its stream."""
        if stream is not None:
            columns = (*stream.keys, *stream.values)
            if len(columns) == len(node.terms):
                return columns
            names = f"KEY ({_names(stream.keys)})" + (f", VALUE ({_names(stream.values)})" if stream.values else "")
            terms = count_of(len(columns), "term")
            message = f"{stream.name} takes {terms}, {names}, and this goal has {len(node.terms)}"
            self.findings.add("arity", message, node.span, "write _ for a column that does not matter")
        return tuple(Column("") for _ in node.terms)

    def term(self, term: Term, column: Column) -> Term:
        """A term with its variable in lower case, or its constant in the form of the column."""
        if isinstance(term, nodes.Variable):
            return replace(term, name=term.name.lower())
        if isinstance(term, nodes.Wildcard):
            return term
        if term.value is None:
            message = "NULL stands for no event, so no event has it"
            self.findings.add("null-term", message, term.span, "write _ for any value")
            return term
        constant = fitted(Constant(term.value, type_of(term.value), term.span), column.type)
        if not comparable(constant.type, column.type):
            message = f"column {column.name} is {a_type(column.type)}, and this is {a_type(constant.type)}"
            self.findings.add("type-mismatch", message, term.span, f"write {a_type(column.type)}")
        return nodes.Literal(constant.value, span=term.span) if isinstance(constant, Constant) else term

    def variable_types(self, terms: tuple[Term, ...], columns: tuple[Column, ...], prefix: _Prefix) -> dict[str, Type]:
        """The type of each variable of a goal; one that joins columns of different types is a finding."""
        types: dict[str, Type] = {}
        for term, column in zip(terms, columns, strict=True):
            if isinstance(term, nodes.Variable):
                known = types.get(term.name, prefix.exported.get(term.name, Type.UNKNOWN))
                if not comparable(known, column.type):
                    here = f"column {column.name} is {a_type(column.type)}"
                    message = f"variable {shown(term.name)} is {a_type(known)}, and {here}"
                    self.findings.add("type-mismatch", message, term.span, "use another variable")
                types[term.name] = _merged(known, column.type)
        return types

    def shared(self, step: Step, types: dict[str, Type], prefix: _Prefix) -> tuple[str, ...]:
        """The variables V of `+<V | cond>`, checked against the goal and against what is bound earlier."""
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
                self.findings.add("name-twice", message, variable.span, "keep one of them")
            else:
                shared[name] = None
        bound_earlier = prefix.exported.keys() - shared.keys()
        for term in step.goal.terms:
            if isinstance(term, nodes.Variable) and term.name.lower() in bound_earlier:
                message = f"variable {shown(term.name)} is bound earlier, and this + does not share it"
                hint = f"share it: +<{', '.join([*shared, term.name])} | ...>, or rename it"
                self.findings.add("not-shared", message, term.span, hint)
        return tuple(shared)

    # ------------------------------------------------------------ conditions

    def bound(self, node: nodes.Expr, types: dict[str, Type], unusable: dict[str, str]) -> Typed | None:
        """A condition over these variables."""
        scope = _VariableScope(types, unusable, self.findings)
        return ConditionBinder(self.catalog, self.findings, scope).condition(node)

    def select(self, node: nodes.Expr, goals: list[_Goal], prefix: _Prefix) -> None:
        """Give each conjunct to the first goal whose prefix exports all its variables."""
        for conjunct in conjuncts(self.bound(node, prefix.exported, prefix.kept)):
            missing = {name for _, name in references(conjunct)}
            for goal in goals:
                missing -= goal.exports
                if not missing:
                    goal.selections.append(conjunct)
                    break

    def group_by(self, query: Pattern, prefix: _Prefix) -> tuple[tuple[str, str], ...]:
        """The grouping variables, as written and in lower case."""
        scope = _VariableScope(prefix.exported, prefix.kept, self.findings)
        grouped = self.distinct((variable.name, variable.span) for variable in query.group_by)
        for variable in query.group_by:
            scope.variable(variable)
        return tuple((label, name) for name, (label, _) in grouped.items())


class _VariableScope:
    """The names in a PATTERN's condition: variables, some of them known but not usable here."""

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
            hint = f"the variables are {listed(self.types, 'and')}" if self.types else "no goal binds a variable here"
            self.findings.unknown("variable", node.name, self.types, node.span, hint)
        return None

    def attribute(self, node: nodes.Attribute) -> Reference | None:
        message = f"a PATTERN has variables, and {shown(f'{node.owner}.{node.name}')} is a column"
        self.findings.add("not-a-variable", message, node.span, "write the variable that stands in the goal")
        return None

    def event(self, node: nodes.Variable, spatial: bool) -> Reference | None:
        return self.variable(node)


def _merged(known: Type | None, new: Type) -> Type:
    """The type of a variable that stands for columns of both types."""
    if known is None or known is Type.UNKNOWN:
        return new
    return Type.DOUBLE if {known, new} == {Type.INTEGER, Type.DOUBLE} else known


def _is_true(node: nodes.Expr) -> bool:
    """Whether the condition is the word TRUE, which asks nothing."""
    return isinstance(node, nodes.Literal) and node.value is True


def _names(columns: tuple[Column, ...]) -> str:
    return ", ".join(column.name for column in columns)


def _finished(step: Step, goal: _Goal) -> BoundGoal | None:
    if goal.stream is None:
        return None
    return BoundGoal(
        goal.stream, goal.terms, goal.filter, step.kleene is not None, goal.shared,
        goal.step_condition, tuple(goal.selections), step.span,
    )  # fmt: skip
