"""Explains answers of MONITOR: the error of each prediction, each constraint, and the instants of the answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pyarrow as pa

from anabranch.binding.bound import BoundOperand
from anabranch.explanation.case import Case, Row
from anabranch.explanation.explainer import Explainer, described, literal
from anabranch.explanation.explanation import History, Moment
from anabranch.explanation.identity import find
from anabranch.explanation.pieces import Piece
from anabranch.explanation.structs import condition_pieces, conditions_of, elapsed, field_of, row_of
from anabranch.language.unparse import unparse
from anabranch.monitor.analysis import MonitorAnalysis
from anabranch.monitor.query import BoundMonitor
from anabranch.planning.selection import Selection
from anabranch.transport.layout import Layout, PredictionColumns, require_prediction

#: A probability that differs less from 1 is 1, apart from rounding.
LEAST = 1e-9

#: Evidence from which predictions are made.
POSITION = "position"


class MonitorExplainer(Explainer[BoundMonitor]):
    """Explains one answer of a MONITOR."""

    derived: ClassVar[frozenset[str]] = frozenset(
        {"valid_from", "valid_to", "certain_from", "certain_to", "boundary", "sample"}
    )

    def __init__(self, case: Case, answer: Mapping[str, Any]) -> None:
        self._given = answer
        super().__init__(case, answer)

    @classmethod
    def selections(
        cls, analysis: MonitorAnalysis, layouts: Sequence[Layout], answer: Mapping[str, Any]
    ) -> list[Selection]:
        """The predictions of the keys of the answer, from the first of them on; all that a buffer or NEAREST needs."""
        query = analysis.query
        if query.buffer is not None or query.nearest is not None:
            return [Selection() for _ in layouts]
        selections = []
        # The layout of a stream that is predicted from positions has the name of the positions.
        for stream, layout in zip(query.streams, layouts, strict=True):
            events = [answer[operand.label] for operand in query.operands if operand.stream.name == stream.name]
            keys = tuple({key: field_of(event, key) for key in layout.keys} for event in events)
            if require_prediction(layout).reporting is not None:
                # What a sensor reports depends on all its earlier positions.
                selections.append(Selection(keys))
                continue
            # An earlier prediction of a key ends where the one of the answer begins.
            times = (field_of(event, layout.time) for event in events)
            selections.append(Selection(keys, min(times), answer["valid_to"]))
        return selections

    # ------------------------------------------------------------ evidence

    def pieces(self) -> list[Piece]:
        """The positions from which predictions are made, or the errors of predictions; and the constraints."""
        positions = sorted(self._positions(), key=lambda piece: (piece.t, piece.text))
        return [*positions, *self._errors(), *condition_pieces(self.case, "constraint")]

    def _positions(self) -> Iterator[Piece]:
        for stream, (layout, table) in enumerate(zip(self.case.context.layouts, self.case.tables, strict=True)):
            if require_prediction(layout).reporting is None:
                continue
            for number, row in enumerate(table.to_pylist()):
                key = ", ".join(literal(row[name]) for name in layout.keys)
                values = described({name: row[name] for name in layout.values})
                yield Piece(POSITION, f"{layout.name}({key}): {values}", row[layout.time], stream, None, (number,))

    def without(self, pieces: Sequence[Piece]) -> float:
        """The probability without some pieces; other positions make other predictions, which are valid at the time."""
        if all(piece.what != POSITION for piece in pieces):
            return super().without(pieces)
        rows = find(self.without_pieces(pieces).answers(), self._keys())
        return max((float(row["probability"]) for row in rows if _overlap(row, self.row) >= 0), default=0.0)

    def _keys(self) -> dict[str, Any]:
        """The keys of the answer, without the times of its predictions."""
        layouts = self.case.context.layouts
        return {
            operand.label: {
                name: value
                for name, value in self.row[operand.label].items()
                if name.lower() in {key.lower() for key in layouts[self._stream_of(operand)].keys}
            }
            for operand in self.query.operands
        }

    def _stream_of(self, operand: BoundOperand) -> int:
        return [stream.name for stream in self.query.streams].index(operand.stream.name)

    def _errors(self) -> Iterator[Piece]:
        for label, stream, number in self._predictions():
            layout = self.case.context.layouts[stream]
            prediction = require_prediction(layout)
            if prediction.reporting is not None:
                continue
            errors = self._errors_of(stream, number)
            if any(errors.values()):
                text = ", ".join(f"{name} ± {error:g}" for name, error in errors.items())
                t = self.case.tables[stream][layout.time][number].as_py()
                key = ", ".join(literal(field_of(self.row[label], key)) for key in layout.keys)
                yield Piece("error", f"error of {label}({key}): {text}", t, change=_made_exact(stream, number))

    def _predictions(self) -> Iterator[tuple[str, int, int]]:
        """The predictions of the answer: the operand, the number of its stream, and the number of the row."""
        for operand in self.query.operands:
            stream = self._stream_of(operand)
            number = row_of(self.case.tables[stream], self.row[operand.label])
            if number is not None:
                yield operand.label, stream, number

    def _errors_of(self, stream: int, number: int) -> dict[str, float]:
        """The error of each value of a prediction."""
        layout, table = self.case.context.layouts[stream], self.case.tables[stream]
        errors = zip(layout.values, require_prediction(layout).errors, strict=True)
        return {
            name: float(table[error][number].as_py()) if isinstance(error, str) else error for name, error in errors
        }

    def notes(self) -> list[str]:
        """Why errors are not left out."""
        if self._made_from_positions():
            return ["the errors of predictions that are made from positions also decide what is reported; they stay"]
        return []

    def _made_from_positions(self) -> bool:
        return any(require_prediction(layout).reporting is not None for layout in self.case.context.layouts)

    def _found(self, answers: Iterable[Row], identity: Mapping[str, Any]) -> Row | None:
        """Of several regions of the same predictions, the one that has most of the time of the answer."""
        found = find(answers, identity)
        known: Mapping[str, Any] = getattr(self, "row", None) or self._given
        if not found:
            return None
        best = max(found, key=lambda row: (_overlap(row, known), row["probability"]))
        return dict(best)

    # ------------------------------------------------------------ histories

    def histories(self) -> list[History]:
        """The instants at which the answer is most probable, and the constraint that most likely fails there."""
        note = "These are the instants at which it is most probable, with the predicted values and their errors."
        if self._made_from_positions():
            note = "These are the reports from which the predictions are made, with the errors of the predictions."
        true = History(True, tuple(self._values()), self.probability, note=note)
        if self.probability > 1 - LEAST:
            return [true, History(False, ())]
        failing = self._weakest()
        moments = [*self._values(), Moment(None, failing, "does not hold")]
        return [true, History(False, tuple(moments), None, note="The errors are such that this constraint fails.")]

    def _values(self) -> Iterator[Moment]:
        """The predicted values of each operand where the probability is highest, or the reported positions."""
        instants = list(self.row["sample"].values())
        for (label, stream, number), t in zip(self._predictions(), instants, strict=True):
            layout, row = self.case.context.layouts[stream], self.case.tables[stream].slice(number, 1).to_pylist()[0]
            prediction = require_prediction(layout)
            t = t if prediction.reporting is None else row[layout.time]
            since = elapsed(row[layout.time], t)
            errors = self._errors_of(stream, number)
            values = ", ".join(
                f"{name} = {_predicted(row, index, name, prediction, since):.6g}"
                + (f" ± {errors[name]:g}" if errors[name] else "")
                for index, name in enumerate(layout.values)
            )
            key = ", ".join(literal(row[key]) for key in layout.keys)
            yield Moment(t, f"{label}({key})", values)

    def _weakest(self) -> str:
        """The constraint without which the answer would be most probable."""
        pieces = list(condition_pieces(self.case, "constraint"))
        if pieces:
            without = {piece.text: self.without([piece]) for piece in pieces}
            text = max(without, key=lambda name: without[name])
            if without[text] > self.probability + LEAST:
                return text
        known = {piece.text for piece in pieces}
        texts = [unparse(item) for item in conditions_of(self.case)]
        return next((text for text in texts if text not in known), texts[0])


def _predicted(row: Row, index: int, name: str, prediction: PredictionColumns, since: float) -> float:
    """A predicted value some time after its prediction."""
    value = row[name] + row[prediction.rates[index]] * since if prediction.rates else row[name]
    acceleration = prediction.accelerations[index] if prediction.accelerations else None
    return float(value + (0.5 * row[acceleration] * since**2 if acceleration else 0.0))


def _overlap(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """For how long two regions are both valid; minus the time between them."""
    start, end = max(one["valid_from"], other["valid_from"]), min(one["valid_to"], other["valid_to"])
    length = elapsed(start, end)
    return length if math.isfinite(length) else 0.0


def _made_exact(stream: int, number: int) -> Callable[[Case], Case]:
    """Takes a prediction as exact: errors become columns, which are 0 in its row."""

    def change(case: Case) -> Case:
        layout, table = case.context.layouts[stream], case.tables[stream]
        prediction = require_prediction(layout)
        names = []
        for value, error in zip(layout.values, prediction.errors, strict=True):
            known = table[error].to_pylist() if isinstance(error, str) else [error] * table.num_rows
            known[number] = 0.0
            name = f"{value} error"
            column = pa.array(known, pa.float64())
            index = table.schema.get_field_index(name)
            table = table.append_column(name, column) if index < 0 else table.set_column(index, name, column)
            names.append(name)
        changed = replace(layout, prediction=replace(prediction, errors=tuple(names)))
        layouts = (*case.context.layouts[:stream], changed, *case.context.layouts[stream + 1 :])
        tables = (*case.tables[:stream], table, *case.tables[stream + 1 :])
        return replace(case, context=replace(case.context, layouts=layouts), tables=tables)

    return change
