"""Explains answers of SEQUENCE: the events of a match, the readings that it misses, and the loss rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from anabranch.arrays import F64
from anabranch.explanation.case import Case, Row
from anabranch.explanation.explainer import Explainer, described, relation_pieces
from anabranch.explanation.explanation import History, Moment
from anabranch.explanation.pieces import Piece
from anabranch.explanation.structs import elapsed, field_of, is_valid, row_of, shifted
from anabranch.planning.selection import Selection
from anabranch.sequence import syntax
from anabranch.sequence.analysis import SequenceAnalysis
from anabranch.sequence.densities import log_density
from anabranch.sequence.distributions import distribution_of
from anabranch.sequence.files import with_files
from anabranch.sequence.job import FIRST
from anabranch.sequence.query import BoundComponent, BoundDelay, BoundSequence
from anabranch.sequence.syntax import Miss, MissBy
from anabranch.transport.layout import Layout

#: The instants of a gap that are tried for each reading that is missing in it.
INSTANTS = 200

#: The smallest probability that is not a rounding error.
LEAST = 1e-9


class SequenceExplainer(Explainer[BoundSequence]):
    """Explains one answer of a SEQUENCE."""

    derived: ClassVar[frozenset[str]] = frozenset({"t", "t_start"})

    @classmethod
    def selections(
        cls, analysis: SequenceAnalysis, layouts: Sequence[Layout], answer: Mapping[str, Any]
    ) -> list[Selection]:
        """The events of the window of the match, of the same key if the query has one."""
        query, columns = analysis.query, analysis.sampling.columns
        earliest = None
        if query.within is not None and not query.has_open_start:
            earliest = shifted(answer["t"], -query.within)
        by_stream: dict[str, Mapping[str, object]] = {}
        if columns is not None:
            value = _key_value(analysis, answer)
            by_stream = {
                stream.name.lower(): {_spelled(layouts, stream.name, names[0]): value}
                for stream, names in zip(query.streams, columns, strict=True)
            }
        return [
            Selection((by_stream[layout.name.lower()],) if columns is not None else None, earliest, answer["t"])
            for layout in layouts
        ]

    # ------------------------------------------------------------ evidence

    def pieces(self) -> list[Piece]:
        """The events of the window, the loss rates, and rows of relations."""
        pieces = [piece for stream in range(len(self.case.tables)) for piece in self._events(stream)]
        pieces.sort(key=lambda piece: (piece.t, piece.text))
        return [*pieces, *self._losses(), *relation_pieces(self.case, self.case.prepared.analysis)]

    def _events(self, stream: int) -> Iterator[Piece]:
        layout, table = self.case.context.layouts[stream], self.case.tables[stream]
        components = {
            row: component
            for component in self.query.components
            if component.stream.name.lower() == layout.name.lower() and not component.run
            for row in [row_of(table, self.row.get(component.label))]
            if row is not None
        }
        for number, event in enumerate(table.to_pylist()):
            component = components.get(number)
            name = layout.name if component is None else component.label
            values = {field: value for field, value in event.items() if field != layout.time}
            what = "event" if component is None else "event of the match"
            yield Piece(
                what, f"{name}: {described(values)}", event[layout.time], stream, None, (number,),
                column=None if component is None else component.label,
            )  # fmt: skip

    def _losses(self) -> Iterator[Piece]:
        """Each loss rate; without it, no reading of its component is lost."""
        for item in _loss_rates(self.case):
            text = f"MISS BY {item.column}" if isinstance(item, MissBy) else f"MISS {item.component} {item.probability}"
            change = _without_miss(item)
            if is_valid(self.case, change):
                yield Piece("loss rate", text, change=change)

    def identity_without(self, pieces: Sequence[Piece]) -> dict[str, Any]:
        """The match in which the events that are left out were not read."""
        return self.identity_of(self.row) | {piece.column: None for piece in pieces if piece.column is not None}

    # ------------------------------------------------------------ histories

    def histories(self) -> list[History]:
        """What happened to the components that were not read, and what is most likely if the answer is not true."""
        query = with_files(self.query, self.case.context.folders[0])
        course = _Course(query, self.row, [layout.time for layout in self.case.context.layouts])
        unread = any(moment.event == NOT_READ for moment in course.moments())
        note = "A reading that is missing has its most likely time." if unread else ""
        true = History(True, tuple(course.moments()), self.probability, note=note)
        doubts = self._doubts()
        if self.probability > 1 - LEAST or not doubts:
            return [true, History(False, ())]
        name, q = min(doubts.items(), key=lambda doubt: doubt[1])
        p = math.prod([q_of for other, q_of in doubts.items() if other != name]) * (1 - q)
        moments = [_flipped(moment) if moment.subject in name.split(", ") else moment for moment in course.moments()]
        return [true, History(False, tuple(moments), p, min(1.0, p / (1 - self.probability)))]

    def _doubts(self) -> dict[str, float]:
        """What the match is uncertain about: components, and how probable it is that they are as the match says.

        The factors are those of the score: without the loss rate of a negative, its factor is 1.
        """
        doubts = {}
        rest = self.probability
        for component in self.query.components:
            if component.negative and component.may_miss:
                without = self._without_loss_of(component)
                if without > 0:
                    doubts[component.text] = min(1.0, self.probability / without)
                    rest /= doubts[component.text]
        missing = [c.text for c in self.query.components if not c.negative and self.row.get(c.label) is None]
        if missing:
            doubts[", ".join(missing)] = min(1.0, rest)
        return {name: q for name, q in doubts.items() if q < 1 - LEAST}

    def _without_loss_of(self, component: BoundComponent) -> float:
        """The probability if every reading of a component were read."""
        for item in _loss_rates(self.case):
            if isinstance(item, Miss) and item.component.lower() == component.name:
                return self.without([Piece("loss rate", "", change=_without_miss(item))])
        return 0.0

    def notes(self) -> list[str]:
        """What is not explained."""
        if self.query.has_runs:
            return ["the events of a run (y+) are left out one by one; the run without one of them is another match"]
        return []


NOT_READ, ABSENT = "happened, but was not read", "did not happen"


def _flipped(moment: Moment) -> Moment:
    """The opposite: a component that did not happen, or did."""
    return Moment(None, moment.subject, NOT_READ if moment.event == ABSENT else ABSENT)


class _Course:
    """The components of a match in order: those that were read, and when those that were not most likely happened."""

    def __init__(self, query: BoundSequence, row: Row, times: Sequence[str]) -> None:
        self._query, self._row = query, row
        self._times = {name.lower() for name in times}

    def moments(self) -> Iterator[Moment]:
        """One line for each component."""
        placed = self._placed()
        for number, component in enumerate(self._query.components):
            event = self._row.get(component.label)
            if component.negative:
                yield Moment(None, component.text, ABSENT)
            elif event is None:
                yield Moment(placed.get(number), component.text, NOT_READ)
            else:
                first = event[FIRST] if component.run else event
                values = {name: value for name, value in first.items() if name.lower() not in self._times}
                yield Moment(self._time(first), component.text, f"read: {described(values)}" if values else "read")

    def _time(self, event: Mapping[str, Any]) -> Any:
        return next(value for name, value in event.items() if name.lower() in self._times)

    def _placed(self) -> dict[int, Any]:
        """The most likely time of each missing component, by its number."""
        components, within = self._query.components, self._query.within
        read = [number for number, component in enumerate(components) if self._row.get(component.label) is not None]
        placed: dict[int, Any] = {}
        starts = [(-1, shifted(self._start_of(read[-1]), -within))] if within is not None else []
        ends = [*starts, *((number, self._start_of(number)) for number in read)]
        for (before, start), (after, end) in zip(ends, ends[1:], strict=False):
            for number, offset in self._in_gap(range(before + 1, after), elapsed(start, end)).items():
                t = shifted(start, offset)
                placed[number] = round(t) if isinstance(end, int) else t
        return placed

    def _start_of(self, number: int) -> Any:
        component = self._query.components[number]
        event = self._row[component.label]
        return self._time(event[FIRST] if component.run else event)

    def _in_gap(self, numbers: Sequence[int], length: float) -> dict[int, float]:
        """The most likely instants of the missing components of a gap, from its start."""
        components = self._query.components
        missing = [number for number in numbers if not components[number].negative]
        if not missing or length <= 0:
            return {}
        instants = (np.arange(INSTANTS) + 0.5) * length / INSTANTS
        # The logarithm of the density of the best placement so far, by the instant of the last one placed.
        best, before, choices = np.zeros(1), np.zeros(1), []
        for position in range(len(missing)):
            since = instants[None, :] - before[:, None]
            scores = best[:, None] + self._log_score(missing, position, since, numbers)
            choices.append(np.argmax(scores, axis=0))
            best, before = np.max(scores, axis=0), instants
        rest = best + self._log_absent(self._negatives(missing[-1], numbers[-1] + 1), length - instants)
        index = int(np.argmax(rest))
        if not np.isfinite(rest[index]):
            return {}
        placed = {}
        for number, chosen in zip(reversed(missing), reversed(choices), strict=True):
            placed[number] = float(instants[index])
            index = int(chosen[index])
        return placed

    def _log_score(self, missing: Sequence[int], position: int, since: F64, numbers: Sequence[int]) -> F64:
        """The logarithm of the density of one missing component, and that no negative happened before it."""
        number = missing[position]
        start = missing[position - 1] if position else numbers[0] - 1
        delay = self._query.components[number].delay
        with np.errstate(divide="ignore", invalid="ignore"):
            density = np.zeros_like(since) if delay is None else _log_density(delay, np.maximum(since, 1e-300))
        density = density + self._log_absent(self._negatives(start, number), np.maximum(since, 0.0))
        return np.where(since > 0, density, -np.inf)

    def _negatives(self, start: int, end: int) -> list[BoundComponent]:
        return [component for component in self._query.components[start + 1 : end] if component.negative]

    @staticmethod
    def _log_absent(negatives: Sequence[BoundComponent], length: F64) -> F64:
        """The logarithm of the probability that the negatives did not happen in gaps of these lengths."""
        total = np.zeros_like(length)
        for negative in negatives:
            if negative.delay is not None and negative.miss:
                law = distribution_of(negative.delay)
                above = law.above(length)
                with np.errstate(divide="ignore"):
                    total = total + np.log(above / (negative.miss * law.below(length) + above))
        return total


def _log_density(delay: BoundDelay, x: F64) -> F64:
    """The logarithm of the density of a delay; observed delays are smoothed by a normal kernel."""
    if not delay.atoms:
        return log_density(delay.law, delay.parameters, x)
    atoms = np.array(delay.atoms)
    width = max(1.06 * float(np.std(atoms)) * len(atoms) ** -0.2, 1e-3 * float(np.max(atoms)), 1e-12)
    kernels = np.exp(-0.5 * ((x[..., None] - atoms) / width) ** 2).sum(axis=-1)
    result: F64 = np.log(np.maximum(kernels, 1e-300))
    return result


def _without_miss(item: Miss | MissBy) -> Callable[[Case], Case]:
    def change(case: Case) -> Case:
        return case.with_body(miss=tuple(other for other in _loss_rates(case) if other != item))

    return change


def _loss_rates(case: Case) -> tuple[Miss | MissBy, ...]:
    body = case.query.declaration.body
    return body.miss if isinstance(body, syntax.Sequence) else ()


def _key_value(analysis: SequenceAnalysis, answer: Mapping[str, Any]) -> Any:
    """The value of the key column by which events are selected."""
    columns = dict(analysis.key[0])
    for component in analysis.query.components:
        event = answer.get(component.label)
        if event is not None and component.name in columns:
            return field_of(event[FIRST] if component.run else event, columns[component.name])
    raise LookupError("a match has an event")


def _spelled(layouts: Sequence[Layout], stream: str, column: str) -> str:
    """A column as the layout of its stream names it."""
    layout = next(layout for layout in layouts if layout.name.lower() == stream.lower())
    return next(name for name in layout.columns if name.lower() == column.lower())
