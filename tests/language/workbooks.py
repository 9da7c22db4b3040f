"""Helpers that bind the text of workbooks and queries."""

from __future__ import annotations

from typing import Any

from anabranch.binding.binder import bind, declare
from anabranch.catalog import Catalog, Query
from anabranch.errors import Finding
from anabranch.language import nodes
from anabranch.language.parser import parse


def declared(text: str) -> Catalog:
    """The catalog of a valid workbook."""
    catalog = Catalog()
    assert declare(parse(text), catalog) == []
    return catalog


def findings(text: str, catalog: Catalog | None = None) -> list[Finding]:
    """The findings about a workbook; it is not added to the catalog."""
    return declare(parse(text), Catalog() if catalog is None else Catalog(dict(catalog.entries)))


def codes(text: str, catalog: Catalog | None = None) -> list[str]:
    """The codes of the findings about a workbook, sorted by position."""
    return [finding.code for finding in findings(text, catalog)]


def bound(query: str, catalog: Catalog) -> Any:
    """The query, bound to a catalog."""
    return bind(Query("q", declaration(query)), catalog)


def wrong(query: str, catalog: Catalog) -> list[str]:
    """The codes of the findings about a query."""
    return codes(f"CREATE QUERY q AS {query}", catalog)


def declaration(query: str) -> nodes.CreateQuery:
    """The CREATE QUERY statement of a query."""
    (statement,) = parse(f"CREATE QUERY q AS {query}").statements
    assert isinstance(statement, nodes.CreateQuery)
    return statement
