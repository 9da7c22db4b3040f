"""The oracle of MONITOR in batch: every pair of predictions, its half-planes one by one, in fractions.

Interpretation of the definitions
---------------------------------
- A prediction has the declared columns of a row. Duplicate rows are one prediction; a row whose key or time is NULL or
  not a (finite) number is none. A prediction applies on [t, min(t + PERIOD, next t)), where next t is the next
  *strictly* later time of its key among all rows of the stream, including rows that WHERE excludes and rows whose
  values are NULL.
- Two operands are every ordered pair of predictions; if both have the same stream, of two different keys.
- A conjunct of WHERE without value columns is a condition on the rows (keys, t, rates), and must be TRUE. Any other is
  a constraint: `e cmp K` or `ABS(e) cmp K`, or either with its sides exchanged. K is a constant, and e is linear in the
  values. Nothing matches if K is NULL, or the value or rate of a column in a constraint is.
- The instants (ta, tb) of a pair are those at which both apply, with |ta - tb| <= WITHIN. A single prediction is
  treated as a pair with itself at the same instant.
- A *form* is e: a sum of values, each times a factor; mostly a value, or the difference of two. All constraints on one
  form allow a set of numbers, a union of intervals. Values are uniform within their errors around the prediction.
  Different columns, keys and instants are independent.
- EXPECTED: the predicted forms are in their sets. MUST: all constraints hold with probability 1. MAY: all constraints
  hold together with a probability above 0. So sets of measure 0 do not matter if there is an error: `<` is `<=`, a
  contact at the end of the errors is no match of MAY, and `<>` is always true. If the errors of a form are 0, all three
  are EXPECTED. Forms that share a value have a joint probability.
- The matching instants of a pair are a union of convex sets, with open and closed sides. Its connected parts are the
  regions; two sets are connected if one has a point in common with the closure of the other. A part that is empty
  because it only touches an open end is no match.
- valid_from and valid_to are the infimum and supremum of max(ta, tb). The boundary is the closure of a region, its
  corners counter-clockwise from the smallest (ta, tb), the first one not repeated. It is None if a region is not one
  convex set, which requires MAY, an `ABS(...) >=`, and another constraint that shares one of its values.
- The probability is the supremum over the region, including its interior: exact (a Fraction) if only one form is
  uncertain, otherwise a float found by search. It is never too high. It is too low by at most SEARCH_ERROR if the
  product has one maximum (`<=`, `<`); if it may have several (`>`, `>=`, `<>`), a lattice finds the best two, and tests
  look for others.
- A row is an answer if its probability is above 0 and at least THRESHOLD.

Numbers are the decimals that are written: 0.1 is a tenth, although no double is. Times are in the unit of the time
column, and TIMESTAMPs in seconds since 1970 UTC, except for the `t` of a prediction, which is as in the row.

Not defined by the language
---------------------------
- Whether MUST and MAY refer to a probability (as here, and in the notes on the mathematics) or, as in the paper, to all
  and to some values within the errors, ends included. They differ for MUST with `<>`, for `<` at a contact, and if two
  parts of MAY touch in instants of probability 0.
- Two different predictions of one key and time: here both apply. NULL values: here they end the previous prediction.
- Conditions on `t` and rates; constraints of any other shape, which are refused here (OR and NOT over values), and the
  probability of several forms that connect more than two values.
- The types of valid_from, valid_to and the boundary for INTEGER and TIMESTAMP times (microseconds cannot represent
  1/3), the order of corners, and the boundary of regions that are not convex, or without area.
- Equal keys of two different streams: here they are paired.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from anabranch.binding.bound import BoundOperand
from anabranch.binding.typed import Operation, Reference, Typed, walk
from anabranch.monitor.query import BoundMonitor
from tests.oracles.conditions import Relations, evaluate, holds
from tests.oracles.events import NO_RELATIONS, Rows
from tests.oracles.monitor_numbers import ALL, Numbers, common, joined, satisfying
from tests.oracles.monitor_predictions import Prediction, predictions, written
from tests.oracles.monitor_regions import Form, Group, Region, comparable, connected, without_covered
from tests.untraced import untraced

Answer = dict[str, Any]
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


# ---------------------------------------------------------------- constraints


def constraints(query: BoundMonitor) -> tuple[list[Typed], dict[Form, Numbers]]:
    """The row conditions, and the numbers that the constraints allow for each form."""
    operands = {operand.name: number for number, operand in enumerate(query.operands)}
    row_conditions: list[Typed] = []
    allowed: dict[Form, Numbers] = {}
    for condition in query.conditions:
        if not any(is_value(node, query.operands) for node in walk(condition)):
            row_conditions.append(condition)
            continue
        form, numbers = _constraint(condition, operands)
        allowed[form] = joined(common(allowed.get(form, ALL), numbers))
    return row_conditions, allowed


def is_value(node: Typed, operands: Sequence[BoundOperand]) -> bool:
    """Whether the node is a value column."""
    streams = [operand.stream for operand in operands if isinstance(node, Reference) and node.owner == operand.name]
    return any(value.name.lower() == node.name for stream in streams for value in stream.values)


def _constraint(condition: Typed, operands: Mapping[str, int]) -> tuple[Form, Numbers]:
    """One constraint: its form, and the numbers for which it is true."""
    if not (isinstance(condition, Operation) and condition.op in _MIRRORED):
        raise NotImplementedError(condition)
    (left, right), op = condition.arguments, condition.op
    if not any(isinstance(node, Reference) for node in walk(left)):
        left, right, op = right, left, _MIRRORED[op]
    if any(isinstance(node, Reference) for node in walk(right)):
        raise NotImplementedError(condition)
    bound = evaluate(right, {}, {})
    absolute = isinstance(left, Operation) and left.op == "abs"
    form = _form(left, operands)
    if bound is None:
        return form, ()
    bound = written(bound)
    if form[0][1] < 0:  # one form for an expression and its negative
        form = tuple((value, -factor) for value, factor in form)
        op, bound = (op, bound) if absolute else (_MIRRORED[op], -bound)
    return form, satisfying(op, bound, absolute)


def _form(tree: Typed, operands: Mapping[str, int]) -> Form:
    """The factor of each value in a linear expression: by how much it changes if the value goes from 0 to 1.

    Exactly, because the factors in tests are short decimals.
    """
    if isinstance(tree, Operation) and tree.op == "abs":
        (tree,) = tree.arguments
    columns = {(node.owner, node.name) for node in walk(tree) if isinstance(node, Reference)}

    def value(one: tuple[str | None, str] | None) -> Fraction:
        bindings = {
            (owner, 1): {name: float((owner, name) == one) for other, name in columns if other == owner}
            for owner, _ in columns
        }
        return written(evaluate(tree, bindings, {}))

    form = {(operands[owner or ""], name): value((owner, name)) - value(None) for owner, name in columns}
    return tuple(sorted(form.items()))


def connected_forms(forms: Iterable[Form]) -> list[list[Form]]:
    """The groups of forms that are connected by shared values."""
    groups: list[list[Form]] = []
    for form in forms:
        values = dict(form).keys()
        connected_groups = [group for group in groups if any(values & dict(other).keys() for other in group)]
        groups = [group for group in groups if group not in connected_groups]
        groups.append([*itertools.chain.from_iterable(connected_groups), form])
    return groups


# ---------------------------------------------------------------- answers


@untraced
def answers(query: BoundMonitor, rows: Rows, relations: Relations = NO_RELATIONS) -> list[Answer]:
    """The answers, sorted by the predictions of the first operand, of the second, and by time.

    Parameters
    ----------
    query : BoundMonitor
    rows : mapping from the name of a stream to its rows
        Times are numbers or datetimes.
    relations : mapping from the name of a relation, as declared, to its rows
    """
    return [answer for answer, _ in answers_with_regions(query, rows, relations)]


def answers_with_regions(
    query: BoundMonitor, rows: Rows, relations: Relations = NO_RELATIONS
) -> Iterator[tuple[Answer, Region]]:
    """The answers, each with its region."""
    for pair, regions in matches(query, rows, relations):
        structs = {
            operand.label: dict(prediction.answer_struct)
            for operand, prediction in zip(query.operands, pair, strict=False)
        }
        for region in sorted(regions, key=lambda region: (region.valid, region.boundary or ())):
            probability = region.probability
            if probability > 0 and probability >= query.threshold:
                (start, end), boundary = region.valid, {} if len(structs) == 1 else {"boundary": region.boundary}
                yield (
                    {**structs, "valid_from": start, "valid_to": end, **boundary, "probability": probability},
                    region,
                )


def matches(
    query: BoundMonitor, rows: Rows, relations: Relations = NO_RELATIONS
) -> Iterator[tuple[tuple[Prediction, Prediction], list[Region]]]:
    """Every pair of predictions that satisfies WHERE, with its regions; a single prediction is paired with itself."""
    row_conditions, numbers = constraints(query)
    for pair in pairs(query, rows):
        bindings = {
            (operand.name, 1): prediction.columns for operand, prediction in zip(query.operands, pair, strict=False)
        }
        if all(holds(condition, bindings, relations) for condition in row_conditions):
            yield pair, regions(query, pair, numbers)


def pairs(query: BoundMonitor, rows: Rows) -> Iterator[tuple[Prediction, Prediction]]:
    """Every pair of predictions, of different keys if they have the same stream; for one operand, each with itself."""
    rows_by_stream = {name.lower(): stream_rows for name, stream_rows in rows.items()}
    first, second = (operand.stream for operand in (query.operands[0], query.operands[-1]))
    firsts, seconds = (predictions(stream, rows_by_stream.get(stream.name.lower(), ())) for stream in (first, second))
    if len(query.operands) == 1:
        yield from zip(firsts, seconds, strict=True)
        return
    for a, b in itertools.product(firsts, seconds):
        if first.name.lower() != second.name.lower() or a.key != b.key:
            yield a, b


def groups_of(pair: tuple[Prediction, Prediction], numbers: Mapping[Form, Numbers]) -> tuple[Group, ...] | None:
    """The constraints on a pair, by groups of forms; None if one of the values is unknown."""
    lines = {value: pair[value[0]].lines[value[1]] for form in numbers for value, _ in form}
    if None in lines.values():
        return None
    return tuple(
        Group({form: numbers[form] for form in forms}, {value: lines[value] for form in forms for value, _ in form})
        for forms in connected_forms(numbers)
    )


def regions(query: BoundMonitor, pair: tuple[Prediction, Prediction], numbers: Mapping[Form, Numbers]) -> list[Region]:
    """The connected sets of instants at which a pair matches."""
    groups = groups_of(pair, numbers)
    if groups is None:
        return []
    # A single prediction is compared with itself, at the same instant.
    within = written(query.within) if len(query.operands) == 2 else Fraction(0)
    comparable_instants = comparable(*pair, within)
    alternatives = itertools.product(*(group.matching(query.semantics) for group in groups))
    pieces = [comparable_instants.cut(itertools.chain.from_iterable(planes)) for planes in alternatives]
    parts = connected([piece for piece in pieces if not piece.is_empty])
    return [Region(without_covered(part), groups) for part in parts]
