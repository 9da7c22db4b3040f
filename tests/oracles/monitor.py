"""The truth about a MONITOR query in batch: every pair of predictions, its half-planes one by one, in fractions.

How the definitions are read
----------------------------
- A prediction is what the declared columns of a row say. A row given twice is one prediction; a row whose key or time
  is NULL, or no (finite) number, is none. A prediction applies on [t, min(t + PERIOD, next t)), next t being the
  *strictly* later one of its key, of all rows of the stream: also of those that WHERE does not let through, and of
  those whose values are NULL.
- Two operands are every ordered pair of predictions; where both are of one stream, of two different keys.
- A conjunct of WHERE that names no value column asks the rows (keys, t, rates), and must be TRUE. Any other is a
  constraint: `a.v cmp K`, `ABS(a.u - b.v) cmp K`, or either with its sides changed. K is a constant; where it is NULL,
  or the value or rate of a column that a constraint names is, nothing matches.
- The instants (ta, tb) of a pair are those at which both apply, |ta - tb| <= WITHIN. A single prediction is treated as
  paired with itself at the same instant.
- A *form* is a value, or a difference of two. All constraints on one form leave a set of numbers, a union of
  intervals. Values are uniform within their errors around the prediction, and independent: of different columns, keys
  and instants.
- EXPECTED: the predicted forms lie in their sets. MUST: all constraints hold with probability 1. MAY: all hold
  together with a probability above 0. So what has measure zero does not count where there is an error: `<` is `<=`, a
  contact of MAY at the very end of its errors is none, and `<>` is always true; where the errors of a form are 0, all
  three are EXPECTED. Forms that share a value are taken together.
- The matching instants of a pair are a union of convex sets, with open and closed sides. Its connected parts are the
  regions; two sets are connected where one has a point in common with the closure of the other. A part that is empty
  because only an open end touches is no match.
- valid_from and valid_to are the infimum and supremum of max(ta, tb); the boundary is the closure of a region, its
  corners counter-clockwise from the least (ta, tb), the first one not repeated. It is None where a region is not one
  convex set, which takes MAY, an `ABS(...) >=`, and another constraint that shares one of its values.
- The probability is the supremum over the region, its inside included: exact (a Fraction) where all that is uncertain
  is one form, and else a float by search: never too high, and too low by at most SEARCH_ERROR where the product has one
  hill (`<=`, `<`); where it may have several (`>`, `>=`, `<>`) a lattice finds the two best, and tests look for others.
- A row is an answer where its probability is above 0, and at least THRESHOLD.

Numbers are the fractions that doubles are; times are in the unit of the time column, and TIMESTAMPs in seconds since
1970 UTC, but for the `t` of a prediction, which is as given.

What the language leaves open
-----------------------------
- Whether MUST and MAY ask for a probability (as here, and in the notes on the mathematics) or, as in the paper, for all
  and for some values within the errors, ends included. They differ for MUST with `<>`, for `<` at a contact, and where
  two parts of MAY touch in instants of probability 0.
- Two different predictions of one key and time: here both apply. NULL values: here they end the prediction before.
- Conditions on `t` and rates; constraints of any other shape, which are refused here (OR and NOT over values,
  `ABS(a.v)`, `a.v - b.v < K`, two columns of one operand), and the
  probability of forms that connect more than two values.
- The types of valid_from, valid_to and the boundary for INTEGER and TIMESTAMP times (microseconds cannot hold a third),
  the order of corners, and the boundary of regions that are not convex, or of no area.
- Keys of two different streams that are equal: here they are paired.
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
from tests.oracles.monitor_predictions import Prediction, predictions
from tests.oracles.monitor_regions import Form, Group, Region, comparable, connected, needed
from tests.untraced import untraced

Answer = dict[str, Any]
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


# ---------------------------------------------------------------- constraints


def constraints(query: BoundMonitor) -> tuple[list[Typed], dict[Form, Numbers]]:
    """The conjuncts about rows, and the numbers that the constraints leave for each form."""
    operands = {operand.name: place for place, operand in enumerate(query.operands)}
    about_rows: list[Typed] = []
    left: dict[Form, Numbers] = {}
    for condition in query.conditions:
        if not any(_is_value(node, query.operands) for node in walk(condition)):
            about_rows.append(condition)
            continue
        form, numbers = _constraint(condition, operands)
        left[form] = joined(common(left.get(form, ALL), numbers))
    return about_rows, left


def _is_value(node: Typed, operands: Sequence[BoundOperand]) -> bool:
    """Whether the node is a value column."""
    streams = [each.stream for each in operands if isinstance(node, Reference) and node.owner == each.name]
    return any(value.name.lower() == node.name for stream in streams for value in stream.values)


def _constraint(condition: Typed, operands: Mapping[str, int]) -> tuple[Form, Numbers]:
    """One constraint: what it is about, and of which numbers it is true."""
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
    return form, () if bound is None else satisfying(op, Fraction(bound), absolute)


def _form(tree: Typed, operands: Mapping[str, int]) -> Form:
    if isinstance(tree, Reference):
        return ((operands[tree.owner or ""], tree.name),)
    if isinstance(tree, Operation) and tree.op == "abs":
        (difference,) = tree.arguments
        if isinstance(difference, Operation) and difference.op == "-":
            columns = [each for each in difference.arguments if isinstance(each, Reference)]
            sides = sorted((operands[each.owner or ""], each.name) for each in columns)
            if [owner for owner, _ in sides] == [0, 1]:
                return tuple(sides)
    raise NotImplementedError(tree)


def together(forms: Iterable[Form]) -> list[list[Form]]:
    """The forms in groups: those that share a value, if only through others, are in one."""
    groups: list[list[Form]] = []
    for form in forms:
        own = [group for group in groups if any(set(form) & set(other) for other in group)]
        groups = [group for group in groups if group not in own]
        groups.append([*itertools.chain.from_iterable(own), form])
    return groups


# ---------------------------------------------------------------- answers


@untraced
def answers(query: BoundMonitor, rows: Rows, relations: Relations = NO_RELATIONS) -> list[Answer]:
    """The answers, by the predictions of the first operand, then the second, then time.

    Parameters
    ----------
    query : BoundMonitor
    rows : mapping from the name of a stream to its rows
        Times are numbers or datetimes.
    relations : mapping from the name of a relation, as declared, to its rows
    """
    found = []
    for pair, regions in matches(query, rows, relations):
        structs = {operand.label: dict(each.shown) for operand, each in zip(query.operands, pair, strict=False)}
        for region in sorted(regions, key=lambda region: (region.valid, region.boundary or ())):
            probability = region.probability
            if probability > 0 and probability >= query.threshold:
                (start, end), boundary = region.valid, {} if len(structs) == 1 else {"boundary": region.boundary}
                found.append({**structs, "valid_from": start, "valid_to": end, **boundary, "probability": probability})
    return found


def matches(
    query: BoundMonitor, rows: Rows, relations: Relations = NO_RELATIONS
) -> Iterator[tuple[tuple[Prediction, Prediction], list[Region]]]:
    """Every pair of predictions that WHERE lets through, with its regions; a single one is there twice."""
    about_rows, numbers = constraints(query)
    for pair in pairs(query, rows):
        bindings = {(each.name, 1): own.columns for each, own in zip(query.operands, pair, strict=False)}
        if all(holds(condition, bindings, relations) for condition in about_rows):
            yield pair, regions(query, pair, numbers)


def pairs(query: BoundMonitor, rows: Rows) -> Iterator[tuple[Prediction, Prediction]]:
    """Every pair of predictions, of two keys where they are of one stream; of one operand, each with itself."""
    given = {name.lower(): own for name, own in rows.items()}
    first, second = (each.stream for each in (query.operands[0], query.operands[-1]))
    some, others = (predictions(stream, given.get(stream.name.lower(), ())) for stream in (first, second))
    if len(query.operands) == 1:
        yield from zip(some, others, strict=True)
        return
    for a, b in itertools.product(some, others):
        if first.name.lower() != second.name.lower() or a.key != b.key:
            yield a, b


def groups_of(pair: tuple[Prediction, Prediction], numbers: Mapping[Form, Numbers]) -> tuple[Group, ...] | None:
    """What is asked of a pair, by forms that share values; None where one of the values is not known."""
    lines = {value: pair[value[0]].lines[value[1]] for form in numbers for value in form}
    if None in lines.values():
        return None
    return tuple(
        Group({form: numbers[form] for form in forms}, {value: lines[value] for form in forms for value in form})
        for forms in together(numbers)
    )


def regions(query: BoundMonitor, pair: tuple[Prediction, Prediction], numbers: Mapping[Form, Numbers]) -> list[Region]:
    """The connected sets of instants at which a pair matches."""
    groups = groups_of(pair, numbers)
    if groups is None:
        return []
    # A single prediction is compared with itself, at the same instant.
    within = Fraction(query.within) if len(query.operands) == 2 else Fraction(0)
    whole = comparable(*pair, within)
    choices = itertools.product(*(group.matching(query.semantics) for group in groups))
    pieces = [whole.cut(itertools.chain.from_iterable(chosen)) for chosen in choices]
    parts = connected([piece for piece in pieces if not piece.is_empty])
    return [Region(needed(part), groups) for part in parts]
