"""Explanations of PATTERN compared with the enumeration of all worlds."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given

from anabranch.explanation.contributions import contributions
from anabranch.explanation.pattern import PatternExplainer
from tests.cases import Case
from tests.drawn import examples
from tests.explanation.local import case_of, with_selected_rows
from tests.oracles.pattern import bind_query
from tests.oracles.pattern_evidence import Slot, histories_of, probability_without
from tests.pattern.strategies import CLASSES, pattern_cases

TOLERANCE = 1e-9


class Explained:
    """One answer of a case, with what the oracle needs."""

    def __init__(self, case: Case) -> None:
        explained = case_of(case.workbook, case.query, case.rows, case.relations)
        answers = explained.answers()
        assume(answers)
        self.answer = min(answers, key=lambda row: (abs(row["probability"] - 0.5), str(row)))
        self.explainer = PatternExplainer(explained, self.answer)
        self.query = bind_query(case.workbook, case.query)
        self.rows = {name: [row for row in rows if row["t"] <= self.answer["t"]] for name, rows in case.rows.items()}
        self.relations = {name: set(rows) for name, rows in case.relations.items()}

    @property
    def key(self) -> Any:
        """The answer as the oracle names it."""
        groups = [self.answer[name] for name, _ in self.query.group_by]
        return (self.answer["t"], *groups) if groups else self.answer["t"]

    def slot(self, stream: int, row: int) -> Slot:
        """The key and instant of a row."""
        layout, table = self.explainer.case.context.layouts[stream], self.explainer.case.tables[stream]
        key = tuple(table[name][row].as_py() for name in layout.keys)
        return layout.name.lower(), key, table[layout.time][row].as_py()


@pytest.mark.usefixtures("nothing_is_too_large")
@examples(20, least=20)  # few cases have a Markov key with several instants
@given(pattern_cases(classes=CLASSES, most_worlds=300))
def test_effects_are_those_of_hidden_events(case: Case) -> None:
    explained = Explained(case)
    selected = with_selected_rows(explained.explainer.case, explained.answer)
    assert PatternExplainer(selected, explained.answer).probability == pytest.approx(explained.answer["probability"])
    for piece in explained.explainer.pieces():
        relations, hidden = explained.relations, set[Slot]()
        if piece.stream is not None:
            hidden = {explained.slot(piece.stream, row) for row in piece.rows}
            assert len(hidden) == 1
        else:
            relation = next(name for name in relations if name.lower() == piece.relation)
            table = explained.explainer.case.context.relations[relation.lower()]
            row = tuple(table.slice(piece.rows[0], 1).to_pylist()[0].values())
            rows = case.relations[relation]
            if rows.count(row) > 1:
                continue
            relations = {**relations, relation: relations[relation] - {row}}
        want = probability_without(explained.query, explained.rows, relations, explained.key, hidden)
        assert explained.explainer.without([piece]) == pytest.approx(want, abs=TOLERANCE), piece.text


@pytest.mark.usefixtures("nothing_is_too_large")
@examples(40)
@given(pattern_cases(classes=CLASSES, most_worlds=300))
def test_histories_are_the_most_likely_ones(case: Case) -> None:
    explained = Explained(case)
    spec_layouts = explained.explainer.case.context.layouts
    for true, found in zip((True, False), explained.explainer.likeliest(), strict=True):
        slots = set() if found is None else {
            (spec_layouts[moment.stream].name.lower(), moment.key, explained.explainer.time_of(moment.t))
            for moment in found.moments
        }  # fmt: skip
        histories = histories_of(explained.query, explained.rows, explained.relations, explained.key, slots)
        possible = [p for p, truths in histories.values() if truths == {true} and p > 0]
        if found is None:
            certain = explained.explainer.probability if true else 1 - explained.explainer.probability
            assert certain < TOLERANCE
            continue
        assigned = frozenset(
            (
                (spec_layouts[moment.stream].name.lower(), moment.key, explained.explainer.time_of(moment.t)),
                moment.value,
            )
            for moment in found.moments
            if moment.value is not None
        )
        assert histories[assigned][1] == {true}
        assert math.exp(found.log_p) == pytest.approx(histories[assigned][0], abs=TOLERANCE)
        assert math.exp(found.log_p) == pytest.approx(max(possible), abs=TOLERANCE)


def test_a_chain_without_events_at_the_instant_is_not_true() -> None:
    workbook = """
    CREATE STREAM at KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT;
    CREATE QUERY q AS PATTERN at(x, 'a') THEN at(x, 'b');
    """
    rows = [("one", "a", 1, 0.9), ("one", "b", 2, 0.9), ("two", "a", 1, 0.6), ("two", "b", 3, 0.3)]
    case = case_of(workbook, "q", {"at": [dict(zip(("k", "v", "t", "p"), row, strict=True)) for row in rows]})
    answer = next(row for row in case.answers() if row["t"] == 3)
    true, false = PatternExplainer(case, answer).histories()
    assert {moment.subject for moment in true.moments} == {"at('two')"}
    assert true.probability == pytest.approx(0.6 * 0.3)
    # The first key is most likely true at 2, which makes no difference at 3.
    assert false.probability == pytest.approx(0.9 * 0.9 * 0.6 * 0.7)


def test_of_many_pieces_the_strongest_are_found_in_blocks() -> None:
    weights = {f"{number}": 0.0 for number in range(5000)} | {"17": 0.3, "1234": -0.2, "4999": 0.1}
    from anabranch.explanation.pieces import Piece

    pieces = [Piece("event", text) for text in weights]
    runs = []

    def without(left_out: Any) -> float:
        runs.append(len(left_out))
        return 0.5 - sum(weights[piece.text] for piece in left_out)

    found = contributions(pieces, 0.5, without)
    assert [(item.piece.text, round(item.effect, 9)) for item in found.items] == [
        ("17", 0.3), ("1234", -0.2), ("4999", 0.1),
    ]  # fmt: skip
    assert found.complete
    assert found.n_effective == 3
    assert len(runs) < 200
