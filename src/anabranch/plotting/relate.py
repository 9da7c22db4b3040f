"""RELATE, and answers without times: a bar for each pair. With the rows of the streams also their intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt
import pyarrow as pa

from anabranch.errors import DataError
from anabranch.plotting import marks
from anabranch.plotting.answers import Answers, Row, instant, key_text
from anabranch.text import probability_text

BARS = 260
"""The width of the bars in pixels where intervals are next to them."""


def draw(
    answers: Answers, title: str, threshold: float | None, data: pa.Table | None = None, time: str | None = None,
    **_: Any,
) -> Any:  # fmt: skip
    """Draw the pairs, the most probable first; `data` are the rows of the entities."""
    ranked = sorted(answers.rows(), key=lambda pair: -pair[1]["probability"])
    labels = [_pair_text(answers, row) for row, _ in ranked]
    rows = [
        {"lane": number, "text": probability_text(details["probability"]), **_status(row), **details}
        for number, (row, details) in enumerate(ranked)
    ]
    height = max(marks.LANE * (1 if data is None else 2) * len(rows), 2 * marks.LANE)
    width = marks.WIDTH if data is None else BARS
    chart = _bars(answers, rows, labels).properties(width=width, height=height)
    notes = answers.notes
    if data is not None:
        chart = alt.hconcat(chart, _intervals(answers, ranked, data, time, height), spacing=24)
        chart = chart.resolve_scale(color="independent", y="independent")
        notes = ["shaded: the end of the interval was lost, and is somewhere in it", *notes]
    return marks.titled(chart.add_params(marks.threshold_slider(threshold)), title or "Probability of each pair", notes)


def _bars(answers: Answers, rows: list[Row], labels: Sequence[str]) -> Any:
    base = alt.Chart(marks.data(rows)).transform_filter(marks.shown()).encode(y=marks.lane_axis(labels))
    axis = alt.Axis(tickCount=5, orient=marks.orient(len(labels)))
    length = alt.X("probability:Q", title="probability", scale=marks.PROBABILITY_SCALE, axis=axis)
    colour = marks.status_colour(answers)
    encoded: dict[str, Any] = {"tooltip": marks.tooltips(answers), **({} if colour is None else {"color": colour})}
    bars = base.mark_bar(style="answer", height=13, cornerRadius=2).encode(x=length, **encoded)
    return alt.layer(bars, marks.probability_labels(base, length, clip=False))


def _status(row: Row) -> Row:
    return {"status": row["status"]} if "status" in row else {}


def _pair_text(answers: Answers, row: Row) -> str:
    return " – ".join(key_text(row[name]) for name in answers.groups if name != "distribution")


# ---------------------------------------------------------------- intervals


def _intervals(
    answers: Answers, ranked: Sequence[tuple[Row, Row]], data: pa.Table, time: str | None, height: int
) -> Any:
    """Draw the segments of both entities of a pair, one above the other."""
    entities = Entities(data, time)
    spans, sides = [], answers.events[:2]
    for number, (row, details) in enumerate(ranked):
        for place, side in enumerate(sides):
            for span in entities.spans(row[side]):
                spans.append({"lane": number, "side": side, "place": place, **span, **details})
    domain = marks.extent([span[name] for span in spans for name in ("t", "t_to")])
    axis = marks.lane_axis([""] * len(ranked))
    base = alt.Chart(marks.data(spans)).transform_filter(marks.shown())
    encoded = {
        "x": marks.time_axis("t", entities.times, domain, lanes=len(ranked)),
        "x2": "t_to:Q",
        "y": axis,
        "yOffset": alt.YOffset("side:N", sort=sides, scale=alt.Scale(paddingInner=0.3, paddingOuter=0.4)),
        "color": alt.Color("side:N", title=None, sort=sides, scale=alt.Scale(domain=sides)),
        "tooltip": marks.tooltips(answers),
    }
    certain = base.transform_filter("datum.certain").mark_bar(clip=True, cornerRadius=1)
    lost = base.transform_filter("!datum.certain").mark_bar(clip=True, opacity=0.3)
    layers = alt.layer(lost.encode(**encoded), certain.encode(**encoded).add_params(marks.zoom("zoom")))
    return layers.properties(width=marks.WIDTH - BARS + 80, height=height)


class Entities:
    """The segments of entities, from rows with the number `seq` and the time of each event, or one row per segment."""

    def __init__(self, data: pa.Table, time: str | None = None) -> None:
        names = data.column_names
        self._rows = data.to_pylist()
        self._time = time or "t"
        self._by_segment = {"t_from", "t_to"} <= set(names)
        if not self._by_segment and not {"seq", self._time} <= set(names):
            raise DataError(
                f"data= of RELATE has columns seq and {self._time}, or t_from and t_to; these are: {', '.join(names)}"
            )
        columns = ("t_from", "t_to") if self._by_segment else (self._time,)
        self.times = [t for name in columns for t in data[name].to_pylist() if t is not None]

    def spans(self, key: Row) -> Iterator[Row]:
        """Give the certain parts of the segments of an entity, and the parts where a lost event happened.

        A lost event is between its neighbours. Before the first and after the last known event, nothing is drawn.
        """
        times = self._events(key)
        for opening in range(0, len(times) - 1, 2):
            (start, sure_start), (sure_end, end) = self._bounds(times, opening), self._bounds(times, opening + 1)
            if sure_start is not None and sure_end is not None and sure_start <= sure_end:
                yield {"t": sure_start, "t_to": sure_end, "certain": True}
            for low, high in dict.fromkeys([(start, sure_start), (sure_end, end)]):
                if low is not None and high is not None and low < high:
                    yield {"t": low, "t_to": high, "certain": False}

    def _events(self, key: Row) -> list[float | None]:
        """Return the times of the events of an entity; None for those that are lost."""
        own = [row for row in self._rows if all(row.get(name) == value for name, value in key.items())]
        if self._by_segment:
            segments = sorted(([instant(row[name]) for name in ("t_from", "t_to")] for row in own), key=_known_first)
            return [t for segment in segments for t in segment]
        by_number = {int(row["seq"]): instant(row[self._time]) for row in own}
        last = max(by_number, default=0)
        return [by_number.get(number) for number in range(1, last + last % 2 + 1)]

    @staticmethod
    def _bounds(times: Sequence[float | None], index: int) -> tuple[float | None, float | None]:
        """Return the earliest and the latest time of an event: those of its neighbours if it is lost."""
        t = times[index]
        if t is not None:
            return t, t
        before = next((t for t in reversed(times[:index]) if t is not None), None)
        after = next((t for t in times[index + 1 :] if t is not None), None)
        return before, after


def _known_first(segment: Sequence[float | None]) -> float:
    return next((t for t in segment if t is not None), 0.0)
