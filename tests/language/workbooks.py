"""Short ways from text to what the binder makes of it."""

from __future__ import annotations

from typing import Any

from anabranch.catalog import Catalog, Query
from anabranch.errors import Finding
from anabranch.language import nodes
from anabranch.language.binder import bind, declare
from anabranch.language.parser import parse


def declared(text: str) -> Catalog:
    """The catalogue of a workbook in which nothing is wrong."""
    catalog = Catalog()
    assert declare(parse(text), catalog) == []
    return catalog


def findings(text: str, catalog: Catalog | None = None) -> list[Finding]:
    """Everything that is wrong with a workbook."""
    return declare(parse(text), Catalog() if catalog is None else catalog)


def codes(text: str, catalog: Catalog | None = None) -> list[str]:
    """The codes of what is wrong with a workbook, in order of place."""
    return [finding.code for finding in findings(text, catalog)]


def bound(question: str, catalog: Catalog) -> Any:
    """The question, with its clauses, bound to a catalogue."""
    return bind(Query("q", declaration(question)), catalog)


def wrong(question: str, catalog: Catalog) -> list[str]:
    """The codes of what is wrong with a question."""
    return codes(f"CREATE QUERY q AS {question}", catalog)


def declaration(question: str) -> nodes.CreateQuery:
    """The statement that asks the question."""
    (statement,) = parse(f"CREATE QUERY q AS {question}").statements
    assert isinstance(statement, nodes.CreateQuery)
    return statement
