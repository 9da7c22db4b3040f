"""`anabranch new`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command import Command


def test_the_command_writes_a_new_workbook_and_says_what_it_guessed(anabranch: Command, tmp_path: Path) -> None:
    (tmp_path / "walks.csv").write_text("person_id,t,x,y\nana,1,0,0\nben,2,1,1\nana,3,2,2\n")
    done = anabranch("new", "constrain", tmp_path / "walks.csv")
    assert done.status == 0
    assert "guessed: person_id is the key" in done.err
    assert anabranch("check", tmp_path / "walks.abq").status == 0
    again = anabranch("new", "constrain", tmp_path / "walks.csv")
    assert again.status == 1
    assert "exists already; name another workbook with --output" in again.err
    wrong = anabranch("new", "guess", tmp_path / "walks.csv")
    assert wrong.status == 2
    assert "there is no kind guess" in wrong.err
