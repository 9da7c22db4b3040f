"""Explains answers of MONITOR: the error of each prediction, each constraint, and the instants of the answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pyarrow as pa

from anabranch.explanation.case import Case, Row
from anabranch.explanation.explainer import Explainer, literal
from anabranch.explanation.explanation import History, Moment
from anabranch.explanation.identity import find
from anabranch.explanation.pieces import Piece
from anabranch.explanation.structs import condition_pieces, elapsed, field_of, row_of
from anabranch.language import nodes
from anabranch.language.unparse import unparse
from anabranch.monitor.analysis import MonitorAnalysis
from anabranch.monitor.query import BoundMonitor
from anabranch.planning.selection import Selection
from anabranch.transport.layout import Layout, PredictionColumns, require_prediction

#: A probability that differs less from 1 is 1, apart from rounding.
LEAST = 1e-9


class MonitorExplainer(Explainer):
    """Explains one answer of a MONITOR."""

    derived: ClassVar[frozenset[str]] = frozenset(
        {"valid_from", "valid_to", "certain_from", "certain_to", "boundary", "sample"}
    )

    @classmethod
    def selections(
        cls, analysis: MonitorAnalysis, layouts: Sequence[Layout], answer: Mapping[str, Any]
    ) -> list[Selection]:
        """The predictions of the keys of the answer, from the first of them on; all that a buffer or NEAREST needs."""
        query = analysis.query
        if query.buffer is not None or query.nearest is not None:
            return [Selection() for _ in layouts]
        selections = []
        for layout in layouts:
            events = [
                answer[operand.label]
                for operand in query.operands
                if operand.stream.name.lower() == layout.name.lower()
            ]
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

    @property
    def _query(self) -> BoundMonitor:
        query = self.case.bound
        assert isinstance(query, BoundMonitor)
        return query

    def pieces(self) -> list[Piece]:
        """The errors of the predictions, and the constraints."""
        return [*self._errors(), *condition_pieces(self.case, "constraint")]

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
        names = [layout.name.lower() for layout in self.case.context.layouts]
        for operand in self._query.operands:
            stream = names.index(operand.stream.name.lower())
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
        if any(require_prediction(layout).reporting is not None for layout in self.case.context.layouts):
            return ["the errors of predictions that are made from positions also decide what is reported; they stay"]
        return []

    def _found(self, answers: Iterable[Row], identity: Mapping[str, Any]) -> Row | None:
        """Of several regions of the same predictions, the one that has most of the time of the answer."""
        found = find(answers, identity)
        known = getattr(self, "answer", None) or getattr(self, "_given", None)
        if not found or known is None:
            return super()._found(found, identity)
        return dict(max(found, key=lambda row: (_overlap(row, known), row["probability"])))

    def __init__(self, case: Case, answer: Mapping[str, Any]) -> None:
        self._given = answer
        super().__init__(case, answer)

    # ------------------------------------------------------------ histories

    def histories(self) -> list[History]:
        """The instants at which the answer is most probable, and the constraint that most likely fails there."""
        note = "These are the instants at which it is most probable, with the predicted values and their errors."
        true = History(True, tuple(self._values()), self.probability, note=note)
        if self.probability > 1 - LEAST:
            return [true, History(False, ())]
        failing = self._weakest()
        moments = [*self._values(), Moment(None, failing, "does not hold")]
        return [true, History(False, tuple(moments), None, note="The errors are such that this constraint fails.")]

    def _values(self) -> Iterator[Moment]:
        """The predicted values of each operand at the instants of the highest probability."""
        instants = list(self.row["sample"].values())
        for (label, stream, number), t in zip(self._predictions(), instants, strict=True):
            layout, row = self.case.context.layouts[stream], self.case.tables[stream].slice(number, 1).to_pylist()[0]
            prediction = require_prediction(layout)
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
        where = self.case.query.declaration.body.where  # type: ignore[attr-defined]
        items = where.items if isinstance(where, nodes.And) else (where,)
        return next(unparse(item) for item in items if unparse(item) not in {piece.text for piece in pieces} or not pieces)


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
