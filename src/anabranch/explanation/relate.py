"""Explains answers of RELATE: each recorded time, and where the lost events most likely were."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, Bools
from anabranch.columns.times import TimeKind, decode_time, restore_doubles
from anabranch.explanation.case import Case
from anabranch.explanation.explainer import Explainer, described, literal, relation_pieces
from anabranch.explanation.explanation import History, Moment
from anabranch.explanation.identity import same
from anabranch.explanation.pieces import Piece
from anabranch.explanation.structs import field_of
from anabranch.planning.selection import Selection
from anabranch.relate.analysis import RelateAnalysis
from anabranch.relate.assembly import IntervalRows, assemble
from anabranch.relate.query import BoundRelate
from anabranch.relate.validation import invalid_entities
from anabranch.transport.interval_columns import interval_numbers
from anabranch.transport.layout import IntervalColumns, Layout, require_interval
from anabranch.transport.segments import events_of

#: How many placements of the lost events are drawn, and how many draws are made at most to get them.
PLACEMENTS, MOST_DRAWS = 200, 20_000

#: A history has all events of entities with up to so many, else only the lost ones.
ALL_EVENTS = 20

#: The column of positions in the rows of a placement.
_POSITION = "#position"


class RelateExplainer(Explainer[BoundRelate]):
    """Explains one answer of a RELATE."""

    @classmethod
    def selections(
        cls, analysis: RelateAnalysis, layouts: Sequence[Layout], answer: Mapping[str, Any]
    ) -> list[Selection]:
        """The rows of both entities."""
        operands = analysis.query.operands
        return [
            Selection(tuple(
                {key: field_of(answer[operand.label], key) for key in layout.keys}
                for operand in operands
                if operand.stream.name.lower() == layout.name.lower()
            ))
            for layout in layouts
        ]  # fmt: skip

    # ------------------------------------------------------------ evidence

    def pieces(self) -> list[Piece]:
        """The recorded times of both entities, the distributions of their lengths, and rows of relations."""
        streams = range(len(self.case.tables))
        pieces = [piece for stream in streams for piece in self._recorded(stream)]
        pieces.sort(key=lambda piece: (piece.t, piece.text))
        laws = [piece for stream in streams for piece in self._laws(stream)]
        return [*pieces, *laws, *relation_pieces(self.case, self.case.prepared.analysis)]

    def _recorded(self, stream: int) -> Iterator[Piece]:
        """Each recorded time, which is then lost. A measurement or a segment by time is left out as a whole."""
        layout, table = self.case.context.layouts[stream], self.case.tables[stream]
        whole = layout.runs is not None or (
            layout.start is not None and not (layout.interval and layout.interval.order)
        )
        columns = [layout.time] if layout.start is None else [layout.start, layout.time]
        for number, row in enumerate(table.to_pylist()):
            entity = f"{layout.name}({', '.join(literal(row[key]) for key in layout.keys)})"
            if whole:
                what = "measurement" if layout.runs is not None else "segment"
                values = described({name: row[name] for name in layout.values})
                yield Piece(
                    what, f"{entity}: {values}" if values else entity, row[layout.time], stream, None, (number,)
                )
                continue
            for column in columns:
                if row[column] is None:
                    continue
                change = _lost(stream, number, column)
                if not self._is_invalid(change(self.case), stream):
                    text = f"{entity}: {_event_name(layout, row, column)}"
                    yield Piece("recorded time", text, row[column], change=change)

    @staticmethod
    def _is_invalid(case: Case, stream: int) -> bool:
        """Whether an entity is not allowed to lose this event: there is no HORIZON or WINDOW for it."""
        return any(True for _ in invalid_entities(case.tables[stream], case.context.layouts[stream]))

    def _laws(self, stream: int) -> Iterator[Piece]:
        layout = self.case.context.layouts[stream]
        for name, law in zip(("duration", "gap"), layout.segment_laws, strict=True):
            if law is not None:
                yield Piece("distribution", f"{name.upper()} of {layout.name}", change=_without_law(stream, name))

    # ------------------------------------------------------------ histories

    def histories(self) -> list[History]:
        """A placement of the lost events with which the answer is true, and one with which it is not."""
        if self._no_histories():
            return []
        entities = list(self._entities())
        placed = _Placed(self.case, entities)
        drawn = list(placed.draw())
        if not any(entity.lost.any() for entity in entities):
            return [History(True, tuple(placed.moments(drawn[0])), self.probability), History(False, ())]
        truths = [placed.is_true(times, self.identity_of(self.row)) for times in drawn]
        return [self._history(placed, drawn, truths, true) for true in (True, False)]

    def _history(self, placed: _Placed, drawn: Sequence[F64], truths: Sequence[bool], true: bool) -> History:
        chosen = [times for times, truth in zip(drawn, truths, strict=True) if truth == true]
        if not chosen:
            is_true = "true" if true else "not true"
            return History(
                true, (), note=f"In none of {len(drawn):,} drawn placements of the lost events it is {is_true}."
            )
        note = placed.note(len(chosen), len(drawn))
        return History(true, tuple(placed.moments(placed.representative(chosen))), note=note)

    def _no_histories(self) -> str:
        if any(layout.runs is not None for layout in self.case.context.layouts):
            return "lost ends of segments that are made from measurements (WHILE) are not placed"
        return ""

    def notes(self) -> list[str]:
        """Why there are no histories."""
        return [note for note in [self._no_histories()] if note]

    def _entities(self) -> Iterator[_Entity]:
        names = [layout.name.lower() for layout in self.case.context.layouts]
        for operand in self.query.operands:
            stream = names.index(operand.stream.name.lower())
            layout = self.case.context.layouts[stream]
            key = tuple(field_of(self.row[operand.label], name) for name in layout.keys)
            yield _entity(operand.label, stream, layout, self.case.tables[stream], key)


@dataclass(frozen=True, slots=True)
class _Entity:
    """One operand: the windows of its events, as numbers, and the attributes of the segments that they open."""

    label: str
    stream: int
    key: tuple[Any, ...]
    lo: F64
    hi: F64
    phases: F64
    rates: F64
    values: dict[int, tuple[Any, ...]]

    @property
    def lost(self) -> Bools:
        """Which events are lost."""
        return self.lo < self.hi


def _entity(label: str, stream: int, layout: Layout, table: pa.Table, key: tuple[Any, ...]) -> _Entity:
    columns = [table[name].to_pylist() for name in layout.keys]
    own = [number for number, found in enumerate(zip(*columns, strict=True)) if all(map(same, found, key))]
    events = events_of(table.take(pa.array(own, pa.int64())), layout)
    rows = IntervalRows.of(np.zeros(events.num_rows, np.int64), interval_numbers(events, layout))
    rows = rows if layout.interval is None or layout.interval.order else rows.numbered()
    windows = assemble(rows, 1, layout.horizon, laws=layout.segment_laws).windows
    n = len(windows.lo)
    values = list(zip(*(events[name].to_pylist() for name in layout.values), strict=True)) or [()] * len(rows)
    return _Entity(
        label, stream, key, _numbers(windows.lo, layout.time_kind), _numbers(windows.hi, layout.time_kind),
        np.ones(n) if windows.phases is None else windows.phases.astype(np.float64),
        np.zeros(n) if windows.rates is None else windows.rates,
        {int(seq): tuple(value) for seq, value in zip(rows.seq, values, strict=True)},
    )  # fmt: skip


def _numbers(codes: Any, kind: TimeKind) -> F64:
    """Times as numbers whose differences are times."""
    return restore_doubles(codes) if kind is TimeKind.DOUBLE else codes.astype(np.float64)


class _Placed:
    """Both entities with all their events: lost ones are placed, and the query is run on the result."""

    def __init__(self, case: Case, entities: Sequence[_Entity]) -> None:
        self._entities = entities
        self._kind = case.context.layouts[0].time_kind
        # Placed events lie between integers.
        kind = TimeKind.DOUBLE if self._kind is TimeKind.INTEGER else self._kind
        self._layouts = tuple(
            replace(layout, interval=IntervalColumns(_POSITION), start=None, time_kind=kind)
            for layout in case.context.layouts
        )
        self._case = replace(case, context=replace(case.context, layouts=self._layouts))
        self._weighed = any(entity.rates.any() for entity in entities)

    def note(self, n_chosen: int, n_drawn: int) -> str:
        """Which of several placements is shown."""
        if self._weighed:
            return f"The most likely of {n_drawn:,} drawn placements of the lost events with which it is so."
        like_this = f"Of {n_drawn:,} drawn placements of the lost events, {n_chosen:,} are like this."
        return f"{like_this} All are equally likely; a middle one is shown."

    def draw(self) -> Iterator[F64]:
        """Placements of the events of both entities: uniform in their windows, in order."""
        lo, hi = (np.concatenate([getattr(entity, name) for entity in self._entities]) for name in ("lo", "hi"))
        first = len(self._entities[0].lo)
        random = np.random.default_rng(0)
        found = 0
        for _ in range(MOST_DRAWS):
            times = random.uniform(lo, hi)
            for part in (slice(0, first), slice(first, None)):
                times[part] = _sorted_runs(times[part], lo[part], hi[part])
            if (np.diff(times[:first]) >= 0).all() and (np.diff(times[first:]) >= 0).all():
                yield times
                found += 1
            if found == PLACEMENTS:
                return

    def is_true(self, times: F64, identity: Mapping[str, Any]) -> bool:
        """Whether the answer is true for a placement."""
        rows: list[list[dict[str, Any]]] = [[] for _ in self._layouts]
        start = 0
        for entity in self._entities:
            layout, n = self._layouts[entity.stream], len(entity.lo)
            for position, time in enumerate(times[start : start + n].tolist(), 1):
                values = entity.values.get(position, (None,) * len(layout.values))
                row = dict(zip((*layout.keys, *layout.values), (*entity.key, *values), strict=True))
                rows[entity.stream].append(row | {layout.time: self._time(time), _POSITION: position})
            start += n
        tables = tuple(_table(layout, found) for layout, found in zip(self._layouts, rows, strict=True))
        answers = self._case.with_tables(tables).answers()
        return any(
            row["probability"] > 0.5 and all(same(row[name], identity[name]) for name in identity) for row in answers
        )

    def _time(self, number: float) -> Any:
        return decode_time(round(number), self._kind) if self._kind is TimeKind.TIMESTAMP else number

    def representative(self, chosen: Sequence[F64]) -> F64:
        """The most likely placement of some; of equally likely ones, the one nearest to their mean."""
        if self._weighed:
            return max(chosen, key=self._log_density)
        mean = np.mean(chosen, axis=0)
        return min(chosen, key=lambda times: float(((times - mean) ** 2).sum()))

    def _log_density(self, times: F64) -> float:
        """The logarithm of the density of a placement, by the lengths of segments and gaps."""
        total, start = 0.0, 0
        for entity in self._entities:
            n = len(entity.lo)
            lengths = np.diff(times[start : start + n])
            phases, rates = entity.phases[:-1], entity.rates[:-1]
            total += float(((phases - 1) * np.log(np.maximum(lengths, 1e-300)) - rates * lengths).sum())
            start += n
        return total

    def moments(self, times: F64) -> Iterator[Moment]:
        """The events of both entities with their times."""
        found, start = [], 0
        for entity in self._entities:
            n = len(entity.lo)
            subject = f"{entity.label}({', '.join(map(literal, entity.key))})"
            for position, (time, lost) in enumerate(zip(times[start : start + n], entity.lost, strict=True)):
                if lost or n <= ALL_EVENTS:
                    event = f"segment {position // 2 + 1} {'ends' if position % 2 else 'starts'}"
                    shown = self._time(float(time)) if lost or self._kind is not TimeKind.INTEGER else int(time)
                    found.append((float(time), Moment(_rounded(shown), subject, event + (" (lost)" if lost else ""))))
            start += n
        yield from (moment for _, moment in sorted(found, key=lambda pair: pair[0]))


def _rounded(t: Any) -> Any:
    """A placed time without digits that mean nothing."""
    return float(f"{t:.6g}") if isinstance(t, float) else t


def _sorted_runs(times: F64, lo: F64, hi: F64) -> F64:
    """The times with those of consecutive events with the same window in order."""
    edges = np.flatnonzero((np.diff(lo) != 0) | (np.diff(hi) != 0)) + 1
    return np.concatenate([np.sort(part) for part in np.split(times, edges)])


def _table(layout: Layout, rows: Sequence[dict[str, Any]]) -> pa.Table:
    types = dict(zip((*layout.keys, *layout.values), (*layout.key_types, *layout.value_types), strict=True))
    types |= {layout.time: layout.time_kind.arrow_type, _POSITION: pa.int64()}
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()})


def _event_name(layout: Layout, row: Mapping[str, Any], column: str) -> str:
    position = row[require_interval(layout).order]
    if layout.start is not None:
        return f"segment {position} {'starts' if column == layout.start else 'ends'}"
    return f"event {position} (segment {(position + 1) // 2} {'starts' if position % 2 else 'ends'})"


def _lost(stream: int, number: int, column: str) -> Callable[[Case], Case]:
    """Makes a recorded time NULL."""

    def change(case: Case) -> Case:
        table = case.tables[stream]
        index, cells = table.schema.get_field_index(column), table[column].to_pylist()
        cells[number] = None
        changed = table.set_column(index, table.schema.field(index), pa.array(cells, table.schema.field(index).type))
        return case.with_tables((*case.tables[:stream], changed, *case.tables[stream + 1 :]))

    return change


def _without_law(stream: int, name: str) -> Callable[[Case], Case]:
    """Drops the distribution of segments (`duration`) or gaps (`gap`) of a stream."""

    def without(interval: IntervalColumns) -> IntervalColumns:
        return replace(interval, duration=None) if name == "duration" else replace(interval, gap=None)

    def change(case: Case) -> Case:
        layout = case.context.layouts[stream]
        if layout.runs is None:
            changed = replace(layout, interval=without(require_interval(layout)))
        else:
            changed = replace(layout, runs=replace(layout.runs, interval=without(layout.runs.interval)))
        layouts = (*case.context.layouts[:stream], changed, *case.context.layouts[stream + 1 :])
        return replace(case, context=replace(case.context, layouts=layouts))

    return change
