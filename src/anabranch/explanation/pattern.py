"""Explains answers of PATTERN: what a key was at each instant, and the most likely histories of the keys."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.binding.derived_streams import is_weighted
from anabranch.binding.typed import Constant, Operation, Reference
from anabranch.columns.times import decode_time, encode_times
from anabranch.explanation.explainer import Explainer, literal, relation_pieces
from anabranch.explanation.explanation import History, Moment
from anabranch.explanation.markov import without_instants
from anabranch.explanation.pieces import Piece, without_rows
from anabranch.kinds import load_kind_module
from anabranch.language import nodes
from anabranch.language.types import Type
from anabranch.pattern.analysis import PatternAnalysis
from anabranch.pattern.likeliest import Likeliest, likeliest
from anabranch.pattern.query import BoundCombination, BoundGoal, BoundPattern
from anabranch.pattern.spec import GroupSpec
from anabranch.planning.in_process import routed_packets
from anabranch.planning.selection import Selection
from anabranch.transport.layout import Layout

#: How many values of a distribution a line of text has.
VALUES = 3


class PatternExplainer(Explainer[BoundPattern]):
    """Explains one answer of a PATTERN."""

    @classmethod
    def selections(
        cls, analysis: PatternAnalysis, layouts: Sequence[Layout], answer: Mapping[str, Any]
    ) -> list[Selection]:
        """The rows of the keys of the group, up to the instant; all readings of an inferred stream."""
        latest = answer.get("t", answer.get("t_to"))
        groups = [(name, index) for name, index in analysis.group_by if index < len(analysis.chain)]
        if isinstance(analysis.query, BoundCombination):
            # It has answers at the instants of all keys.
            groups = []
        return [
            Selection(
                ({layout.keys[positions[index]]: answer[name] for name, index in groups},) if groups else None,
                latest=None if layout.derivation is not None else latest,
            )
            for layout, positions in zip(layouts, analysis.chain_positions, strict=True)
        ]

    def pieces(self) -> list[Piece]:
        """What each key was at each instant; of an inferred stream, each reading; rows of relations."""
        pieces = [piece for stream in range(len(self.case.tables)) for piece in self._instants(stream)]
        pieces.sort(key=lambda piece: (piece.t, piece.text))
        return [*pieces, *relation_pieces(self.case, self.case.prepared.analysis)]

    def _instants(self, stream: int) -> list[Piece]:
        layout, table = self.case.context.layouts[stream], self.case.tables[stream]
        rows: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        columns = [table[name].to_pylist() for name in (layout.time, *layout.keys)]
        for number, (t, *key) in enumerate(zip(*columns, strict=True)):
            rows[t, tuple(key)].append(number)
        names = [layout.values, () if layout.distribution is None else (layout.distribution.probability,)]
        values = [table.select(list(part)).to_pylist() for part in names]
        what = "event" if layout.distribution is None and layout.derivation is None else "reading"
        return [
            Piece(
                what,
                f"{_subject(layout, key)}: {self._values(layout, numbers, values)}",
                t,
                stream,
                None,
                tuple(numbers),
            )
            for (t, key), numbers in rows.items()
        ]

    @staticmethod
    def _values(layout: Layout, rows: Sequence[int], columns: Sequence[list[dict[str, Any]]]) -> str:
        """The values of some rows; with their probabilities, where rows have some and do not depend on others."""
        values, probabilities = columns
        texts: dict[str, float] = defaultdict(float)
        for row in rows:
            texts[_value(values[row].values())] += sum(probabilities[row].values())
        shown = sorted(texts, key=lambda text: (-round(texts[text], 9), text))[:VALUES]
        more = ", ..." if len(texts) > VALUES else ""
        if layout.distribution is None or layout.distribution.previous:
            return ", ".join(shown) + more
        return ", ".join(f"{text} {texts[text]:.3g}" for text in shown) + more

    def without_evidence(self, stream: int, table: pa.Table, rows: Sequence[int]) -> pa.Table:
        """The rows of a stream without those of some keys and instants; a Markov chain goes on over the instant."""
        layout = self.case.context.layouts[stream]
        if layout.previous:
            return without_instants(table, layout, set(rows))
        return without_rows(table, rows)

    # ------------------------------------------------------------ histories

    def histories(self) -> list[History]:
        """The most likely histories of the keys up to the instant of the answer."""
        if self._no_histories():
            return []
        true, false = self.likeliest()
        return [self._history(true, True, self.probability), self._history(false, False, 1.0 - self.probability)]

    def likeliest(self) -> tuple[Likeliest | None, Likeliest | None]:
        """The most likely histories in which the answer is true, and is not."""
        analysis = load_kind_module("PATTERN", "analysis").analyse(self._of_group())
        spec = GroupSpec(self.case.context, analysis)
        packets, watermark = routed_packets(self.case.job, self.case.tables, self.case.newest)
        t = int(encode_times(pa.array([self.row["t"]], spec.time_kind.arrow_type), spec.time_kind)[0])
        return likeliest(spec, packets, watermark, t)

    def time_of(self, code: int) -> object:
        """The time of a code."""
        return decode_time(code, self.case.context.layouts[0].time_kind)

    def _no_histories(self) -> str:
        """Why there are no most likely histories; empty if there are."""
        query = self.query
        if isinstance(query, BoundCombination):
            return "histories of combined queries are not searched; explain the answers of the combined ones"
        if query.per is not None:
            return "histories of windows are not searched; explain an answer without PER"
        if any(is_weighted(stream) for stream in query.streams):
            return "the histories of a stream that is inferred by JOINT or LAG cannot be listed"
        return ""

    def notes(self) -> list[str]:
        """Why there are no histories, and whether the probability is sampled."""
        sampled = f"the probability is sampled, within {self.row['lower']:.4f} and {self.row['upper']:.4f}"
        return [note for note in (self._no_histories(), sampled if self.row["method"] == "sampling" else "") if note]

    def _of_group(self) -> BoundPattern:
        """The query for the group of the answer: WHERE requires its values."""
        query = self.query
        goals = list(query.goals)
        for name, variable in query.group_by:
            number = next(index for index, goal in enumerate(goals) if variable in goal.exported)
            condition = _equals(goals[number], variable, self.row[name])
            goals[number] = replace(goals[number], selections=(*goals[number].selections, condition))
        return replace(query, goals=tuple(goals), group_by=(), method=None)

    def _history(self, found: Likeliest | None, true: bool, total: float) -> History:
        if found is None:
            return History(true, ())
        layouts = self.case.context.layouts
        streams = self.query.streams
        moments = []
        for moment in found.moments:
            name, layout = streams[moment.stream].name, layouts[moment.stream]
            goals = "".join(f"  (goal {goal})" for goal in moment.goals)
            event = "nothing" if moment.value is None else _value(moment.value)
            subject = _subject(replace(layout, name=name), moment.key)
            moments.append(Moment(self.time_of(moment.t), subject, event + goals))
        p = math.exp(found.log_p)
        note = "" if found.exact else "There are too many states to try all; another history may be more likely."
        # Rounding can leave an impossible case with a probability of 1e-17.
        return History(true, tuple(moments), p, min(1.0, p / total) if total > 1e-12 else None, note)


def _equals(goal: BoundGoal, variable: str, value: Any) -> Operation:
    """The condition that a variable has a value."""
    columns = zip((*goal.stream.keys, *goal.stream.values), goal.terms, strict=True)
    kind = next(column.type for column, term in columns if isinstance(term, nodes.Variable) and term.name == variable)
    if kind is Type.TIMESTAMP:
        value = pc.cast(pa.scalar(value, pa.timestamp("us", tz="UTC")), pa.int64()).as_py()
    elif kind is Type.DATE:
        value = int(np.datetime64(value, "D").astype(np.int64))
    reference = Reference(None, variable, kind)
    return Operation("=", (reference, Constant(value, kind)), Type.BOOLEAN)


def _subject(layout: Layout, key: Sequence[Any]) -> str:
    return f"{layout.name}({', '.join(map(literal, key))})"


def _value(values: Any) -> str:
    """The values of an event; *nothing* if all are NULL."""
    known = list(values)
    if known and all(value is None for value in known):
        return "nothing"
    return ", ".join(map(literal, known)) or "happens"
