"""The oracles compared with the given answers of the case folders, in the columns `on` of `expected.json`."""

from __future__ import annotations

import csv
import itertools
import json
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from anabranch.catalog import Stream
from anabranch.language import nodes
from tests.local import bound_query
from tests.oracles import constrain, monitor, pattern, relate, sequence
from tests.oracles.monitor_regions import SEARCH_ERROR

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="there are no case folders next to the project")


def expected(kind: str) -> dict[str, Any]:
    """The expected answers of each query of a case folder; empty if there are no case folders."""
    return json.loads((CASES / kind / "expected.json").read_text()) if CASES.is_dir() else {}


def case_of(kind: str, name: str) -> tuple[Any, dict[str, list[dict[str, Any]]], Any]:
    """A query of a case folder, the rows of its streams, and its expected answers."""
    query = bound_query((CASES / kind / "workbook.abq").read_text(), name)
    rows = {stream.name: read_rows(CASES / kind / stream.source.path) for stream in query.streams}
    return query, rows, expected(kind)[name]


def read_rows(file: Path) -> list[dict[str, Any]]:
    """The rows of a CSV file: numbers if possible, else texts; an empty text is NULL."""

    def value(text: str) -> Any:
        try:
            return float(text) if "." in text else int(text)
        except ValueError:
            return text or None

    with file.open(newline="") as lines:
        return [{name: value(text) for name, text in row.items()} for row in csv.DictReader(lines)]


# ---------------------------------------------------------------- PATTERN


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in ("pattern", "pattern_stream") for name in expected(kind)]
)
def test_pattern(kind: str, name: str) -> None:
    query, rows, answers = case_of(kind, name)
    tables = {file.stem: read_rows(file) for file in (CASES / kind).glob("*.csv")}
    relations = {name: {tuple(row.values()) for row in table} for name, table in tables.items()}
    groups = [written for written, _ in query.group_by]
    assert set(answers["on"]) == {"t", *groups}
    wanted = {
        (row["t"], *(row[group] for group in groups)) if groups else row["t"]: row["probability"]
        for row in answers["rows"]
    }
    computed = pattern.at_least(pattern.probabilities(query, rows, relations), query.threshold)
    assert computed == pytest.approx(wanted, abs=1e-7)


# ---------------------------------------------------------------- SEQUENCE


@pytest.mark.parametrize("name", expected("sequence"))
def test_sequence(name: str) -> None:
    query, rows, answers = case_of("sequence", name)
    computed = {
        tuple(match[on] and match[on][answers["ids"]] for on in answers["on"]): match["probability"]
        for match in sequence.matches(query, rows)
    }
    wanted = {tuple(row[on] for on in answers["on"]): row["probability"] for row in answers["rows"]}
    assert computed == pytest.approx(wanted, abs=1e-12)


# ---------------------------------------------------------------- RELATE


def horizon_of(stream: Stream) -> tuple[Fraction, Fraction] | None:
    """The declared horizon of a stream with numeric times."""
    if stream.declaration.horizon is None:
        return None
    low, high = (Fraction(str(end.value)) for end in stream.declaration.horizon if isinstance(end, nodes.Literal))
    return low, high


def entities_of(stream: Stream, rows: list[dict[str, Any]]) -> dict[str, relate.Entity]:
    """The entities of a stream; events without a row were lost."""
    events_of: dict[str, dict[int, Fraction | None]] = defaultdict(dict)
    for row in rows:
        events_of[row["entity"]][row["seq"]] = None if row["t"] is None else Fraction(str(row["t"]))
    return {
        key: relate.entity([events.get(seq) for seq in range(1, max(events) + 1)], horizon_of(stream))
        for key, events in events_of.items()
    }


@pytest.mark.parametrize("name", expected("relate"))
def test_relate(name: str) -> None:
    query, rows, answers = case_of("relate", name)
    (stream,) = query.streams
    entities = entities_of(stream, rows[stream.name])
    quantifiers = (query.first.at_least, query.second.at_least)
    computed = {
        (a, b): float(relate.probability(entities[a], entities[b], *quantifiers, frozenset(query.relations)))
        for a, b in itertools.combinations(sorted(entities), 2)
    }
    wanted = {(row["a"], row["b"]): row["probability"] for row in answers["rows"]}
    assert {pair: p for pair, p in computed.items() if p > 0} == pytest.approx(wanted, abs=1e-9)


# ---------------------------------------------------------------- MONITOR


@pytest.mark.parametrize("name", expected("monitor"))
def test_monitor(name: str) -> None:
    query, rows, answers = case_of("monitor", name)
    # Whether an answer of duration 0 exists depends on rounding.
    computed = [
        answer
        for answer in monitor.answers(query, rows)
        if answer["valid_to"] - answer["valid_from"] >= answers["skip_small"]
    ]
    structs = {"ta": "a", "tb": "b"}
    times = [tuple(answer[structs[on]]["t"] for on in answers["on"]) for answer in computed]
    assert sorted(times) == sorted(tuple(row[on] for on in answers["on"]) for row in answers["rows"])
    by_times = dict(zip(times, computed, strict=True))
    for wanted in answers["rows"]:
        answer = by_times[tuple(wanted[on] for on in answers["on"])]
        for column, tolerance in (("valid_from", 1e-6), ("valid_to", 1e-6), ("probability", SEARCH_ERROR)):
            assert float(answer[column]) == pytest.approx(wanted[column], abs=tolerance), column


# ---------------------------------------------------------------- CONSTRAIN


@pytest.mark.parametrize("name", expected("constrain"))
def test_constrain(name: str) -> None:
    query, rows, answers = case_of("constrain", name)
    computed = [
        [row[on][answers["ids"]] if isinstance(row[on], dict) else row[on] for on in answers["on"]]
        for row in constrain.solutions(query, rows)
    ]
    assert sorted(computed) == sorted([row[on] for on in answers["on"]] for row in answers["rows"])
    assert {row["probability"] for row in answers["rows"]} <= {1.0}
