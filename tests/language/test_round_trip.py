"""`parse(unparse(tree)) == tree`, for trees of every kind."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from anabranch.constrain.syntax import Constrain, Counted
from anabranch.language import nodes
from anabranch.language.parser import parse
from anabranch.language.unparse import unparse
from tests import strategies
from tests.drawn import examples

WORKBOOKS = sorted((Path(__file__).parents[1] / "fixtures" / "workbooks").glob("*.abq"))


@examples(40)
@given(strategies.workbooks())
def test_unparsed_workbooks_parse_to_the_same_tree(workbook: nodes.Workbook) -> None:
    """1, 1.0 and TRUE are equal in Python, so the representations of the trees are compared too."""
    parsed = parse(unparse(workbook))
    assert parsed == workbook
    assert repr(parsed) == repr(workbook)


@examples(60)
@given(strategies.expressions(max_leaves=15))
def test_unparsed_expressions_parse_to_the_same_tree(expression: nodes.Expr) -> None:
    query = nodes.CreateQuery("q", Constrain((Counted("v"),), expression, operands=(nodes.Operand("e"),)))
    (parsed,) = parse(unparse(query)).statements
    assert repr(parsed) == repr(query)


@pytest.mark.parametrize("path", WORKBOOKS, ids=lambda path: path.stem)
def test_unparsed_fixtures_parse_to_the_same_tree(path: Path) -> None:
    workbook = parse(path.read_text(encoding="utf-8"))
    assert parse(unparse(workbook)) == workbook


def test_a_type_with_the_word_of_an_alias_is_quoted() -> None:
    workbook = parse("CREATE STREAM s KEY (a `as` AS b) TIME t;")
    assert parse(unparse(workbook)) == workbook
