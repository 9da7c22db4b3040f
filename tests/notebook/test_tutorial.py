"""The notebooks of the tutorial, run one after another in kernels of their own; what they say about results is true."""

import ast
import json
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial"
SECONDS = 600
"""For one cell, on a slow machine."""


def execute(name, folder):
    """The notebook after a run in a folder."""
    notebook = nbformat.read(TUTORIAL / f"{name}.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "notebooks are stored without outputs"
    NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


def outputs(notebook, source):
    """All texts that the cell shows whose source contains this text."""
    (cell,) = [cell for cell in notebook.cells if cell.cell_type == "code" and source in cell.source]
    shown = [output.get("data", {}) for output in cell.outputs]
    return [text for data in shown for text in data.values()] + [output.get("text", "") for output in cell.outputs]


def shows(notebook, source, *texts):
    everything = "\n".join(map(str, outputs(notebook, source)))
    return [text for text in texts if text not in everything] == []


def result(notebook, source):
    """The value of a cell, from its text."""
    (cell,) = [cell for cell in notebook.cells if cell.cell_type == "code" and source in cell.source]
    (output,) = [output for output in cell.outputs if output.output_type == "execute_result"]
    return ast.literal_eval(output.data["text/plain"])


def test_the_links_of_notebooks_have_a_target():
    for path in TUTORIAL.glob("*.ipynb"):
        texts = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown"]
        links = re.findall(r"\]\(([^)#]+)", "\n".join(texts))
        assert links
        assert [link for link in links if not (TUTORIAL / link).exists()] == []


def test_every_notebook_is_run():
    assert [path.stem for path in sorted(TUTORIAL.glob("*.ipynb"))] == [
        "1-from-readings-to-answers",
        "2-the-same-query-live",
        "3-your-own-data",
        "4-is-it-calibrated",
    ]


@pytest.mark.spark
def test_from_readings_to_answers(tmp_path):
    notebook = execute("1-from-readings-to-answers", tmp_path)
    assert shows(notebook, "run to_coffee", "0.470", "0.530", "to_coffee: 6 answers; ", "<picture>")
    assert shows(notebook, "METHOD VITERBI", "<guessed: 1 answer>", "1.000")
    assert shows(notebook, 'pivot(index="t"', "0.47", "0.53")
    assert shows(notebook, "explain to_coffee", "extended regular")


@pytest.mark.spark
def test_the_same_query_live(tmp_path):
    notebook = execute("2-the-same-query-live", tmp_path)
    assert result(notebook, "for instant in (2, 3)") == [], "the instant 3 is not complete"
    live = result(notebook, "session.end_input")
    assert sorted(live) == [(3, "ana", 0.28), (3, "ben", 0.3), (4, "ana", 0.456)]
    assert result(notebook, "same = ") is True
    assert shows(notebook, "session.counts", "read=24, ", "answers=3")


@pytest.mark.spark
def test_your_own_data(tmp_path):
    notebook = execute("3-your-own-data", tmp_path)
    assert shows(notebook, "new pattern", "guessed: seen_at is the time")
    assert "PROBABILITY" not in (tmp_path / "draft.abq").read_text(), "the draft takes the rows as certain"
    assert shows(notebook, "moved = ", "<moved: 3 answers>", "11 rows read, 10 used, 0 late, 1 quarantined")
    ((reason, row),) = result(notebook, "session.quarantine")
    assert (reason, json.loads(row)["score"]) == ("score is outside [0, 1]", 1.7)
    assert shows(notebook, "again = ", "<moved: 4 answers>", "11 rows read, 11 used")
    assert shows(notebook, "%%anabranch vault", "<vault: 2 answers>")
    assert (tmp_path / "moved.html").stat().st_size > 100_000


@pytest.mark.spark
def test_is_it_calibrated(tmp_path):
    notebook = execute("4-is-it-calibrated", tmp_path)
    assert shows(notebook, "right = ", "<stolen: 540 answers>", "the first 20 of 540 answers")
    assert shows(notebook, "measured = ", "0.0288 ± 0.0134", "share of true answers")
    assert shows(notebook, "wrong = ", "0.2383 ± 0.0126")
    # On answers that were held out, and on those of another shop.
    assert shows(notebook, "wrong.learn", "0.238 before, 0.038 after")
    assert shows(notebook, "before = ", "0.245 before, 0.037 after")
