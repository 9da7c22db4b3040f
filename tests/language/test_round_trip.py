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
def test_parsing_what_was_written_gives_the_tree_back(workbook: nodes.Workbook) -> None:
    """Equality compares 1 with 1.0 and TRUE as one, so what the trees print is compared too."""
    again = parse(unparse(workbook))
    assert again == workbook
    assert repr(again) == repr(workbook)


@examples(60)
@given(strategies.expressions(max_leaves=15))
def test_expressions_keep_their_shape(expression: nodes.Expr) -> None:
    query = nodes.CreateQuery("q", Constrain((Counted("v"),), expression, operands=(nodes.Operand("e"),)))
    (again,) = parse(unparse(query)).statements
    assert repr(again) == repr(query)


@pytest.mark.parametrize("path", WORKBOOKS, ids=lambda path: path.stem)
def test_unparsing_a_workbook_changes_nothing(path: Path) -> None:
    workbook = parse(path.read_text(encoding="utf-8"))
    assert parse(unparse(workbook)) == workbook
