"""Each block of the documentation is run, compared, or marked as an illustration."""

from __future__ import annotations

import pytest

from tests.docs.pages import PAGES, ROOT, Block, blocks_of, comments_on

#: The comments, and the blocks that they can precede.
FITS = {
    "file": {"sql"},
    "save": {"sql"},
    "refused": {"sql"},
    "run": {"sh", "python"},
    "output": {"text"},
    "findings": {"text"},
    "illustration": {"sql", "sh", "python", "text", "ini", "yaml", "", "indented"},
}


def is_checked(block: Block) -> bool:
    """Return whether a test checks a block, or its comment says that it is an illustration."""
    if block.action:
        return block.language in FITS.get(block.action, ())
    return block.language == "sql" or (block.language == "indented" and block.has_commands_only)


@pytest.mark.parametrize("page", list(PAGES))
def test_each_block_is_checked_or_an_illustration(page: str) -> None:
    for block in PAGES[page]:
        assert is_checked(block), f"{page}:{block.line}: put `<!-- docs: illustration -->` before it, or a check"


@pytest.mark.parametrize("page", list(PAGES))
def test_each_comment_is_on_the_line_before_a_block(page: str) -> None:
    assert comments_on(page) == sum(bool(block.action) for block in PAGES[page])


@pytest.mark.parametrize("page", [page for page in PAGES if any(block.action == "file" for block in PAGES[page])])
def test_a_block_that_shows_a_file_is_equal_to_it(page: str) -> None:
    for block in PAGES[page]:
        if block.action == "file":
            assert block.text == (ROOT / block.argument).read_text(encoding="utf-8")


PAGE = """\
Text.

    make test
    FEW=1 make test  # or

<!-- docs: illustration -->
```text
a picture
```

    1 answer

- item

    of the item

1. item
   more

    of the item

Text
    that continues.

<!-- docs: output -->
    not before a fence
<!-- docs: run -->

```text
last
```
"""


def test_blocks_are_found_with_their_comments() -> None:
    blocks = blocks_of(PAGE.splitlines())
    assert [(block.language, block.line, block.action) for block in blocks] == [
        ("indented", 3, ""),
        ("text", 7, "illustration"),
        ("indented", 11, ""),
        ("indented", 26, "output"),
        ("text", 29, ""),
    ]
    assert [is_checked(block) for block in blocks] == [True, True, False, False, False]
    assert blocks[0].text == "make test\nFEW=1 make test  # or\n"
    with pytest.raises(AssertionError, match="line 1 is not closed"):
        blocks_of(["```text"])
