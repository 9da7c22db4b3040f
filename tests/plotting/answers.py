"""Small answers of every kind, with the columns that runs give."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from anabranch.evaluation import Evaluation, evaluate
from tests.charts.answers import NINE

TIME = pa.timestamp("us", "UTC")


def at(minute: float) -> datetime:
    return NINE + timedelta(minutes=minute)


def coffee() -> pa.Table:
    """A PATTERN with GROUP BY: three people, one of them with sampled answers."""
    rows = [
        (person, minute, p)
        for person, peaks in (("ana", (0.28, 0.46, 0.71, 0.33)), ("ben", (0.3, 0.12)), ("eva", (0.05, 0.64, 0.9)))
        for minute, p in enumerate(peaks)
    ]
    sampled = [0.02 if person == "eva" else 0.0 for person, _, _ in rows]
    return pa.table(
        {
            "t": pa.array([at(10 * minute) for _, minute, _ in rows], TIME),
            "p": [person for person, _, _ in rows],
            "probability": [p for _, _, p in rows],
            "lower": [p - half for (_, _, p), half in zip(rows, sampled, strict=True)],
            "upper": [p + half for (_, _, p), half in zip(rows, sampled, strict=True)],
            "method": ["sampling" if half else "exact" for half in sampled],
        }
    )


def breaks() -> pa.Table:
    """A PATTERN with PER: a row for each window."""
    windows = [("ana", 0, 0.9), ("ana", 10, 0.4), ("ben", 10, 0.75), ("ben", 30, 0.2)]
    return pa.table(
        {
            "t_from": pa.array([at(start) for _, start, _ in windows], TIME),
            "t_to": pa.array([at(start + 10) for _, start, _ in windows], TIME),
            "p": [person for person, _, _ in windows],
            "probability": [p for _, _, p in windows],
        }
    )


READING = pa.struct([("tag", pa.string()), ("reader", pa.string()), ("t", pa.int64())])


def bought() -> pa.Table:
    """A SEQUENCE of three components; the till is missing in two of the matches, and the shelf in one."""

    def reading(tag: str, reader: str, t: int) -> dict[str, Any]:
        return {"tag": tag, "reader": reader, "t": t}

    matches = [
        (1.0, reading("pen", "shelf", 0), reading("pen", "till", 3), reading("pen", "exit", 5)),
        (0.1, reading("pen", "shelf", 0), None, reading("pen", "exit", 5)),
        (0.12, reading("cup", "shelf", 1), None, reading("cup", "exit", 7)),
        (0.4, None, reading("ink", "till", 6), reading("ink", "exit", 9)),
    ]
    return pa.table(
        {
            "t": pa.array([row[3]["t"] for row in matches], pa.int64()),
            "t_start": pa.array([min(e["t"] for e in row[1:] if e) for row in matches], pa.int64()),
            "probability": [row[0] for row in matches],
            **{name: pa.array([row[i] for row in matches], READING) for i, name in enumerate("xyz", start=1)},
        }
    )


JOURNEY = pa.struct([("line", pa.string()), ("journey", pa.string())])


def met() -> pa.Table:
    """A RELATE with COMPLEMENT: pairs of journeys."""
    pairs = [("early", "late", 0.8), ("early", "express", 0.35), ("late", "express", 1.0)]
    return pa.table(
        {
            "a": pa.array([{"line": "D40", "journey": a} for a, _, _ in pairs], JOURNEY),
            "b": pa.array([{"line": "D40", "journey": b} for _, b, _ in pairs], JOURNEY),
            "probability": [p for _, _, p in pairs],
            "complement": [1 - p for _, _, p in pairs],
        }
    )


def sectors() -> pa.Table:
    """A RELATE with more pairs than a list shows."""
    pairs = [(a, b) for a in range(1, 12) for b in range(a + 1, 13)]
    sector = pa.struct([("sector", pa.int64())])
    return pa.table(
        {
            "a": pa.array([{"sector": a} for a, _ in pairs], sector),
            "b": pa.array([{"sector": b} for _, b in pairs], sector),
            "probability": [1 / (b - a) for a, b in pairs],
        }
    )


def journeys() -> pa.Table:
    """The events of the journeys of `met`; the early bus left its second stop at an instant that was lost."""
    times = {"early": (0, 4, 10, None, 30, 34), "late": (3, 6, 14, 18, 33, 40), "express": (2, 5, 11, 16)}
    rows = [
        {"line": "D40", "journey": journey, "seq": number, "t": t}
        for journey, events in times.items()
        for number, t in enumerate(events, start=1)
        if t is not None
    ]
    return pa.Table.from_pylist(rows)


def near(live: bool = False) -> pa.Table:
    """A MONITOR with a THRESHOLD; on a stream also with a status."""
    car = pa.struct([("car", pa.string()), ("t", pa.float64())])
    rows = [
        ("a", "b", 7.0, 13.0, 8.0, 12.0, 1.0),
        ("a", "c", 15.0, 19.0, None, None, 0.45),
        ("b", "c", 3, 6, 4, 5, 0.8),
    ]
    table = pa.table(
        {
            "a": pa.array([{"car": row[0], "t": 0.0} for row in rows], car),
            "b": pa.array([{"car": row[1], "t": 0.0} for row in rows], car),
            **{
                name: pa.array([row[index] for row in rows], pa.float64())
                for index, name in enumerate(("valid_from", "valid_to", "certain_from", "certain_to"), start=2)
            },
            "probability": [row[6] for row in rows],
        }
    )
    return table.append_column("status", pa.array(["validated", "tentative", "partial"])) if live else table


def predictions() -> pa.Table:
    rows = [("a", 0.0, 0.0, 10.0), ("a", 10.0, 98.0, 6.0), ("b", 0.0, 100.0, 0.0), ("c", 0.0, 160.0, -3.0)]
    return pa.Table.from_pylist([dict(zip(("car", "t", "x", "x_rate"), row, strict=True)) for row in rows])


def storms(date_line: bool = False) -> pa.Table:
    """A CONSTRAIN over readings of buoys in the North Atlantic, or on both sides of the date line."""
    buoy = pa.struct([("id", pa.string()), ("t", TIME), ("lon", pa.float64()), ("lat", pa.float64())])
    triples = [
        (0.9, ((-30.0, 45.0), (-22.0, 48.0), (-27.0, 52.0))),
        (0.6, ((-12.0, 44.0), (-9.0, 50.0), (-16.0, 55.0))),
        (0.2, ((-45.0, 40.0), (-40.0, 46.0), (-50.0, 47.0))),
    ]
    moved = 165.0 if date_line else 0.0

    def event(index: int, number: int, place: tuple[float, float]) -> dict[str, Any]:
        lon = (place[0] - moved + 180) % 360 - 180
        return {"id": f"b{index}{number}", "t": at(60 * index + number), "lon": lon, "lat": place[1]}

    events = [[event(i, k, place) for k, place in enumerate(places)] for i, (_, places) in enumerate(triples)]
    return pa.table(
        {
            "t": pa.array([row[-1]["t"] for row in events], TIME),
            **{name: pa.array([row[k] for row in events], buoy) for k, name in enumerate(("u", "v", "w"))},
            "probability": [p for p, _ in triples],
        }
    )


def pumps() -> pa.Table:
    """A CONSTRAIN over a set of events without locations."""
    event = pa.struct([("pump", pa.int64()), ("when", pa.float64())])
    sets = [[{"pump": 1, "when": 0.5}, {"pump": 1, "when": 4.0}], [{"pump": 2, "when": 5.0}, {"pump": 2, "when": 9.5}]]
    return pa.table({"t": [4.0, 9.5], "v": pa.array(sets, pa.list_(event)), "probability": [0.36, 0.18]})


def evaluation() -> Evaluation:
    """Forty cases, of which those with a high probability are more often true."""
    shares = [(case * 7 % 40) / 40 + 0.01 for case in range(40)]
    answers = pa.table({"case": list(range(40)), "t": [100 * case for case in range(40)], "probability": shares})
    true = [case for case in range(40) if shares[case] > 0.35 + 0.3 * (case % 2)]
    return evaluate(answers, pa.table({"case": true, "t": [100 * case for case in true]}), tolerance=5)
