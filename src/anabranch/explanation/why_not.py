"""Explains why a query has no answers, or none of a key: what it fails at, as found by runs of weaker queries.

A weaker query lacks a goal, a condition, a bound or a row. If it has answers and the query has none, the query fails at
what it lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import pyarrow as pa

from anabranch.binding.words import count_of
from anabranch.errors import AnabranchError, TooManyAnswers
from anabranch.explanation.case import Case, Row
from anabranch.explanation.explainer import described, literal
from anabranch.explanation.identity import same
from anabranch.explanation.pieces import without_rows
from anabranch.explanation.structs import condition_pieces, is_valid, shifted
from anabranch.explanation.weaker_patterns import failing_goal
from anabranch.language import nodes
from anabranch.pattern.analysis import PatternAnalysis
from anabranch.pattern.query import BoundCombination, BoundPattern
from anabranch.planning.selection import Selection
from anabranch.relate.query import SIMPLE
from anabranch.text import probability_text
from anabranch.transport.layout import Layout

#: Up to so many rows, each is left out to see whether it prevents an answer.
MOST_ROWS = 100

#: By how much a WITHIN is lengthened to see whether it is too short.
LONGER = 1000

Change = Callable[[Case], Case]


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why a query has no answers of some keys.

    Attributes
    ----------
    query, keys : the name of the query, and the keys in one line
    reasons : why there are none, the first that applies first
    facts : what else is known: rows, quarantined rows, the watermark
    """

    query: str
    keys: str
    reasons: tuple[str, ...]
    facts: tuple[str, ...]

    def __str__(self) -> str:
        title = f"{self.query}: {self.keys}" if self.keys else self.query
        reasons = self.reasons or ("no single condition, bound or row is the reason",)
        return "\n".join([title, *(f"  - {line}" for line in (*reasons, *self.facts))])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


class Searched:
    """The answers of a query, and of weaker ones, that have some keys."""

    def __init__(self, keys: Mapping[str, Any]) -> None:
        self._keys = keys

    def answers(self, case: Case) -> list[Row]:
        """The answers of a query that have the keys."""
        return [row for row in case.answers() if all(_has(row, name, value) for name, value in self._keys.items())]

    def has_answers(self, case: Case) -> bool:
        """Whether there are some; a query with too many has."""
        try:
            return bool(self.answers(case))
        except TooManyAnswers:
            return True


def why_not(case: Case, keys: Mapping[str, Any], threshold: float, facts: Sequence[str]) -> WhyNot:
    """Explain why a query has no answers.

    Parameters
    ----------
    case : the query with the rows of the keys, without THRESHOLD
    keys : the wanted values of columns of the answers, or of fields of their structs
    threshold : THRESHOLD of the query
    facts : what is known from the inputs
    """
    searched = Searched(in_answers(case, keys))
    answers = searched.answers(case)
    if answers:
        reasons = [_of_answers(answers, threshold)]
    else:
        reasons = [*_empty_inputs(case), *_failures(case, searched)]
    return WhyNot(case.query.name, described(keys), tuple(reasons), tuple(facts))


def _of_answers(answers: Sequence[Row], threshold: float) -> str:
    best = max(answers, key=lambda row: row["probability"])
    p = probability_text(best["probability"])
    where = described({name: value for name, value in best.items() if name in ("t", "valid_from", "t_from")})
    at = f" ({where})" if where else ""
    if best["probability"] < threshold:
        return f"THRESHOLD {threshold:g} is above the highest probability, {p}{at}"
    n_answers = sum(row["probability"] >= threshold for row in answers)
    return f"it has {count_of(n_answers, 'answer')}; the highest probability is {p}{at}"


def _empty_inputs(case: Case) -> Iterator[str]:
    for layout, table in zip(case.context.layouts, case.tables, strict=True):
        if not table.num_rows:
            yield f"{layout.name} has no valid rows of these keys"


def _failures(case: Case, searched: Searched) -> Iterator[str]:
    """What the query fails at."""
    query = case.bound
    if isinstance(query, BoundCombination):
        names = ", ".join(operand.name for operand in query.operands)
        yield f"it combines {names}; ask why one of these has no answers"
        return
    if isinstance(query, BoundPattern):
        yield from failing_goal(case, query, searched.answers)
    single = [text for text, change in _weaker(case) if searched.has_answers(change(case))]
    yield from (f"it has answers without {text}" for text in single)
    if not single:
        together = _together(case, searched)
        if together:
            yield f"it has answers without all of: {'; '.join(together)}"
    if query.kind == "RELATE":
        yield from _relations(case, searched)
    yield from _preventing_rows(case, searched)


def _weaker(case: Case) -> Iterator[tuple[str, Change]]:
    """Each condition or bound of a query that can be left out."""
    for piece in condition_pieces(case):
        if piece.change is not None:
            yield piece.text, piece.change
    within = getattr(case.query.declaration.body, "within", None)
    # The goals of a PATTERN are tried without WITHIN, too.
    if isinstance(within, nodes.Duration) and case.bound.kind != "PATTERN":
        longer = nodes.Duration(within.amount * LONGER, within.unit, span=within.span)
        yield "WITHIN", lambda case: case.with_body(within=longer)
    if getattr(case.query.declaration.body, "semantics", None) is not None:
        yield "SEMANTICS (with MAY)", lambda case: case.with_body(semantics="MAY")


def _together(case: Case, searched: Searched) -> list[str]:
    """Conditions without which there are answers, if no single one is enough; none of them can be kept."""
    dropped: list[tuple[str, Change]] = []
    for text, change in _weaker(case):
        if is_valid(_changed(case, dropped), change):
            dropped.append((text, change))
    if not dropped or not searched.has_answers(_changed(case, dropped)):
        return []
    for part in list(dropped):
        fewer = [other for other in dropped if other is not part]
        if searched.has_answers(_changed(case, fewer)):
            dropped = fewer
    return [text for text, _ in dropped]


def _changed(case: Case, changes: Sequence[tuple[str, Change]]) -> Case:
    for _, change in changes:
        case = change(case)
    return case


def _relations(case: Case, searched: Searched) -> Iterator[str]:
    """The relations that hold instead, the most probable first."""
    found = []
    for relation in SIMPLE:
        answers = searched.answers(case.with_body(relations=(relation,)))
        if answers:
            found.append((max(row["probability"] for row in answers), relation))
    for p, relation in sorted(found, reverse=True)[:3]:
        yield f"{relation} holds with probability {probability_text(p)}"


def _preventing_rows(case: Case, searched: Searched) -> Iterator[str]:
    """Rows without which there are answers."""
    if sum(table.num_rows for table in case.tables) > MOST_ROWS:
        return
    for stream, (layout, table) in enumerate(zip(case.context.layouts, case.tables, strict=True)):
        for number, row in enumerate(table.to_pylist()):
            tables = (*case.tables[:stream], without_rows(table, [number]), *case.tables[stream + 1 :])
            if searched.has_answers(case.with_tables(tables)):
                yield f"it has answers without the row of {layout.name}: {described(row)}"


# ---------------------------------------------------------------- keys


def _has(row: Row, name: str, value: Any) -> bool:
    """Whether an answer has a value: in a column, or in a field of a struct or of the events of a set."""
    found = [part for field, part in row.items() if field.lower() == name.lower()]
    structs = [part for column in row.values() for part in (column if isinstance(column, list) else [column])]
    found += [
        part
        for struct in structs
        if isinstance(struct, Mapping)
        for field, part in struct.items()
        if field.lower() == name.lower()
    ]
    return any(same(part, value) for part in found)


def in_answers(case: Case, keys: Mapping[str, Any]) -> dict[str, Any]:
    """The keys as columns of answers: the answers of a PATTERN have grouping variables, not key columns."""
    analysis = case.prepared.analysis
    if not isinstance(analysis, PatternAnalysis):
        return dict(keys)
    names = _variables(analysis)
    groups = {name.lower() for name, _ in analysis.group_by}
    wanted = {names.get(name.lower(), name): value for name, value in keys.items()}
    return {name: value for name, value in wanted.items() if name.lower() in groups}


def _variables(analysis: PatternAnalysis) -> dict[str, str]:
    """The grouping variable of each key column, by its lower-case name."""
    return {
        stream.keys[positions[index]].name.lower(): name
        for stream, positions in zip(analysis.streams, analysis.chain_positions, strict=True)
        for name, index in analysis.group_by
        if index < len(analysis.chain)
    }


def selections_of(analysis: Any, layouts: Sequence[Layout], keys: Mapping[str, Any]) -> list[Selection]:
    """For each stream, the rows that answers with these keys can depend on."""
    wanted = {name.lower(): value for name, value in keys.items()}
    known = {name.lower() for layout in layouts for name in layout.keys}
    if isinstance(analysis, PatternAnalysis):
        groups = {name.lower(): column for column, name in _variables(analysis).items()}
        known |= groups.keys()
        wanted = {groups.get(name, name): value for name, value in wanted.items()}
    unknown = sorted(name for name in keys if name.lower() not in known)
    if unknown:
        raise AnabranchError(f"there is no key {unknown[0]}; the keys are {', '.join(sorted(known))}")
    columns = analysis.sampling.columns
    if columns is None or analysis.sampling.power > 1 or analysis.query.kind not in ("PATTERN", "SEQUENCE"):
        return [Selection() for _ in layouts]
    shared = {name.lower() for names in columns for name in names}
    selections = []
    for layout in layouts:
        equal = {name: wanted[name.lower()] for name in layout.keys if name.lower() in wanted.keys() & shared}
        selections.append(Selection((equal,) if equal else None))
    return selections


def quarantine_facts(rows: Sequence[Mapping[str, str]], keys: Mapping[str, Any]) -> Iterator[str]:
    """The quarantined rows of some keys, by reason; `rows` have stream, reason, and the row as JSON."""
    wanted = [literal(value) if isinstance(value, str) else str(value) for value in keys.values()]
    counts: dict[tuple[str, str], int] = {}
    samples: dict[tuple[str, str], str] = {}
    for row in rows:
        if all(value.strip("'") in row["row"] for value in wanted):
            group = row["stream"], row["reason"]
            counts[group] = counts.get(group, 0) + 1
            samples.setdefault(group, row["row"])
    for (stream, reason), count in sorted(counts.items(), key=lambda item: -item[1]):
        yield f"quarantined, {count_of(count, 'row')} of {stream}: {reason}, such as {samples[stream, reason]}"


def typed_keys(keys: Mapping[str, Any], layouts: Sequence[Layout]) -> dict[str, Any]:
    """The keys in the types of their columns; a command gives them as text."""
    types = {name.lower(): kind for layout in layouts for name, kind in zip(layout.keys, layout.key_types, strict=True)}
    typed = {}
    for name, value in keys.items():
        kind = types.get(name.lower())
        try:
            is_text = isinstance(value, str) and kind is not None and not pa.types.is_string(kind)
            typed[name] = pa.scalar(value).cast(kind).as_py() if is_text else value
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise AnabranchError(f"{name} is a column of {kind}, and {literal(value)} is not") from None
    return typed


def watermark_fact(newest: Mapping[str, Any], layouts: Sequence[Layout], tables: Sequence[pa.Table]) -> Iterator[str]:
    """Where the watermark of a stream is after all rows, and how many rows of the keys are not before it.

    `newest` has the newest time of each stream with rows, by its name.
    """
    marks = [
        shifted(newest[layout.name], -layout.lateness) for layout in layouts if newest.get(layout.name) is not None
    ]
    if len(marks) < len(layouts):
        return
    mark = min(marks)
    held = sum(
        t is not None and t >= mark
        for layout, table in zip(layouts, tables, strict=True)
        for t in table[layout.time].to_pylist()
    )
    rest = f"a stream has no answers yet about {count_of(held, 'row')} of these keys, which are not before it"
    yield f"the watermark of a stream is at {literal(mark)} after all rows; {rest if held else 'it is past these keys'}"
