"""Explanations of a PATTERN over an inferred stream: readings are left out, and the inference runs again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from anabranch.explanation.case import Case
from anabranch.explanation.explain import explain
from anabranch.explanation.pattern import PatternExplainer
from anabranch.language import nodes
from anabranch.planning.derived import layouts_of
from anabranch.transport.job import JobContext
from tests.local import FINGERPRINT, declared, prepared_query
from tests.transport.layouts import table_of

WORKBOOK = """
CREATE STREAM readings KEY (tag STRING) VALUE (reader STRING) TIME t INTEGER;
CREATE STREAM at KEY (tag STRING) VALUE (location STRING) TIME t INTEGER
  INFERRED FROM readings USING HMM 'model' METHOD SMOOTH;
CREATE QUERY left AS PATTERN at(x, 'room') THEN at(x, 'hall') GROUP BY x;
"""
READINGS = [("a", "r", 1), ("a", "r", 2), ("a", "h", 5), ("b", "r", 1), ("b", "h", 8)]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model with two locations, and a reader in each."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "initial.csv").write_text("location,p\nroom,0.8\nhall,0.2\n")
    moves = "prev_location,location,p\nroom,room,0.7\nroom,hall,0.3\nhall,hall,0.9\nhall,room,0.1\n"
    (folder / "transition.csv").write_text(moves)
    (folder / "detection.csv").write_text("reader,location,p\nr,room,0.6\nr,hall,0.1\nh,hall,0.5\nh,room,0.05\n")
    return tmp_path


def all_rows(folder: Path, newest: int | None = None) -> Case:
    prepared, catalog = prepared_query(WORKBOOK, "left"), declared(WORKBOOK)
    (stream,) = prepared.bound.streams
    assert isinstance(stream.source, nodes.InferredSource)
    layouts = layouts_of([stream], [catalog.require_stream(stream.source.stream)], [str(folder)])
    table = table_of(layouts[0], [{"tag": tag, "reader": reader, "t": t} for tag, reader, t in READINGS])
    context = JobContext(layouts, {}, FINGERPRINT, False, (str(folder),))
    return Case.of(prepared, catalog, context, (table,), None if newest is None else {layouts[0].name: newest})


def test_readings_are_left_out_and_other_keys_are_not_needed(model: Path) -> None:
    whole = all_rows(model)
    rows = {(row["t"], row["x"]): row["probability"] for row in whole.answers()}
    (table,) = whole.tables
    own = all_rows(model, newest=8).with_tables((table.filter(pc.equal(table["tag"], "a")),))
    # After its last reading, a key still has rows: up to the newest reading of any key.
    assert {row["t"] for row in own.answers()} >= {6, 7, 8}
    for answer in own.answers():
        assert answer["probability"] == pytest.approx(rows[answer["t"], "a"])
    answer = next(row for row in own.answers() if row["t"] == 5)
    explainer = PatternExplainer(own, answer)
    for number, piece in enumerate(explainer.pieces()):
        kept = [other for other in range(table.num_rows) if other != number]
        expected = [row for row in replace(whole, tables=(table.take(pa.array(kept)),)).answers() if row["x"] == "a"]
        (p,) = [row["probability"] for row in expected if row["t"] == 5]
        assert explainer.without([piece]) == pytest.approx(p)
    explanation = explain(own, answer)
    assert [item.piece.what for item in explanation.contributions.items] == ["reading"] * 3
    true, false = explanation.histories
    assert (true.moments[-1].t, true.moments[-1].event) == (5, "'hall'  (goal 2)")
    assert 0 < (true.share or 0) <= 1
    assert 0 < (false.share or 0) <= 1
