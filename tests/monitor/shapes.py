"""Hypothesis strategies for MONITOR: constraints of every shape on one to three operands, and errors of every kind.

Besides workbook text and rows, a case has the same predictions and constraints as Python objects. Bounds are near the
predicted values at some instant, so that there are answers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from tests.cases import QUERY, Case
from tests.monitor.definitions import EXPECTED, MAY, MUST, OPPOSITE, Constraint, Prediction, QueryShape, Value

Draw = Callable[[st.SearchStrategy[Any]], Any]

LABELS = ("a", "b", "c")
COLUMNS = ("x", "y")
COMPARATORS = ("<=", "<", ">=", ">", "<>", "=")
TIMES = (0.0, 1.0, 2.0, 0.5, 3.0, -1.0)
NUMBERS = (0.0, 1.0, 2.0, -1.0, 0.5, 3.0, -2.5)
RATES = (0.0, 1.0, -1.0, 0.5, -2.0, 0.75)
SPREADS = (0.0, 1.0, 0.5, 2.0, 0.25)
#: The most values that are connected by constraints, because the joint probability of many is slow.
MOST_TOGETHER = 3
#: A value, or a value and the one that is subtracted from it.
Form = tuple[Value, Value | None]
#: The pairs of operands that have differences.
CHAIN, TRIANGLE = ((0, 1), (1, 2)), ((0, 1), (1, 2), (0, 2))


@dataclass(frozen=True)
class Errors:
    """The declared error of each column: a number or a column of the row; and the NORMAL spread, 0 for uniform."""

    amounts: tuple[float | str, ...]
    normals: tuple[float, ...]

    def text(self) -> str:
        errors = [
            f"{amount}{f' NORMAL {normal}' if normal else ''}"
            for amount, normal in zip(self.amounts, self.normals, strict=True)
        ]
        if len(set(errors)) == 1:
            return errors[0]
        return f"({', '.join(f'{column} = {error}' for column, error in zip(COLUMNS, errors, strict=True))})"


@dataclass(frozen=True)
class ShapedCase:
    """A case, with its predictions and its query as Python objects.

    `ordered_keys` says whether the keys of a combination must be in ascending order.
    """

    case: Case
    predictions: tuple[Prediction, ...]
    query: QueryShape
    ordered_keys: bool

    def combinations(self) -> Iterator[tuple[Prediction, ...]]:
        """Every combination of predictions of different keys."""
        for chosen in itertools.permutations(self.predictions, self.query.operands):
            keys = [prediction.key for prediction in chosen]
            if len(set(keys)) == len(keys) and (not self.ordered_keys or keys == sorted(keys)):
                yield chosen

    def chosen(self, answer: dict[str, Any]) -> tuple[Prediction, ...]:
        """The predictions that an answer is about."""
        by_name = {(prediction.key, prediction.time): prediction for prediction in self.predictions}
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
    """A case; cases with three operands have few predictions, because there are many combinations."""
    count = draw(st.sampled_from(operands))
    meaning = draw(st.sampled_from(semantics))
    within = draw(st.sampled_from(windows)) if count > 1 else 0
    errors = draw(_errors(normals))
    period = draw(st.sampled_from([2, 4, 1.5] if count < 3 else [2, 1.5]))
    rows = draw(_rows(count, errors))
    predictions = _predictions_of(rows, errors, period)
    pairs = draw(st.sampled_from([CHAIN, TRIANGLE])) if count == 3 else ((0, 1),) if count == 2 else ()
    # With three operands and three instants, MAY does not support comparisons that allow two intervals.
    single_interval = count == 3 and within > 0 and meaning == MAY
    drawn_constraints = draw(_constraints(predictions, count, pairs, within, comparators, single_interval, errors))
    ordered_keys = count > 1 and draw(st.booleans())
    texts = [text for text, _ in drawn_constraints]
    texts += [f"{one}.id < {two}.id" for one, two in itertools.pairwise(LABELS[:count])] if ordered_keys else []
    labels = LABELS[:count]
    query = f"MONITOR {', '.join(labels)} FROM {', '.join(f'e AS {label}' for label in labels)}"
    query += f" WHERE {' AND '.join(texts)}{f' WITHIN {within}' if within else ''} SEMANTICS {meaning}{clauses}"
    values = ", ".join(f"{column} DOUBLE" for column in COLUMNS)
    workbook = f"CREATE STREAM e KEY (id INTEGER) VALUE ({values}) TIME t DOUBLE "
    workbook += f"MODEL PREDICTED ERROR {errors.text()} PERIOD {period};\nCREATE QUERY {QUERY} AS {query};\n"
    constraints = tuple(itertools.chain.from_iterable(constraints for _, constraints in drawn_constraints))
    return ShapedCase(
        Case(workbook, QUERY, {"e": rows}, {}),
        predictions,
        QueryShape(count, constraints, within, meaning),
        ordered_keys,
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
    for index in range(draw(st.integers(operands, most))):
        row: dict[str, Any] = {"id": index if index < operands else draw(st.integers(0, 2))}
        row["t"] = draw(st.sampled_from(TIMES))
        for column in COLUMNS:
            row[column], row[f"{column}_rate"] = draw(st.sampled_from(NUMBERS)), draw(st.sampled_from(RATES))
        if "spread" in errors.amounts:
            row["spread"] = draw(st.sampled_from(SPREADS))
        if all((row["id"], row["t"]) != (other["id"], other["t"]) for other in rows):
            rows.append(row)
    return rows


def _predictions_of(rows: Sequence[dict[str, Any]], errors: Errors, period: float) -> tuple[Prediction, ...]:
    result = []
    for row in rows:
        later = [other["t"] for other in rows if other["id"] == row["id"] and other["t"] > row["t"]]
        row_errors = [row["spread"] if amount == "spread" else float(amount) for amount in errors.amounts]
        result.append(
            Prediction(
                row["id"], row["t"], min([row["t"] + period, *later]), {column: row[column] for column in COLUMNS},
                {column: row[f"{column}_rate"] for column in COLUMNS}, dict(zip(COLUMNS, row_errors, strict=True)),
                dict(zip(COLUMNS, errors.normals, strict=True)),
            )
        )  # fmt: skip
    return tuple(result)


# ---------------------------------------------------------------- constraints


@st.composite
def _constraints(
    draw: Draw, predictions: Sequence[Prediction], operands: int, pairs: Sequence[tuple[int, int]], within: float,
    comparators: Sequence[str], single_interval: bool, declared: Errors,
) -> list[tuple[str, list[Constraint]]]:  # fmt: skip
    """Constraints as text and as objects: a difference for each pair of operands, and a few of any shape."""
    models = [
        next(prediction for prediction in predictions if prediction.key == operand) for operand in range(operands)
    ]
    low = max(prediction.time for prediction in models)
    instants = [
        min(max(low + draw(st.sampled_from([0.0, 0.5])), prediction.time), prediction.end) for prediction in models
    ]
    errors = {
        (j, column): max(prediction.errors[column] for prediction in predictions)
        for j in range(operands)
        for column in COLUMNS
    }
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
        form_values = [plus] if minus is None else [plus, minus]
        is_certain = all(column in certain for _, column in form_values)
        error = sum(errors[value] for value in form_values)
        parts.append(draw(_compared(plus, minus, at, error, is_certain, comparators, single_interval)))
    return parts


def _largest_group(forms: Sequence[Form]) -> int:
    """The size of the largest group of connected values."""
    groups: list[set[Value]] = []
    for form in forms:
        values = {value for value in form if value is not None}
        for group in [group for group in groups if group & values]:
            groups.remove(group)
            values |= group
        groups.append(values)
    return max(map(len, groups))


@st.composite
def _compared(
    draw: Draw, plus: Value, minus: Value | None, at: float, error: float, is_certain: bool,
    comparators: Sequence[str], single_interval: bool,
) -> tuple[str, list[Constraint]]:  # fmt: skip
    """A comparison of a form with a bound, in one of its spellings."""
    first, second = (f"{LABELS[value[0]]}.{value[1]}" if value is not None else "" for value in (plus, minus))
    difference = f"{first} - {second}" if second else first
    slack = draw(st.sampled_from([0.5, 1.0, 0.0, error, error + 0.5, -error, -0.25, 2.0]))
    # With an error column some rows may have error 0, but = is refused if the declared error is not 0.
    allowed = [op for op in comparators if op != "=" or is_certain]
    op = draw(st.sampled_from(allowed))
    shape = draw(st.sampled_from(["plain", "absolute", "absolute", "range", "not", "turned", "sides"]))
    if shape == "absolute":
        op = "<=" if single_interval and op not in ("<", "<=") else op
        bound = abs(at) + (-slack if op in (">", ">=") else 0.0 if op in ("=", "<>") else slack)
        return f"ABS({difference}) {op} {bound}", [Constraint(plus, minus, True, op, bound)]
    if shape == "range":
        low, high = at - abs(slack), at + 0.5
        text = draw(st.sampled_from([f"{difference} BETWEEN {low} AND {high}", f"{difference} IN [{low}, {high}]"]))
        return text, [Constraint(plus, minus, False, ">=", low), Constraint(plus, minus, False, "<=", high)]
    op = "<=" if single_interval and op == "<>" else op
    bound = at + (-slack if op in (">", ">=") else 0.0 if op in ("=", "<>") else slack)
    if shape == "not":
        if not (single_interval and op == "="):
            return f"NOT {difference} {OPPOSITE[op]} {bound}", [Constraint(plus, minus, False, op, bound)]
    if shape == "turned":
        mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
        return f"{bound} {mirrored} {difference}", [Constraint(plus, minus, False, op, bound)]
    if shape == "sides" and second:
        return f"{first} {op} {second} + {bound}", [Constraint(plus, minus, False, op, bound)]
    if second and draw(st.booleans()) and op not in ("=", "<>"):
        return f"{first} {op} {second}", [Constraint(plus, minus, False, op, 0.0)]
    return f"{difference} {op} {bound}", [Constraint(plus, minus, False, op, bound)]
