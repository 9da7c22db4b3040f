"""SEQUENCE, and CONSTRAIN without locations: a lane for each answer, with its events at their times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from anabranch.plotting import marks
from anabranch.plotting.answers import Answers, Row, event_time, events_of, instant, key_text
from anabranch.text import probability_text

MOST = 40
"""The answers that have a lane, unless another number is given."""

MARGIN = 0.06
"""How far before the first event one is drawn that is missing there, as a share of the time of all answers."""


def draw(answers: Answers, title: str, threshold: float | None, time: str | None = None, **_: Any) -> Any:
    """Draw lanes; a component that was not read is hollow, between the events around it."""
    rows = sorted(answers.rows(), key=lambda pair: (instant(pair[0]["t"]) or 0.0, -pair[1]["probability"]))
    field = event_time(answers, time)
    lanes = [
        Lane(number, row, details, events_of(row, answers.events), field) for number, (row, details) in enumerate(rows)
    ]
    known = [t for lane in lanes for t in (*lane.times, instant(lane.row["t"])) if t is not None]
    margin = (max(known) - min(known)) * MARGIN if known else 0.0
    points = [point for lane in lanes for point in lane.points(margin)]
    shared = _shared_fields(lanes, field)
    labels = [lane.label(shared) for lane in lanes]
    chart = _layered(answers, points, [lane.span(margin) for lane in lanes], labels)
    hollow = any(not point["read"] for point in points)
    notes = ["the events of each answer and its probability; paler: less probable"]
    notes += ["hollow: not read; drawn between the events around it"] if hollow else []
    notes += answers.notes
    if lanes and not any(lane.known for lane in lanes):
        notes.append(f"the events have no time '{field}'; pass time=")
    chart = chart.properties(width=marks.WIDTH, height=max(marks.LANE * len(lanes), 2 * marks.LANE))
    return marks.titled(chart.add_params(marks.threshold_slider(threshold)), title or "Events of each answer", notes)


def _layered(answers: Answers, points: list[Row], spans: list[Row], labels: Sequence[str]) -> Any:
    domain = marks.extent([span[name] for span in spans for name in ("t", "t_to")])
    times = answers.table["t"].to_pylist()
    at, end = (marks.time_axis(field, times, domain, 46, len(labels)) for field in ("t", "t_to"))
    lane = marks.lane_axis(labels)
    faint = alt.Opacity("probability:Q", scale=alt.Scale(domain=[0, 1], range=[0.4, 1]), legend=None)
    colour = alt.Color("component:N", title="event", scale=alt.Scale(domain=answers.events))
    lines = alt.Chart(marks.data(spans)).transform_filter(marks.shown())
    line = lines.mark_rule(style="lane").encode(x=at, x2="t_to:Q", y=lane)
    base = alt.Chart(marks.data(points)).transform_filter(marks.shown())
    encoded = {"x": at, "y": lane, "tooltip": marks.tooltips(answers)}
    read = base.transform_filter("datum.read").mark_point(style="known", size=130, filled=True, clip=True)
    missing = base.transform_filter("!datum.read").mark_point(style="missing", size=110, clip=True)
    below = base.mark_point(style="paper", size=130, filled=True, clip=True).encode(x=at, y=lane)
    texts = marks.probability_labels(lines.encode(y=lane), end)
    return alt.layer(
        line.add_params(marks.zoom("zoom")),
        below,
        read.encode(color=colour, opacity=faint, **encoded),
        missing.encode(color=colour, opacity=faint, **encoded),
        texts,
    )


class Lane:
    """An answer with the times of its events; None for events that are missing."""

    def __init__(
        self, number: int, row: Row, details: Row, events: Sequence[tuple[str, Row | None]], field: str
    ) -> None:
        self.number, self.row, self.details = number, row, details
        self.events = events
        self.times = [None if event is None else instant(event.get(field)) for _, event in events]
        self.known = [t for t in self.times if t is not None]

    def label(self, shared: Sequence[str]) -> str:
        """Return the values that the events of the answer have in common."""
        first = next((event for _, event in self.events if event is not None), {})
        return key_text({name: first[name] for name in shared if name in first}) or f"answer {self.number + 1}"

    def points(self, margin: float) -> list[Row]:
        """Return the marks of the events."""
        return [
            {"lane": self.number, "t": t, "component": name, "read": event is not None, **self.details}
            for (name, event), t in zip(self.events, self._places(margin), strict=True)
            if t is not None
        ]

    def span(self, margin: float) -> Row:
        """Return the line of the lane, from the first mark to the last, with the text of the probability."""
        places = [t for t in self._places(margin) if t is not None] or [instant(self.row["t"]) or 0.0]
        text = probability_text(self.details["probability"])
        return {"lane": self.number, "t": places[0], "t_to": max(places), "text": text, **self.details}

    def _places(self, margin: float) -> list[float | None]:
        """Return the time at which each event is drawn: missing ones at equal distances between their neighbours.

        After the last event, they are drawn before the end of the window, which is the time of the answer.
        """
        if not self.known:
            return list(self.times)
        end = instant(self.row["t"]) or self.known[-1]
        last = end if end > self.known[-1] else self.known[-1] + margin
        places, before, waiting = list(self.times), self.known[0] - margin, list[int]()
        for number, t in enumerate([*self.times, None]):
            if t is None and number < len(self.times):
                waiting.append(number)
                continue
            after = last if t is None else t
            for count, index in enumerate(waiting, start=1):
                places[index] = before + (after - before) * _share(count, len(waiting), index, t)
            before, waiting = after, []
        return places


def _share(count: int, missing: int, index: int, after: float | None) -> float:
    """Return where a missing event is between its neighbours: the first one may be at the margin itself."""
    if index < missing and after is not None:
        return (count - 1) / missing
    return count / (missing + 1)


def _shared_fields(lanes: Sequence[Lane], field: str) -> list[str]:
    """Return the fields with one value in all events of each answer, such as a key; not the time."""
    shared: list[str] | None = None
    for lane in lanes:
        events = [event for _, event in lane.events if event is not None]
        names = list(events[0]) if events else []
        equal = [
            name for name in names if name != field and all(event.get(name) == events[0][name] for event in events)
        ]
        shared = equal if shared is None else [name for name in shared if name in equal or not events]
    return shared or []
