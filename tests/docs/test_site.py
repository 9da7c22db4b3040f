"""The site of the documentation: its navigation has every page, and links lead to pages or into the repository."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import pytest
from scripts.build_docs import ASSETS, CONFIGURATION, link_rewriter, pages, site_text

from tests.docs.pages import ROOT, markdown_files, name_of

#: The host shows it; the site has docs/index.md instead.
FIRST_PAGE = "README.md"

PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")

REPOSITORY = "https://host/project"
KNOWN = {"docs/a.md": "a.md", "docs/queries/b.md": "queries/b.md", "examples/x/README.md": "examples/x.md"}


def nav_pages(nav: list[Any]) -> Iterator[str]:
    """The pages of a navigation, in all its sections."""
    for entry in nav:
        for target in entry.values() if isinstance(entry, dict) else [entry]:
            if isinstance(target, str):
                yield target
            else:
                yield from nav_pages(target)


def test_each_page_of_the_repository_is_a_page_of_the_site() -> None:
    assert {name_of(path) for path in markdown_files()} - {FIRST_PAGE} == set(pages())
    assert len(set(pages().values())) == len(pages())


def test_the_navigation_has_each_page_once() -> None:
    listed = list(nav_pages(tomllib.loads(CONFIGURATION.read_text(encoding="utf-8"))["project"]["nav"]))
    assert len(set(listed)) == len(listed)
    # The list of the decisions links to them.
    decisions = {page for page in pages().values() if page.startswith("decisions/")} - {"decisions/README.md"}
    assert set(listed) == set(pages().values()) - decisions
    index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    assert all(f"({page.removeprefix('decisions/')})" in index for page in decisions)


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("docs/a.md", "queries/b.md#clauses", "queries/b.md#clauses"),
        ("docs/queries/b.md", "../../examples/x/README.md", "../examples/x.md"),
        ("examples/x/README.md", "../../docs/a.md", "../a.md"),
        ("docs/a.md", "#here", "#here"),
        ("docs/a.md", "https://example.org/a.md", "https://example.org/a.md"),
        ("docs/a.md", "../pyproject.toml", f"{REPOSITORY}/blob/main/pyproject.toml"),
        ("docs/a.md", "../tests", f"{REPOSITORY}/tree/main/tests"),
    ],
)
def test_a_link_leads_to_a_page_or_into_the_repository(page: str, link: str, expected: str) -> None:
    assert link_rewriter(page, KNOWN, REPOSITORY)(link) == expected


def test_pictures_of_pages_are_part_of_the_site() -> None:
    pictures = [picture for page in pages() for picture in PICTURE.findall((ROOT / page).read_text(encoding="utf-8"))]
    assert any(picture.endswith(".png") for picture in pictures)
    assert {PurePosixPath(picture).suffix for picture in pictures} <= ASSETS


def test_a_bar_in_the_code_of_a_table_has_no_backslash() -> None:
    assert site_text("| `a \\| b` | c \\| d |\n\n`e \\| f`\n", str) == "| `a | b` | c \\| d |\n\n`e \\| f`\n"


def test_links_are_rewritten_and_code_and_comments_are_not_links() -> None:
    text = "<!-- docs: run -->\n```python\nx[1](a.md)\n```\n`y[2](a.md)` [`z[3]`](a.md), ![two\nlines](b.svg)\n"
    assert site_text(text, str.upper) == (
        "```python\nx[1](a.md)\n```\n`y[2](a.md)` [`z[3]`](A.MD), ![two\nlines](B.SVG)\n"
    )
