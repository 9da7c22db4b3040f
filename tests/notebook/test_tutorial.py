"""The notebooks of the tutorial, run one after another; what they say about results is true.

They run in one kernel and one folder, because a start of Spark takes longer than a notebook. Between two of them, all
variables are removed, and so the session of Anabranch.
"""

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

NAMES = ["1-from-readings-to-answers", "2-the-same-query-live", "3-your-own-data", "4-is-it-calibrated"]


class Executed:
    """The notebooks after a run.

    Attributes
    ----------
    folder : where they have run
    notebooks : by name
    """

    def __init__(self, folder):
        self.folder = folder
        self.notebooks = {name: nbformat.read(TUTORIAL / f"{name}.ipynb", as_version=4) for name in NAMES}
        # The cells are those of the notebooks, so they get the outputs.
        together = nbformat.v4.new_notebook(metadata=self.notebooks[NAMES[0]].metadata)
        for notebook in self.notebooks.values():
            assert not any(cell.get("outputs") for cell in notebook.cells), "notebooks are stored without outputs"
            first = next(cell for cell in notebook.cells if cell.cell_type == "code")
            assert first.source == "%load_ext anabranch", "it must not need what another one has loaded"
            together.cells += [*notebook.cells, nbformat.v4.new_code_cell("%reset -f")]
        NotebookClient(together, timeout=SECONDS, resources={"metadata": {"path": str(folder)}}).execute()


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    return Executed(tmp_path_factory.mktemp("tutorial"))


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
    assert [path.stem for path in sorted(TUTORIAL.glob("*.ipynb"))] == NAMES


@pytest.mark.spark
def test_from_readings_to_answers(executed):
    notebook = executed.notebooks["1-from-readings-to-answers"]
    assert shows(notebook, "run to_coffee", "0.470", "0.530", "to_coffee: 6 answers; ", "<picture>")
    assert shows(notebook, "METHOD VITERBI", "<guessed: 1 answer>", "1.000")
    assert shows(notebook, 'pivot(index="t"', "0.47", "0.53")
    assert shows(notebook, "explain to_coffee", "extended regular")


@pytest.mark.spark
def test_the_same_query_live(executed):
    notebook = executed.notebooks["2-the-same-query-live"]
    assert result(notebook, "for instant in (2, 3)") == [], "the instant 3 is not complete"
    live = result(notebook, "session.end_input")
    assert sorted(live) == [(3, "ana", 0.28), (3, "ben", 0.3), (4, "ana", 0.456)]
    assert result(notebook, "same = ") is True
    assert shows(notebook, "session.counts", "read=24, ", "answers=3")


@pytest.mark.spark
def test_your_own_data(executed):
    notebook = executed.notebooks["3-your-own-data"]
    assert shows(notebook, "new pattern", "guessed: seen_at is the time")
    assert "PROBABILITY" not in (executed.folder / "draft.abq").read_text(), "the draft takes the rows as certain"
    assert shows(notebook, "moved = ", "<moved: 3 answers>", "11 rows read, 10 used, 0 late, 1 quarantined")
    ((reason, row),) = result(notebook, "session.quarantine")
    assert (reason, json.loads(row)["score"]) == ("score is outside [0, 1]", 1.7)
    assert shows(notebook, "again = ", "<moved: 4 answers>", "11 rows read, 11 used")
    assert shows(notebook, "%%anabranch vault", "<vault: 2 answers>")
    assert (executed.folder / "moved.html").stat().st_size > 100_000


@pytest.mark.spark
def test_is_it_calibrated(executed):
    notebook = executed.notebooks["4-is-it-calibrated"]
    assert shows(notebook, "right = ", "<stolen: 540 answers>", "the first 20 of 540 answers")
    assert shows(notebook, "measured = ", "0.0288 ± 0.0134", "share of true answers")
    assert shows(notebook, "wrong = ", "0.2383 ± 0.0126")
    # On answers that were held out, and on those of another shop.
    assert shows(notebook, "wrong.learn", "0.238 before, 0.038 after")
    assert shows(notebook, "before = ", "0.245 before, 0.037 after")
