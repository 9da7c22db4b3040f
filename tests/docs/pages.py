"""The Markdown pages of the project and their blocks, with the comments that say what to do with them.

CONTRIBUTING.md describes the comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

_COMMENT = re.compile(r"<!-- docs: (\w+) ?(.*?) ?-->")
_FENCE = re.compile(r"```(\w*)$")
_LIST_ITEM = re.compile(r"\s*([-*+]|\d+[.)]) ")
_COMMAND = re.compile(r"(\w+=\S* )*(make|anabranch|git|pre-commit|(\.venv/bin/)?python) ")


@dataclass(frozen=True)
class Block:
    """A block of code on a page.

    Attributes
    ----------
    language : str
        What follows the fence, such as `sql`; `indented` for a block without a fence.
    text : str
        The lines of the block.
    line : int
        The number of its first line on the page, with the fence.
    action, argument : str
        What the comment before the block says, such as `save` and `my.abq`; empty without a comment.
    """

    language: str
    text: str
    line: int
    action: str
    argument: str

    @property
    def has_commands_only(self) -> bool:
        """Whether each line is a command for a shell, and none is output."""
        return all(_COMMAND.match(f"{line.strip()} ") for line in self.text.splitlines())


def markdown_files() -> list[Path]:
    """Return the pages, in the order of their paths."""
    folders = [ROOT / name for name in ("docs", "examples", "src", "benchmarks", "reproductions")]
    return sorted([*ROOT.glob("*.md"), *(path for folder in folders for path in folder.rglob("*.md"))])


def name_of(path: Path) -> str:
    """Return a path relative to the project."""
    return str(path.relative_to(ROOT))


def blocks_of(lines: Iterable[str]) -> list[Block]:
    """Return the fenced and the indented blocks of a page."""
    blocks: list[Block] = []
    comment, language, body, start = ("", ""), "", [], 0
    # The last line that is not blank, outside of blocks; after a list item, an indented line continues the item.
    previous, after_blank = "", True
    for number, line in enumerate([*lines, "end"], start=1):
        if language == "indented" and line.strip() and not line.startswith("    "):
            blocks.append(Block(language, "\n".join(body).rstrip() + "\n", start, *comment))
            comment, language = ("", ""), ""
        if language and language != "indented" and line == "```":
            blocks.append(Block(language.removeprefix("```"), "\n".join(body) + "\n", start, *comment))
            comment, language = ("", ""), ""
        elif language:
            body.append(line.removeprefix("    ") if language == "indented" else line)
        elif _FENCE.match(line):
            language, body, start = line, [], number
        elif line.startswith("    ") and after_blank and not (_LIST_ITEM.match(previous) or previous.startswith(" ")):
            language, body, start = "indented", [line.removeprefix("    ")], number
        else:
            match = _COMMENT.fullmatch(line)
            comment = (match.group(1), match.group(2)) if match else ("", "")
            previous = "" if match else line if line.strip() else previous
        after_blank = not line.strip() or bool(_COMMENT.fullmatch(line))
    assert not language, f"the block that starts at line {start} is not closed"
    return blocks


PAGES = {name_of(path): blocks_of(path.read_text(encoding="utf-8").splitlines()) for path in markdown_files()}


def comments_on(page: str) -> int:
    """Return how many comments for blocks a page has."""
    return sum(bool(_COMMENT.fullmatch(line)) for line in (ROOT / page).read_text(encoding="utf-8").splitlines())


def pages_with(*languages: str) -> list[str]:
    """Return the pages that have a block in one of some languages."""
    return [page for page, blocks in PAGES.items() if any(block.language in languages for block in blocks)]
