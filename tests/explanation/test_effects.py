"""The stated effects of all kinds but PATTERN: inputs without a piece, run by the same kernels, give the stated change.

The inputs are written again without the piece, as another workbook or other rows, and become a case of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from anabranch.explanation.contributions import contributions
from anabranch.explanation.explain import explainer_of
from anabranch.explanation.identity import find
from anabranch.explanation.pieces import Piece
from tests.cases import Case
from tests.drawn import examples
from tests.explanation.local import case_of, with_selected_rows
from tests.sequence.strategies import is_contested, sequence_cases

TOLERANCE = 1e-9

Row = dict[str, Any]


class Inputs(NamedTuple):
    """A workbook with a query `q`, and the rows of its streams."""

    workbook: str
    rows: Mapping[str, Sequence[Row]]
    relations: Mapping[str, Sequence[tuple[Any, ...]]] = {}

    def answers(self) -> list[Row]:
        return case_of(self.workbook, "q", self.rows, self.relations).answers()

    def with_row(self, stream: str, number: int, **changes: Any) -> Inputs:
        """Other values in a row."""
        rows = [row | changes if index == number else row for index, row in enumerate(self.rows[stream])]
        return self._replace(rows={**self.rows, stream: rows})

    def without_row(self, stream: str, number: int) -> Inputs:
        rows = [row for index, row in enumerate(self.rows[stream]) if index != number]
        return self._replace(rows={**self.rows, stream: rows})


Without = Callable[[Inputs, Piece], tuple[Inputs, Row] | None]


def assert_effects(kind: str, inputs: Inputs, without: Without) -> None:
    """Compare the effects of one answer; `without` gives the inputs without a piece, and what the answer then is."""
    case = case_of(inputs.workbook, "q", inputs.rows, inputs.relations)
    answers = case.answers()
    assume(answers)
    answer = min(answers, key=lambda row: (abs(row["probability"] - 0.5), str(row)))
    selected = explainer_of(kind)(with_selected_rows(case, answer), answer)
    assert selected.probability == pytest.approx(answer["probability"], abs=TOLERANCE)
    effects = contributions(selected.pieces(), selected.probability, selected.without)
    stated = {item.piece.text: item for item in effects.items}
    compared = 0
    for piece in explainer_of(kind)(case, answer).pieces():
        changed = without(inputs, piece)
        if changed is None:
            continue
        found = find(changed[0].answers(), changed[1])
        want = max((float(row["probability"]) for row in found), default=0.0)
        compared += 1
        item = stated.get(piece.text)
        if item is None:
            assert want == pytest.approx(answer["probability"], abs=1e-8), f"{piece.text} has no stated effect"
        else:
            assert item.without == pytest.approx(want, abs=TOLERANCE), piece.text
            assert item.effect == pytest.approx(answer["probability"] - want, abs=TOLERANCE), piece.text
    event(f"{min(compared, 3)} pieces or more")


# ---------------------------------------------------------------- SEQUENCE


@examples(15)
@given(sequence_cases(), st.data())
def test_a_sequence_without_an_event_or_a_row_of_a_relation(case: Case, data: st.DataObject) -> None:
    # The files of EMPIRICAL delays are not written here.
    assume(not case.delays and not is_contested(case))
    names = {name.lower(): name for name in case.rows}
    explained = case_of(case.workbook, case.query, case.rows, case.relations)
    answers = explained.answers()
    assume(answers)
    answer = data.draw(st.sampled_from(sorted(answers, key=str)))
    explainer = explainer_of("SEQUENCE")(explained, answer)
    assert explainer.probability == pytest.approx(answer["probability"], abs=TOLERANCE)
    for piece in explainer.pieces():
        if piece.stream is None:
            continue
        (number,) = piece.rows
        layout = explained.context.layouts[piece.stream]
        rows = [row for index, row in enumerate(explained.tables[piece.stream].to_pylist()) if index != number]
        others = {**case.rows, names[layout.name.lower()]: rows}
        left = case_of(case.workbook, case.query, others, case.relations).answers()
        found = find(left, explainer.identity_without([piece]))
        want = max((float(row["probability"]) for row in found), default=0.0)
        assert explainer.without([piece]) == pytest.approx(want, abs=TOLERANCE), piece.text


# ---------------------------------------------------------------- RELATE

RELATE = """
CREATE STREAM jam KEY (sector INTEGER) TIME t INTEGER MODEL INTERVALS ORDER seq HORIZON [0, 40];
CREATE QUERY q AS RELATE {} a {} {} b FROM jam AS a, jam AS b WHERE a.sector < b.sector;
"""


@st.composite
def relations_of_jams(draw: Any) -> Inputs:
    rows = []
    for sector in (1, 2):
        times = sorted(draw(st.sets(st.integers(1, 39), min_size=4, max_size=4)))
        lost = draw(st.sets(st.integers(0, 3), max_size=2))
        rows += [{"sector": sector, "seq": seq, "t": None if seq - 1 in lost else t} for seq, t in enumerate(times, 1)]
    quantifiers = st.sampled_from(["SOME", "ALL"])
    relation = draw(st.sampled_from(["INTERSECTS", "PRECEDES", "OVERLAPS", "DURING"]))
    return Inputs(RELATE.format(draw(quantifiers), relation, draw(quantifiers)), {"jam": rows})


def _without_a_time(inputs: Inputs, piece: Piece) -> tuple[Inputs, Row]:
    """The recorded time of a piece is lost: its text has the sector and the number of the event."""
    sector, seq = int(piece.text[4]), int(piece.text.split("event ")[1].split()[0])
    (number,) = (n for n, row in enumerate(inputs.rows["jam"]) if (row["sector"], row["seq"]) == (sector, seq))
    return inputs.with_row("jam", number, t=None), {"a": {"sector": 1}, "b": {"sector": 2}}


@examples(15)
@given(relations_of_jams())
def test_a_relation_without_a_recorded_time(inputs: Inputs) -> None:
    assert_effects("RELATE", inputs, _without_a_time)


# ---------------------------------------------------------------- MONITOR

CONSTRAINTS = ("ABS(a.x - b.x) <= 12", "ABS(a.y - b.y) <= 6", "a.x <= 20", "a.car < b.car")
MONITOR = """
CREATE STREAM cars KEY (car INTEGER) VALUE (x DOUBLE, y DOUBLE) TIME t DOUBLE
  MODEL PREDICTED ERROR (x = ex, y = ey) PERIOD 20;
CREATE QUERY q AS MONITOR a, b FROM cars AS a, cars AS b WHERE {} SEMANTICS MAY;
"""


@st.composite
def cars_that_meet(draw: Any) -> Inputs:
    numbers, rates, errors = st.integers(0, 20), st.sampled_from([-1.0, 0.0, 1.0]), st.sampled_from([0.0, 4.0, 10.0])
    rows = [
        {
            "car": car, "t": 0.0, "x": float(draw(numbers)), "y": float(draw(numbers)), "x_rate": draw(rates),
            "y_rate": draw(rates), "ex": draw(errors), "ey": draw(errors),
        }
        for car in (1, 2)
    ]  # fmt: skip
    chosen = [text for text in CONSTRAINTS[:3] if draw(st.booleans())] or [CONSTRAINTS[0]]
    return Inputs(MONITOR.format(" AND ".join([*chosen, CONSTRAINTS[3]])), {"cars": rows})


def _exact_or_free(inputs: Inputs, piece: Piece) -> tuple[Inputs, Row]:
    """A prediction is exact, or a constraint is not in the query."""
    answer = {"a": {"car": 1}, "b": {"car": 2}}
    if piece.what == "error":
        number = 0 if piece.text.startswith("error of a") else 1
        return inputs.with_row("cars", number, ex=0.0, ey=0.0), answer
    start, _, where = inputs.workbook.partition("WHERE ")
    kept = [text for text in where.partition(" SEMANTICS")[0].split(" AND ") if text != piece.text]
    return inputs._replace(workbook=f"{start}WHERE {' AND '.join(kept)} SEMANTICS MAY;"), answer


@examples(12)
@given(cars_that_meet())
def test_a_monitor_without_an_error_or_a_constraint(inputs: Inputs) -> None:
    assert_effects("MONITOR", inputs, _exact_or_free)


# ---------------------------------------------------------------- CONSTRAIN

CONDITIONS = ("v.kind = 'A'", "w.kind = 'B'", "u.kind = 'C'", "w.t - v.t IN [0, 5]", "u.t - v.t IN [0, 5]")
CONSTRAIN = """
CREATE STREAM e KEY (id INTEGER) VALUE (kind STRING, x DOUBLE, y DOUBLE) TIME t INTEGER
  MODEL INDEPENDENT SPACE (x, y){};
CREATE QUERY q AS CONSTRAIN v, w{} FROM e WHERE {}{};
"""


@st.composite
def collisions(draw: Any) -> Inputs:
    chances = st.sampled_from([0.25, 0.5, 0.75])
    rows: list[Row] = []
    for number in range(draw(st.integers(2, 4))):
        kind = "AB"[number] if number < 2 else draw(st.sampled_from("BCC"))
        t, x = draw(st.integers(0, 4)), float(draw(st.integers(0, 3)))
        rows.append({"id": number, "kind": kind, "x": x, "y": 0.0, "t": 0 if kind == "A" else t, "p": draw(chances)})
        if draw(st.booleans()):
            rows.append(rows[-1] | {"x": 9.0, "p": 0.25})
    negated, error = draw(st.booleans()), draw(st.sampled_from(["", " ERROR 1"]))
    conditions = [text for text in CONDITIONS if negated or "u." not in text] + ["DISTANCE(v, w) <= 2"]
    semantics = " SEMANTICS EXPECTED" if error else ""
    return Inputs(
        CONSTRAIN.format(error, ", NOT u" if negated else "", " AND ".join(conditions), semantics), {"e": rows}
    )


def _certain_or_free(answer: Row) -> Without:
    """An event is certain or absent, locations are known, or a condition is not in the query."""
    identity = {name: {"id": answer[name]["id"], "x": answer[name]["x"]} for name in ("v", "w")}

    def without(inputs: Inputs, piece: Piece) -> tuple[Inputs, Row]:
        rows = inputs.rows["e"]
        if piece.what == "probability":
            chosen = identity[piece.text.removeprefix("doubt about ")[0]]
            certain = [
                row | {"p": float(row["x"] == chosen["x"])} if row["id"] == chosen["id"] else row for row in rows
            ]
            return inputs._replace(rows={"e": certain}), identity
        if piece.what == "event":
            return inputs.without_row("e", piece.rows[0]), identity
        if piece.what == "error":
            return inputs._replace(workbook=inputs.workbook.replace(" ERROR 1", " ERROR 0")), identity
        return inputs._replace(workbook=_without_condition(inputs.workbook, piece.text)), identity

    return without


def _without_condition(workbook: str, text: str) -> str:
    return workbook.replace(f"{text} AND ", "") if f"{text} AND " in workbook else workbook.replace(f" AND {text}", "")


@examples(25)
@given(collisions())
def test_a_configuration_without_a_doubt_an_event_an_error_or_a_condition(inputs: Inputs) -> None:
    answers = inputs.answers()
    assume(answers)
    answer = min(answers, key=lambda row: (abs(row["probability"] - 0.5), str(row)))
    assert_effects("CONSTRAIN", inputs, _certain_or_free(answer))
