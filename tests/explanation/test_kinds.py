"""Explanations of SEQUENCE, MONITOR, RELATE and CONSTRAIN, compared with formulas and oracles."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from math import exp
from typing import Any

import pytest

from anabranch.errors import AnabranchError
from anabranch.explanation.case import Case
from anabranch.explanation.explain import explain, explainer_of
from anabranch.explanation.explanation import Explanation
from tests.explanation.local import case_of, with_selected_rows
from tests.local import bound_query
from tests.oracles.sequence import matches

SHOP = """
CREATE STREAM reads KEY (tag STRING) VALUE (reader STRING) TIME t INTEGER;
CREATE QUERY shop AS SEQUENCE (x, !y, z) FROM reads
  WHERE x.reader = 'shelf' AND y.reader = 'till' AND z.reader = 'exit' AND x.tag = y.tag AND y.tag = z.tag
  MISS y 0.1, x 0.05 DELAY x UNIFORM(0, 100), y EXPONENTIAL(20) WITHIN 120 THRESHOLD 0.1;
"""

CARS = """
CREATE STREAM cars KEY (car INTEGER) VALUE (x DOUBLE, y DOUBLE) TIME t DOUBLE
  MODEL PREDICTED ERROR (x = 10, y = 5) PERIOD 20;
CREATE QUERY near AS MONITOR a, b FROM cars AS a, cars AS b
  WHERE ABS(a.x - b.x) <= 12 AND ABS(a.y - b.y) <= 6 AND a.car < b.car WITHIN 0 SEMANTICS MAY THRESHOLD 0.1;
"""

JAMS = """
CREATE STREAM jam KEY (sector INTEGER) TIME t INTEGER MODEL INTERVALS ORDER seq HORIZON [0, 100];
CREATE QUERY jams AS RELATE SOME a INTERSECTS SOME b FROM jam AS a, jam AS b WHERE a.sector < b.sector;
"""

COLLISION = """
CREATE STREAM e KEY (id INTEGER) VALUE (kind STRING, x DOUBLE, y DOUBLE) TIME t INTEGER
  MODEL INDEPENDENT SPACE (x, y);
CREATE QUERY hit AS CONSTRAIN v, w, NOT u FROM e
  WHERE v.kind = 'A' AND w.kind = 'B' AND u.kind = 'C'
    AND DISTANCE(v, w) < 1 AND w.t - v.t IN [0, 5] AND u.t - v.t IN [0, 5];
"""


def reads(*events: tuple[str, int], tag: str = "a") -> list[dict[str, Any]]:
    return [{"tag": tag, "reader": reader, "t": t} for reader, t in events]


def effects(explanation: Explanation) -> dict[str, float]:
    """The probability without each piece of evidence, by its text."""
    return {item.piece.text: item.without for item in explanation.contributions.items}


def only(case: Case) -> Explanation:
    """The explanation of the most probable answer."""
    return explain(case, max(case.answers(), key=lambda row: row["probability"]))


# ---------------------------------------------------------------- SEQUENCE


def survival(length: float) -> float:
    """The factor of the negative y in a gap: that it did not happen, given that it was not read."""
    above = exp(-length / 20)
    return above / (0.1 * (1 - above) + above)


def test_a_sequence_depends_on_its_events_and_on_the_loss_rates() -> None:
    explanation = only(case_of(SHOP, "shop", {"reads": reads(("shelf", 10), ("exit", 40), ("shelf", 45))}))
    assert explanation.probability == pytest.approx(survival(30))
    found = effects(explanation)
    assert found["MISS y 0.1"] == pytest.approx(1.0)
    assert found["z: tag = 'a', reader = 'exit'"] == 0.0
    true, false = explanation.histories
    assert [moment.event for moment in true.moments][1] == "did not happen"
    assert [moment.event for moment in false.moments][1] == "happened, but was not read"
    assert false.probability == pytest.approx(1 - survival(30))
    assert "+0." in str(explanation)


def test_a_missing_reading_has_its_most_likely_time() -> None:
    case = case_of(SHOP, "shop", {"reads": reads(("exit", 200))})
    true, _ = only(case).histories
    # Late in the window: a later x leaves y less time. The delay of x is at most 100 of the 120.
    (unread,) = [moment for moment in true.moments if moment.event == "happened, but was not read"]
    assert unread.t == pytest.approx(180, abs=1)


def test_without_an_event_a_sequence_is_that_of_the_other_events() -> None:
    shuffled = random.Random(7)
    query, compared = bound_query(SHOP, "shop"), 0
    for _ in range(12):
        rows = reads(*sorted((shuffled.choice(("shelf", "till", "exit")), shuffled.randrange(120)) for _ in range(5)))
        rows = list({row["t"]: row for row in rows}.values())
        case = case_of(SHOP, "shop", {"reads": rows})
        for answer in case.answers():
            explainer = explainer_of("SEQUENCE")(case, answer)
            for piece in explainer.pieces():
                if piece.stream is None:
                    continue
                (row,) = (case.tables[0].slice(number, 1).to_pylist()[0] for number in piece.rows)
                others = [other for other in rows if other != row]
                wanted = {name: None if answer[name] == row else answer[name] for name in ("x", "z")}
                found = matches(query, {"reads": others})
                p = [match["probability"] for match in found if all(match[name] == wanted[name] for name in wanted)]
                # The oracle applies THRESHOLD, which explanations do not.
                got = explainer.without([piece])
                assert got == pytest.approx(p[0]) if p else got < 0.1
                compared += bool(p)
    assert compared > 10


# ---------------------------------------------------------------- MONITOR


def car(number: int, t: float, x: float, y: float, x_rate: float) -> dict[str, Any]:
    return {"car": number, "t": t, "x": x, "y": y, "x_rate": x_rate, "y_rate": 0.0}


def test_a_monitor_depends_on_errors_and_constraints() -> None:
    case = case_of(CARS, "near", {"cars": [car(1, 0.0, 0.0, 0.0, 1.0), car(2, 0.0, 30.0, 5.0, -1.0)]})
    explanation = only(case)
    found = effects(explanation)
    # At t = 15 both are at x = 15: P(|D| <= 12) of a triangle on [-20, 20].
    x = 1 - 0.4**2
    assert found["ABS(a.y - b.y) <= 6"] == pytest.approx(x, abs=1e-6)
    assert explanation.probability == pytest.approx(x * found["ABS(a.x - b.x) <= 12"], abs=1e-6)
    assert found["error of a(1): x ± 10, y ± 5"] == pytest.approx(0.6, abs=1e-6)  # uniform: certain in x, 6 / 10 in y
    true, false = explanation.histories
    assert [moment.t for moment in true.moments] == pytest.approx([15.0, 15.0], abs=0.01)
    assert false.moments[-1].subject == "ABS(a.y - b.y) <= 6"


VANS = """
CREATE STREAM positions KEY (id INTEGER) TIME t DOUBLE SPACE (x, y);
CREATE STREAM vans KEY (id INTEGER) VALUE (x DOUBLE, y DOUBLE) TIME t DOUBLE
  PREDICTED FROM positions ERROR 4 PERIOD 10;
CREATE QUERY near AS MONITOR a, b FROM vans AS a, vans AS b
  WHERE ABS(a.x - b.x) <= 5 AND a.id < b.id WITHIN 0 SEMANTICS MAY;
"""


def test_predictions_that_are_made_from_positions_depend_on_each_of_them() -> None:
    places = {1: [(0.0, 0.0), (5.0, 5.0), (10.0, 20.0)], 2: [(0.0, 20.0), (5.0, 16.0), (10.0, 21.0)]}
    rows = [{"id": van, "t": t, "x": x, "y": 0.0} for van, path in places.items() for t, x in path]
    case = case_of(VANS, "near", {"positions": rows})
    answer = min(case.answers(), key=lambda row: abs(row["probability"] - 0.5))
    explainer = explainer_of("MONITOR")(case, answer)
    positions = [piece for piece in explainer.pieces() if piece.what == "position"]
    assert len(positions) == len(rows)
    effects_of = set()
    for piece in positions:
        (number,) = piece.rows
        others = case_of(
            VANS, "near", {"positions": [row for index, row in enumerate(rows) if index != number]}
        ).answers()
        same_time = [
            row["probability"]
            for row in others
            if row["valid_from"] <= answer["valid_to"] and answer["valid_from"] <= row["valid_to"]
        ]
        assert explainer.without([piece]) == pytest.approx(max(same_time, default=0.0)), piece.text
        effects_of.add(explainer.without([piece]))
    assert len(effects_of) > 1, "some positions matter, and some do not"


# ---------------------------------------------------------------- RELATE


def jams(sector: int, *times: int | None) -> list[dict[str, Any]]:
    return [{"sector": sector, "seq": seq, "t": t} for seq, t in enumerate(times, 1)]


def test_a_relation_depends_on_every_recorded_time_around_a_lost_one() -> None:
    case = case_of(JAMS, "jams", {"jam": [*jams(1, 10, None, 50, 60), *jams(2, 30, 45)]})
    explanation = only(case)
    # The lost end is uniform between 10 and 50; the answer is true from 30 on.
    assert explanation.probability == pytest.approx(0.5)
    lost = case_of(JAMS, "jams", {"jam": [*jams(1, 10, None, None, 60), *jams(2, 30, 45)]})
    assert effects(explanation)["jam(1): event 3 (segment 2 starts)"] == pytest.approx(lost.answers()[0]["probability"])
    true, false = explanation.histories
    (end,) = [moment for moment in true.moments if moment.event.endswith("(lost)")]
    assert 30 <= end.t <= 50
    (end,) = [moment for moment in false.moments if moment.event.endswith("(lost)")]
    assert 10 <= end.t <= 30


# ---------------------------------------------------------------- CONSTRAIN


def event(number: int, kind: str, t: int, x: float, p: float) -> dict[str, Any]:
    return {"id": number, "kind": kind, "t": t, "x": x, "y": 0.0, "p": p}


def test_a_configuration_depends_on_the_probabilities_of_its_events() -> None:
    rows = [
        event(1, "A", 0, 0.0, 0.9),
        event(1, "B", 0, 9.0, 0.1),
        event(2, "B", 4, 0.9, 0.5),
        event(3, "C", 2, 5, 0.2),
    ]
    explanation = only(case_of(COLLISION, "hit", {"e": rows}))
    assert explanation.probability == pytest.approx(0.9 * 0.5 * 0.8)
    without = {text.split(":")[0]: p for text, p in effects(explanation).items()}
    assert without == pytest.approx({"doubt about v": 0.4, "doubt about w": 0.72, "e": 0.45})
    true, false = explanation.histories
    assert any("DISTANCE(v, w) < 1: it is 0.9" in moment.event for moment in true.moments)
    assert [moment.event for moment in false.moments if moment.subject == "w"] == ["did not happen"]


def test_a_configuration_depends_on_the_errors_of_its_locations() -> None:
    workbook = """
    CREATE STREAM phone KEY (id INTEGER) TIME t TIMESTAMP SPACE (x, y) ERROR 10;
    CREATE QUERY meet AS CONSTRAIN a, b FROM phone
      WHERE a.id < b.id AND SPAN(a, b) <= 2 HOURS AND DISTANCE(a, b) <= 20 SEMANTICS EXPECTED;
    """
    start = datetime(2026, 3, 2, 9, tzinfo=UTC)
    rows = [
        {"id": 1, "t": start, "x": 0.0, "y": 0.0},
        {"id": 2, "t": start + timedelta(minutes=63), "x": 18.0, "y": 0.0},
    ]
    explanation = only(case_of(workbook, "meet", {"phone": rows}))
    assert 0.4 < explanation.probability < 0.9
    assert effects(explanation)["ERROR 10 of phone"] == pytest.approx(1.0), "the readings are near enough"
    bounds = [moment.event for moment in explanation.histories[0].moments if moment.subject == "bound"]
    assert bounds == ["DISTANCE(a, b) <= 20: it is 18", "SPAN(a, b) <= 2 hours: it is 1.05 hours"]


# ---------------------------------------------------------------- all kinds


@pytest.mark.parametrize(
    ("workbook", "query", "stream", "rows", "n_needed"),
    [
        (SHOP, "shop", "reads", [*reads(("shelf", 10), ("exit", 40), ("till", 45)), *reads(("till", 20), tag="b")], 2),
        (CARS, "near", "cars", [car(1, 0.0, 0.0, 0.0, 1.0), car(2, 0.0, 30.0, 5.0, -1.0), car(3, 0.0, 900, 0, 0)], 2),
        (JAMS, "jams", "jam", [*jams(1, 10, None, 50, 60), *jams(2, 30, 45), *jams(3, 70, 80)], 6),
        (COLLISION, "hit", "e", [event(1, "A", 9, 0, 0.9), event(2, "B", 9, 0, 0.5), event(3, "C", 99, 5, 0.2)], 2),
    ],
)
def test_the_rows_of_an_answer_are_enough(
    workbook: str, query: str, stream: str, rows: list[dict[str, Any]], n_needed: int
) -> None:
    case = case_of(workbook, query, {stream: rows})
    answer = max(case.answers(), key=lambda row: row["probability"])
    selected = with_selected_rows(case, answer)
    assert selected.tables[0].num_rows == n_needed
    assert explain(selected, answer).probability == pytest.approx(answer["probability"])


def test_answers_that_are_none_are_refused_in_one_line() -> None:
    case = case_of(SHOP, "shop", {"reads": reads(("shelf", 10), ("exit", 40))})
    answer = case.answers()[0]
    with pytest.raises(AnabranchError, match="shop has no such answer over its inputs: x = "):
        explain(case, {**answer, "x": None, "z": None})
    with pytest.raises(AnabranchError, match="an answer has a column probability"):
        explain(case, {"t": 40})
    assert "the inputs have changed since then" in str(explain(case, {**answer, "probability": 0.5}))


def test_an_explanation_is_a_table_and_a_chart() -> None:
    pytest.importorskip("altair")
    explanation = only(case_of(SHOP, "shop", {"reads": reads(("shelf", 10), ("exit", 40))}))
    table = explanation.to_pandas()
    assert list(table.columns) == ["what", "evidence", "t", "without", "effect"]
    assert table["effect"].abs().is_monotonic_decreasing
    specification = explanation.plot().to_dict()
    assert "Why shop has probability 0.742" in str(specification["title"])
    assert explanation._repr_html_().startswith("<pre>")
