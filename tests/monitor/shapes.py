"""Hypothesis strategies for MONITOR: constraints of every shape, on one to three operands, errors of every kind.

Besides workbook text and rows, a case has what they mean, put together beside them: predictions with when they apply,
and constraints as numbers. Bounds lie around what some predictions say at some instant, so that there are answers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from tests.cases import QUERY, Case
from tests.monitor.definitions import EXPECTED, MAY, MUST, OPPOSITE, Constraint, QueryShape, Told, Value

Draw = Callable[[st.SearchStrategy[Any]], Any]

LABELS = ("a", "b", "c")
COLUMNS = ("x", "y")
COMPARATORS = ("<=", "<", ">=", ">", "<>", "=")
TIMES = (0.0, 1.0, 2.0, 0.5, 3.0, -1.0)
NUMBERS = (0.0, 1.0, 2.0, -1.0, 0.5, 3.0, -2.5)
RATES = (0.0, 1.0, -1.0, 0.5, -2.0, 0.75)
SPREADS = (0.0, 1.0, 0.5, 2.0, 0.25)
#: No more values than these hang together: the chance of many takes long.
MOST_TOGETHER = 3
#: A value, or one less another.
Form = tuple[Value, Value | None]
#: The pairs of operands that differences are of.
CHAIN, TRIANGLE = ((0, 1), (1, 2)), ((0, 1), (1, 2), (0, 2))


@dataclass(frozen=True)
class Errors:
    """How the error of each column is declared: a number, or a column of the row; and the spread of a normal law."""

    amounts: tuple[float | str, ...]
    normals: tuple[float, ...]

    def text(self) -> str:
        told = [
            f"{amount}{f' NORMAL {normal}' if normal else ''}"
            for amount, normal in zip(self.amounts, self.normals, strict=True)
        ]
        return (
            told[0]
            if len(set(told)) == 1
            else f"({', '.join(f'{c} = {each}' for c, each in zip(COLUMNS, told, strict=True))})"
        )


@dataclass(frozen=True)
class ShapedCase:
    """A case, and what it means.

    `told` are the predictions, and `query` is what is asked of a choice of them; `in_order` is whether the keys of a
    choice must be in order.
    """

    case: Case
    told: tuple[Told, ...]
    query: QueryShape
    in_order: bool

    def choices(self) -> Iterator[tuple[Told, ...]]:
        """Every choice of predictions of different keys."""
        for chosen in itertools.permutations(self.told, self.query.operands):
            keys = [each.key for each in chosen]
            if len(set(keys)) == len(keys) and (not self.in_order or keys == sorted(keys)):
                yield chosen

    def chosen(self, answer: dict[str, Any]) -> tuple[Told, ...]:
        """The predictions that an answer is about."""
        by_name = {(each.key, each.time): each for each in self.told}
        return tuple(by_name[answer[label]["id"], answer[label]["t"]] for label in LABELS[: self.query.operands])


@st.composite
def shaped_cases(
    draw: Draw,
    operands: Sequence[int] = (2, 1, 3, 2),
    semantics: Sequence[str] = (EXPECTED, MAY, MUST),
    comparators: Sequence[str] = COMPARATORS,
    windows: Sequence[float] = (0, 1, 0.5, 3, 0),
    normals: Sequence[float] = (0, 0, 0.5, 0, 2),
    clauses: str = "",
) -> ShapedCase:
    """A case; three operands have few predictions, for there are many choices of them."""
    count = draw(st.sampled_from(operands))
    meaning = draw(st.sampled_from(semantics))
    within = draw(st.sampled_from(windows)) if count > 1 else 0
    errors = draw(_errors(normals))
    period = draw(st.sampled_from([2, 4, 1.5] if count < 3 else [2, 1.5]))
    rows = draw(_rows(count, errors))
    told = _told(rows, errors, period)
    pairs = draw(st.sampled_from([CHAIN, TRIANGLE])) if count == 3 else ((0, 1),) if count == 2 else ()
    # With three operands and three instants, MAY takes no comparison that leaves two intervals.
    convex = count == 3 and within > 0 and meaning == MAY
    parts = draw(_constraints(told, count, pairs, within, comparators, convex, errors))
    in_order = count > 1 and draw(st.booleans())
    texts = [text for text, _ in parts]
    texts += [f"{one}.id < {two}.id" for one, two in itertools.pairwise(LABELS[:count])] if in_order else []
    labels = LABELS[:count]
    query = f"MONITOR {', '.join(labels)} FROM {', '.join(f'e AS {label}' for label in labels)}"
    query += f" WHERE {' AND '.join(texts)}{f' WITHIN {within}' if within else ''} SEMANTICS {meaning}{clauses}"
    values = ", ".join(f"{column} DOUBLE" for column in COLUMNS)
    workbook = f"CREATE STREAM e KEY (id INTEGER) VALUE ({values}) TIME t DOUBLE "
    workbook += f"MODEL PREDICTED ERROR {errors.text()} PERIOD {period};\nCREATE QUERY {QUERY} AS {query};\n"
    constraints = tuple(each for _, own in parts for each in own)
    return ShapedCase(
        Case(workbook, QUERY, {"e": rows}, {}), told, QueryShape(count, constraints, within, meaning), in_order
    )


@st.composite
def _errors(draw: Draw, normals: Sequence[float]) -> Errors:
    amounts = [draw(st.sampled_from([1, 0, "spread", 0.5, 2, "spread"])) for _ in COLUMNS]
    if draw(st.booleans()):
        amounts = [amounts[0]] * len(COLUMNS)
    spreads = tuple(draw(st.sampled_from(normals)) if amount else 0 for amount in amounts)
    return Errors(tuple(amounts), spreads if len(set(amounts)) > 1 else (spreads[0],) * len(COLUMNS))


@st.composite
def _rows(draw: Draw, operands: int, errors: Errors) -> list[dict[str, Any]]:
    most = {1: 5, 2: 5, 3: 4}[operands]
    rows: list[dict[str, Any]] = []
    for place in range(draw(st.integers(operands, most))):
        row: dict[str, Any] = {"id": place if place < operands else draw(st.integers(0, 2))}
        row["t"] = draw(st.sampled_from(TIMES))
        for column in COLUMNS:
            row[column], row[f"{column}_rate"] = draw(st.sampled_from(NUMBERS)), draw(st.sampled_from(RATES))
        if "spread" in errors.amounts:
            row["spread"] = draw(st.sampled_from(SPREADS))
        if all((row["id"], row["t"]) != (other["id"], other["t"]) for other in rows):
            rows.append(row)
    return rows


def _told(rows: Sequence[dict[str, Any]], errors: Errors, period: float) -> tuple[Told, ...]:
    found = []
    for row in rows:
        later = [other["t"] for other in rows if other["id"] == row["id"] and other["t"] > row["t"]]
        own = [row["spread"] if amount == "spread" else float(amount) for amount in errors.amounts]
        found.append(
            Told(
                row["id"], row["t"], min([row["t"] + period, *later]), {column: row[column] for column in COLUMNS},
                {column: row[f"{column}_rate"] for column in COLUMNS}, dict(zip(COLUMNS, own, strict=True)),
                dict(zip(COLUMNS, errors.normals, strict=True)),
            )
        )  # fmt: skip
    return tuple(found)


# ---------------------------------------------------------------- constraints


@st.composite
def _constraints(
    draw: Draw, told: Sequence[Told], operands: int, pairs: Sequence[tuple[int, int]], within: float,
    comparators: Sequence[str], convex: bool, declared: Errors,
) -> list[tuple[str, list[Constraint]]]:  # fmt: skip
    """Constraints as text, and what they mean: a difference for each pair of operands, and a few of any shape."""
    models = [next(each for each in told if each.key == operand) for operand in range(operands)]
    low = max(each.time for each in models)
    instants = [min(max(low + draw(st.sampled_from([0.0, 0.5])), each.time), each.end) for each in models]
    errors = {(j, column): max(each.errors[column] for each in told) for j in range(operands) for column in COLUMNS}
    certain = {column for column, amount in zip(COLUMNS, declared.amounts, strict=True) if amount == 0}
    center = {
        (j, column): float(models[j].at(column, np.array([instants[j]]))[0])
        for j in range(operands)
        for column in COLUMNS
    }
    forms: list[Form] = []
    columns = draw(st.sampled_from([("x", "x"), ("x", "y"), ("y", "y")] if operands == 2 else [("x", "x"), ("y", "y")]))
    for i, j in pairs:
        one, two = draw(st.sampled_from([(i, j), (j, i)]))
        forms.append(((one, columns[0]), (two, columns[1])))
    for _ in range(draw(st.integers(0 if pairs else 1, 2))):
        j = draw(st.integers(0, operands - 1))
        alone: list[Form] = [((j, "x"), None), ((j, "y"), None), ((j, "x"), (j, "y"))]
        alone += [((j, "y"), (1 - j, "y"))] if operands == 2 else []
        forms.append(draw(st.sampled_from(alone)))
    while _largest_group(forms) > MOST_TOGETHER:
        forms.pop()
    parts = []
    for plus, minus in forms:
        at = center[plus] - (center[minus] if minus is not None else 0.0)
        own = [plus] if minus is None else [plus, minus]
        is_certain = all(column in certain for _, column in own)
        error = sum(errors[value] for value in own)
        parts.append(draw(_compared(plus, minus, at, error, is_certain, comparators, convex)))
    return parts


def _largest_group(forms: Sequence[Form]) -> int:
    """How many values hang together, at most."""
    groups: list[set[Value]] = []
    for form in forms:
        own = {value for value in form if value is not None}
        for group in [each for each in groups if each & own]:
            groups.remove(group)
            own |= group
        groups.append(own)
    return max(map(len, groups))


@st.composite
def _compared(
    draw: Draw, plus: Value, minus: Value | None, at: float, error: float, is_certain: bool,
    comparators: Sequence[str], convex: bool,
) -> tuple[str, list[Constraint]]:  # fmt: skip
    """One form against a bound, in one of the ways in which that can be written."""
    first, second = (f"{LABELS[value[0]]}.{value[1]}" if value is not None else "" for value in (plus, minus))
    difference = f"{first} - {second}" if second else first
    slack = draw(st.sampled_from([0.5, 1.0, 0.0, error, error + 0.5, -error, -0.25, 2.0]))
    # A stream may say of some rows that they have no error; = is refused of what may have one.
    allowed = [op for op in comparators if op != "=" or is_certain]
    op = draw(st.sampled_from(allowed))
    shape = draw(st.sampled_from(["plain", "absolute", "absolute", "range", "not", "turned", "sides"]))
    if shape == "absolute":
        op = "<=" if convex and op not in ("<", "<=") else op
        bound = abs(at) + (-slack if op in (">", ">=") else 0.0 if op in ("=", "<>") else slack)
        return f"ABS({difference}) {op} {bound}", [Constraint(plus, minus, True, op, bound)]
    if shape == "range":
        low, high = at - abs(slack), at + 0.5
        text = draw(st.sampled_from([f"{difference} BETWEEN {low} AND {high}", f"{difference} IN [{low}, {high}]"]))
        return text, [Constraint(plus, minus, False, ">=", low), Constraint(plus, minus, False, "<=", high)]
    op = "<=" if convex and op == "<>" else op
    bound = at + (-slack if op in (">", ">=") else 0.0 if op in ("=", "<>") else slack)
    if shape == "not":
        if not (convex and op == "="):
            return f"NOT {difference} {OPPOSITE[op]} {bound}", [Constraint(plus, minus, False, op, bound)]
    if shape == "turned":
        mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
        return f"{bound} {mirrored} {difference}", [Constraint(plus, minus, False, op, bound)]
    if shape == "sides" and second:
        return f"{first} {op} {second} + {bound}", [Constraint(plus, minus, False, op, bound)]
    if second and draw(st.booleans()) and op not in ("=", "<>"):
        return f"{first} {op} {second}", [Constraint(plus, minus, False, op, 0.0)]
    return f"{difference} {op} {bound}", [Constraint(plus, minus, False, op, bound)]
