"""The saved LALR tables: they belong to the grammar, and are not used if they do not."""

from __future__ import annotations

import json
from importlib import resources

import lark
import pytest
from lark import Token

from anabranch.language import tables

FOLDER = resources.files("anabranch.language")
GRAMMAR = FOLDER.joinpath("grammar.lark").read_text(encoding="utf-8")


def test_the_saved_tables_are_those_of_the_grammar() -> None:
    saved = FOLDER.joinpath("grammar.json").read_text(encoding="utf-8")
    assert saved == tables.as_text(tables.saved_tables(GRAMMAR)), "run: python -m anabranch.language.tables"


def test_the_restored_parser_has_the_states_of_the_built_one() -> None:
    built, restored = tables.build_parser(GRAMMAR), tables.load_parser()
    assert restored.source_path == "<deserialized>"
    assert {t.name: t.pattern.value for t in restored.terminals} == {t.name: t.pattern.value for t in built.terminals}
    trees = []
    for parser in (built, restored):
        interactive = parser.parse_interactive(start="start")
        for kind, text in (("CREATE", "CREATE"), ("RELATION", "RELATION"), ("NAME", "hall"), ("LPAR", "("),
                           ("NAME", "location"), ("RPAR", ")")):  # fmt: skip
            assert kind in interactive.accepts()
            interactive.feed_token(Token(kind, text, start_pos=0, end_pos=1))
        trees.append(interactive.feed_eof())
    assert trees[0] == trees[1]


@pytest.mark.parametrize("stale", ["grammar", "lark", "missing"])
def test_tables_of_another_grammar_or_lark_are_not_used(stale: str, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    saved = json.loads(FOLDER.joinpath("grammar.json").read_text(encoding="utf-8"))
    (tmp_path / "grammar.lark").write_text(GRAMMAR + "\n// a comment\n" * (stale == "grammar"))
    if stale != "missing":
        (tmp_path / "grammar.json").write_text(json.dumps(saved))
    if stale == "lark":
        monkeypatch.setattr(lark, "__version__", "0.0")
    monkeypatch.setattr(tables, "_FOLDER", tmp_path)
    assert tables.load_parser().source_path == "<string>"


def test_main_writes_the_tables_next_to_the_grammar(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    (tmp_path / "grammar.lark").write_text(GRAMMAR)
    monkeypatch.setattr(tables, "_FOLDER", tmp_path)
    tables.main()
    assert tables.load_parser().source_path == "<deserialized>"
