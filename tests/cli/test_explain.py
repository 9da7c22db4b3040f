"""`anabranch explain --graph`: a picture for each query with a constraint graph, and a line for each without."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.command import Command
from tests.runtime.office import query, stream

EVENTS = "CREATE STREAM e KEY (id STRING) VALUE (kind STRING) TIME t INTEGER;\n"
NEAR = "CREATE QUERY near AS CONSTRAIN a, b FROM e WHERE a.kind = 'A' AND b.t - a.t IN [0, 5];\n"


@pytest.fixture
def workbook(tmp_path: Path) -> Path:
    """A workbook with a PATTERN and a CONSTRAIN query."""
    path = tmp_path / "office.abq"
    path.write_text(stream("at") + query() + EVENTS + NEAR)
    return path


def test_a_query_without_a_graph_is_reported_in_one_line(workbook: Path, tmp_path: Path, anabranch: Command) -> None:
    done = anabranch("explain", workbook, "--query", "coffee", "--graph", "--output", tmp_path / "pictures")
    assert done.status == 0
    assert done.err == "coffee: a PATTERN query has no constraint graph\n"
    assert not (tmp_path / "pictures").exists()


def test_graphs_are_written_to_the_requested_folder(workbook: Path, tmp_path: Path, anabranch: Command) -> None:
    pictures = tmp_path / "new" / "pictures"
    done = anabranch("explain", workbook, "--graph", "--output", pictures)
    assert done.status == 0
    assert done.err.splitlines() == [
        "coffee: a PATTERN query has no constraint graph",
        f"near: {pictures / 'near.svg'}",
    ]
    assert [path.name for path in pictures.iterdir()] == ["near.svg"]


def test_graphs_are_written_to_the_current_folder_by_default_and_only_with_the_flag(
    workbook: Path, tmp_path: Path, anabranch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert anabranch("explain", workbook).err == ""
    assert not list(tmp_path.glob("*.svg"))
    done = anabranch("explain", workbook, "--query", "near", "--graph")
    assert (done.status, done.err) == (0, "near: near.svg\n")
    assert [path.name for path in tmp_path.glob("*.svg")] == ["near.svg"]


def test_the_error_for_an_unwritable_folder_is_one_line(workbook: Path, tmp_path: Path, anabranch: Command) -> None:
    (tmp_path / "file").write_text("")
    failed = anabranch("explain", workbook, "--query", "near", "--graph", "--output", tmp_path / "file" / "inside")
    assert failed.status == 1
    assert failed.err.count("\n") == 1
    assert failed.first.startswith("anabranch: ")


def test_a_graph_has_the_bounds_and_the_conditions_of_the_variables(tmp_path: Path, anabranch: Command) -> None:
    workbook = tmp_path / "w.abq"
    workbook.write_text("""
        CREATE STREAM e KEY (id STRING) VALUE (kind STRING) TIME t DOUBLE SPACE (x, y);
        CREATE QUERY near AS CONSTRAIN a, b FROM e
          WHERE a.kind = '<A>' AND DISTANCE(a, b) < 1 AND b.t - a.t IN [0, 5];
    """)
    done = anabranch("explain", workbook, "--graph", "--output", tmp_path)
    assert done.err == f"near: {tmp_path / 'near.svg'}\n"
    drawn = (tmp_path / "near.svg").read_text(encoding="utf-8")
    assert "&lt;A&gt;" in drawn
    assert "0 to 5 later" in drawn


def test_an_error_in_a_query_has_its_position(workbook: Path, anabranch: Command) -> None:
    workbook.write_text(
        workbook.read_text() + "CREATE QUERY by AS PATTERN at(x, 'hall') THEN at(y, 'coffee') GROUP BY z;\n"
    )
    wrong = anabranch("explain", workbook, "--query", "by")
    assert (wrong.status, wrong.out) == (2, "")
    assert wrong.first.startswith(f"{workbook}:5:72: there is no variable 'z'; ")
