"""`anabranch explain --graph`: a picture for each query with a constraint graph, and a line for each without."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.command import Command
from tests.runtime.office import query, stream

from anabranch.plan import ConstraintGraph, Edge, Plan
from anabranch.session import Session

GRAPH = ConstraintGraph((("a", "kind = 'A'"), ("b", "")), (Edge("a", "b", "0 to 5 later", True),))


@pytest.fixture
def office(tmp_path: Path) -> Path:
    path = tmp_path / "office.abq"
    path.write_text(stream("at") + query() + query("anyone", "at", ""))
    return path


def test_a_query_without_a_graph_is_reported_in_one_line(office: Path, tmp_path: Path, anabranch: Command) -> None:
    done = anabranch("explain", office, "--query", "coffee", "--graph", "--output", tmp_path / "pictures")
    assert done.status == 0
    assert done.err == "coffee: a PATTERN query has no constraint graph\n"
    assert not (tmp_path / "pictures").exists()


def test_graphs_are_written_to_the_requested_folder(
    office: Path, tmp_path: Path, anabranch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explain(_: Session, name: str) -> Plan:
        return Plan(name, "CONSTRAIN", "", (), graph=GRAPH if name == "coffee" else None)

    monkeypatch.setattr(Session, "explain", explain)
    pictures = tmp_path / "new" / "pictures"
    done = anabranch("explain", office, "--graph", "--output", pictures)
    assert done.status == 0
    assert done.err.splitlines() == [
        f"coffee: {pictures / 'coffee.svg'}",
        "anyone: a CONSTRAIN query has no constraint graph",
    ]
    assert "0 to 5 later" in (pictures / "coffee.svg").read_text(encoding="utf-8")
    assert [path.name for path in pictures.iterdir()] == ["coffee.svg"]


def test_graphs_are_written_to_the_current_folder_by_default_and_only_with_the_flag(
    office: Path, tmp_path: Path, anabranch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "explain", lambda _, name: Plan(name, "CONSTRAIN", "", (), graph=GRAPH))
    monkeypatch.chdir(tmp_path)
    assert anabranch("explain", office).err == ""
    assert not list(tmp_path.glob("*.svg"))
    assert anabranch("explain", office, "--query", "anyone", "--graph").err == "anyone: anyone.svg\n"
    assert (tmp_path / "anyone.svg").is_file()


def test_the_error_for_an_unwritable_folder_is_one_line(
    office: Path, tmp_path: Path, anabranch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "explain", lambda _, name: Plan(name, "CONSTRAIN", "", (), graph=GRAPH))
    (tmp_path / "file").write_text("")
    failed = anabranch("explain", office, "--query", "coffee", "--graph", "--output", tmp_path / "file" / "inside")
    assert failed.status == 1
    assert failed.err.count("\n") == 1
    assert failed.first.startswith("anabranch: ")


def test_a_constrain_query_has_a_graph(tmp_path: Path, anabranch: Command) -> None:
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
