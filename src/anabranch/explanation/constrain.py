"""Explains answers of CONSTRAIN: the probabilities of its events, its conditions, and how tight its bounds are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations, product
from typing import Any, cast

import pyarrow as pa

from anabranch.binding.time_bounds import comparison, time_bound
from anabranch.binding.typed import Constant, Reference, Typed, conjuncts, with_references
from anabranch.binding.words import condition_text, count_of, duration_text
from anabranch.catalog import Catalog, Stream
from anabranch.columns.conditions import ARROW_TYPES
from anabranch.constrain.analysis import ConstrainAnalysis
from anabranch.constrain.functions import value_of_events
from anabranch.constrain.query import BoundConstrain, BoundCounted, mentions
from anabranch.explanation.case import Case, Row
from anabranch.explanation.explainer import Explainer, described, relation_pieces
from anabranch.explanation.explanation import History, Moment
from anabranch.explanation.identity import same
from anabranch.explanation.pieces import Piece
from anabranch.explanation.structs import condition_pieces, field_of, row_of, shifted
from anabranch.language import nodes
from anabranch.language.types import Type
from anabranch.planning.selection import Selection
from anabranch.transport.layout import Layout, require_distribution

#: How many bounds are listed, the tightest first.
BOUNDS = 5

#: A probability that differs less from 1 is 1, apart from rounding.
LEAST = 1e-9

Event = Mapping[str, Any]


class ConstrainExplainer(Explainer[BoundConstrain]):
    """Explains one answer of a CONSTRAIN."""

    def __init__(self, case: Case, answer: Mapping[str, Any]) -> None:
        super().__init__(_with_needed_rows(case, answer), answer)

    @classmethod
    def selections(
        cls, analysis: ConstrainAnalysis, layouts: Sequence[Layout], answer: Mapping[str, Any]
    ) -> list[Selection]:
        """The events of the answer; if others can change it, all events of its time."""
        query, t = analysis.query, answer["t"]
        if any(variable.is_awaited for variable in query.variables):
            bounds = (None, None)
            if math.isfinite(analysis.span):
                bounds = shifted(t, -2 * analysis.span), shifted(t, analysis.span)
            return [Selection(None, *bounds) for _ in layouts]
        return [
            Selection(tuple(
                {key: field_of(event, key) for key in (*layout.keys, layout.time)}
                for _, event in _events(query, layout, answer)
            ))
            for layout in layouts
        ]  # fmt: skip

    def identity_of(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The events of the answer, whatever their probabilities."""
        return {name: self._without_p(value) for name, value in super().identity_of(answer).items()}

    def _without_p(self, event: Any) -> Any:
        if isinstance(event, list):
            return [self._without_p(part) for part in event]
        parts = (layout.distribution for layout in self.case.context.layouts)
        names = {part.probability.lower() for part in parts if part is not None}
        if isinstance(event, Mapping):
            return {name: value for name, value in event.items() if name.lower() not in names}
        return event

    # ------------------------------------------------------------ evidence

    def pieces(self) -> list[Piece]:
        """The events that are uncertain, those that a NOT excludes, the conditions, and rows of relations."""
        pieces = [piece for stream in range(len(self.case.tables)) for piece in self._events(stream)]
        pieces.sort(key=lambda piece: (piece.t, piece.text))
        relations = relation_pieces(self.case, self.case.prepared.analysis)
        return [*pieces, *self._location_errors(), *condition_pieces(self.case), *relations]

    def _location_errors(self) -> Iterator[Piece]:
        """The error of the locations of each stream, which are then known."""
        for stream in self.query.streams:
            error = stream.location_error
            if error is not None:
                text = f"ERROR {error.source if error.amount is None else f'{error.amount:g}'} of {stream.name}"
                yield Piece("error", text, change=_with_known_locations(stream))

    def _events(self, stream: int) -> Iterator[Piece]:
        """The events of the answer, which are then certain; other events, which are then absent."""
        layout, table = self.case.context.layouts[stream], self.case.tables[stream]
        members = {row_of(table, event): label for label, event in _events(self.query, layout, self.row)}
        has_negated = any(variable.is_negated for variable in self.query.variables)
        for number, event in enumerate(table.to_pylist()):
            values = {name: value for name, value in event.items() if name != layout.time}
            if number in members:
                if layout.distribution is not None:
                    text = f"doubt about {members[number]}: {described(values)}"
                    yield Piece("probability", text, event[layout.time], change=_made_certain(stream, number))
            elif has_negated:
                yield Piece("event", f"{layout.name}: {described(values)}", event[layout.time], stream, None, (number,))

    # ------------------------------------------------------------ histories

    def histories(self) -> list[History]:
        """The configuration with its tightest bounds, and the event that most likely did not happen."""
        events = [
            Moment(field_of(event, layout.time), label, described({n: v for n, v in event.items() if n != layout.time}))
            for layout in self.case.context.layouts
            for label, event in _events(self.query, layout, self.row)
        ]
        events.sort(key=lambda moment: (moment.t, moment.subject))
        true = History(True, (*events, *self._tightest()), self.probability)
        if self.probability > 1 - LEAST:
            return [true, History(False, ())]
        return [true, self._not_true(events)]

    def _not_true(self, events: Sequence[Moment]) -> History:
        """The same events, except for the least certain one."""
        chances = dict(self._chances())
        located = self.probability / math.prod(chances.values())
        text = "the true locations, or an event that NOT excludes"
        if located < 1 - LEAST:
            chances[text] = located
        name = min(chances, key=lambda label: chances[label])
        p = math.prod(chance for label, chance in chances.items() if label != name) * (1 - chances[name])
        if name == text:
            moments = (*events, Moment(None, text, "do not satisfy the conditions"))
        else:
            moments = tuple(replace(m, event="did not happen") if m.subject == name else m for m in events)
        return History(False, moments, p, min(1.0, p / (1 - self.probability)))

    def _chances(self) -> Iterator[tuple[str, float]]:
        """The probability of each uncertain event of the answer."""
        for stream, layout in enumerate(self.case.context.layouts):
            if layout.distribution is None:
                continue
            table = self.case.tables[stream]
            for label, event in _events(self.query, layout, self.row):
                number = row_of(table, event)
                if number is not None:
                    yield label, float(table[layout.distribution.probability][number].as_py())

    def _tightest(self) -> Iterator[Moment]:
        """The bounds that the configuration comes nearest to."""
        located = _parts(self.query.located)
        # Where true locations are bounded, the bounds on the readings only follow from them.
        bounded = {compared[1] for compared in map(comparison, located) if compared is not None}
        others = [
            part
            for part in _parts(self.query.conditions)
            for compared in [comparison(part)]
            if compared is None or compared[1] not in bounded
        ]
        found = [bound for part in (*others, *located) for bound in [self._bound(part)] if bound is not None]
        for _, text, value in sorted(found, key=lambda bound: bound[0])[:BOUNDS]:
            yield Moment(None, "bound", f"{text}: it is {value}")

    def _bound(self, condition: Typed) -> tuple[float, str, str] | None:
        """How near the value of an inequality is to its bound, relative to the bound; the inequality; the value."""
        compared = comparison(condition)
        if compared is None or compared[0] in ("=", "<>"):
            return None
        _, left, right = compared
        limit = right.value if isinstance(right, Constant) else None
        if not isinstance(limit, int | float) or isinstance(limit, bool):
            return None
        values = self._values(left)
        if not values:
            return None
        value = min(values, key=lambda found: abs(limit - found))
        slack = abs(limit - value) / max(abs(limit), LEAST)
        by_owner = {variable.name: variable.stream for variable in self.query.present}
        time = next(iter(by_owner.values())).time.type
        if time is Type.TIMESTAMP and time_bound(by_owner, condition) is not None:
            text = f"{condition_text(left)} {compared[0]} {duration_text(limit, time)}"
            return slack, text, _readable_duration(value)
        return slack, condition_text(condition), f"{value:.6g}"

    def _values(self, tree: Typed) -> list[float]:
        """The values of an expression for all events of the configuration that it can mean."""
        by_owner = {variable.name: variable for variable in self.query.present}
        names = sorted(mentions(tree))
        if any(owner not in by_owner for owner, _ in names):
            return []
        owners = sorted({owner for owner, _ in names})
        choices = [_chosen(by_owner[owner], self.row, [m for o, m in names if o == owner]) for owner in owners]
        streams: dict[str, Stream] = {f"{owner}#{m}": by_owner[owner].stream for owner, m in names}
        renamed = with_references(tree, _with_mention)
        values = []
        for combination in product(*choices):
            events = {
                f"{owner}#{m}": event for owner, part in zip(owners, combination, strict=True) for m, event in part
            }
            columns = {
                f"{name}.{column.name.lower()}": pa.array([field_of(event, column.name)], ARROW_TYPES.get(column.type))
                for name, event in events.items()
                for column in streams[name].columns
                if any(field.lower() == column.name.lower() for field in event)
            }
            value = value_of_events(renamed, columns, streams, self.case.context.relations, 1)[0].as_py()
            if isinstance(value, int | float):
                values.append(float(value))
        return values


def _parts(conditions: Sequence[Typed]) -> list[Typed]:
    """The conditions that are joined by AND, each once."""
    return list(dict.fromkeys(part for whole in conditions for part in conjuncts(whole)))


def _readable_duration(seconds: float) -> str:
    """A duration with three digits, in the largest unit that it has."""
    units = ((86400, "day"), (3600, "hour"), (60, "minute"))
    size, unit = next(((size, unit) for size, unit in units if abs(seconds) >= size), (1, "second"))
    return count_of(float(f"{seconds / size:.3g}"), unit)


def _with_mention(reference: Reference) -> Reference:
    return replace(reference, owner=f"{reference.owner}#{reference.mention}", mention=1)


def _chosen(variable: BoundCounted, row: Row, numbers: Sequence[int]) -> list[list[tuple[int, Event]]]:
    """The events that the mentions of a variable can mean: one, or every pair of a set."""
    events = row[variable.label] if variable.is_set else [row[variable.label]]
    return [list(zip(numbers, chosen, strict=True)) for chosen in permutations(events, len(numbers))]


def _events(query: BoundConstrain, layout: Layout, row: Mapping[str, Any]) -> list[tuple[str, Event]]:
    """The events of an answer that are of one stream, with the variables; those of a set are numbered."""
    found: list[tuple[str, Event]] = []
    for variable in query.present:
        if variable.stream.name.lower() != layout.name.lower():
            continue
        events = row[variable.label]
        if variable.is_set:
            found += [(f"{variable.label} {number}", event) for number, event in enumerate(events, 1)]
        else:
            found.append((variable.label, events))
    return found


def _with_needed_rows(case: Case, answer: Mapping[str, Any]) -> Case:
    """The case with the events of the answer only, and their alternatives, if no others can change it."""
    query = cast("BoundConstrain", case.bound)
    if any(variable.is_awaited for variable in query.variables):
        return case
    tables = []
    for layout, table in zip(case.context.layouts, case.tables, strict=True):
        names = (*layout.keys, layout.time)
        wanted = [tuple(field_of(event, name) for name in names) for _, event in _events(query, layout, answer)]
        rows = zip(*(table[name].to_pylist() for name in names), strict=True)
        kept = [number for number, row in enumerate(rows) if any(all(map(same, row, found)) for found in wanted)]
        tables.append(table.take(pa.array(kept, pa.int64())))
    return case.with_tables(tuple(tables))


def _with_known_locations(stream: Stream) -> Callable[[Case], Case]:
    """Takes the readings of a stream as the true locations."""

    def change(case: Case) -> Case:
        declared = stream.declaration
        exact = replace(stream, declaration=replace(declared, error=(nodes.ErrorBound(None, 0),)))
        return replace(case, catalog=Catalog({**case.catalog.entries, stream.name.lower(): exact}))

    return change


def _made_certain(stream: int, number: int) -> Callable[[Case], Case]:
    """Makes an event certain: its alternatives, of the same key and time, get probability 0."""

    def change(case: Case) -> Case:
        layout, table = case.context.layouts[stream], case.tables[stream]
        name = require_distribution(layout).probability
        keys = list(zip(*(table[column].to_pylist() for column in (*layout.keys, layout.time)), strict=True))
        old = table[name].to_pylist()
        new = [float(row == number) if keys[row] == keys[number] else p for row, p in enumerate(old)]
        index = table.schema.get_field_index(name)
        changed = table.set_column(index, name, pa.array(new, pa.float64()))
        return case.with_tables((*case.tables[:stream], changed, *case.tables[stream + 1 :]))

    return change
