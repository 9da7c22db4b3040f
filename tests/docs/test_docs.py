"""The documentation, executed: its queries are checked, its commands and Python are run, its outputs are compared.

The marks before a block are described in CONTRIBUTING.md.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.errors import Finding
from anabranch.families import objections
from anabranch.language.parser import parse

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
DATA = ROOT.parent / "shared" / "data"
"""Where real data lie, if there are any."""

_MARK = re.compile(r"<!-- docs: (\w+) ?(.*?) ?-->")
_FENCE = re.compile(r"```(\w*)$")
_LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, text and line, and the mark before it (`what`, with its `argument`)."""

    language: str
    text: str
    line: int
    what: str
    argument: str


def markdown() -> list[Path]:
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *EXAMPLES.rglob("*.md"), *(ROOT / "src").rglob("*.md")]
    return sorted(found)


def blocks(page: Path) -> list[Block]:
    found, mark, opened = [], ("", ""), None
    body: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if opened is None and (fence := _FENCE.match(line)):
            opened, body = (fence.group(1), number), []
        elif opened is not None and line == "```":
            found.append(Block(opened[0], "\n".join(body) + "\n", opened[1], *mark))
            opened, mark = None, ("", "")
        elif opened is not None:
            body.append(line)
        else:
            given = _MARK.fullmatch(line)
            mark = (given.group(1), given.group(2)) if given else ("", "")
    assert opened is None, f"{page}: a block is not closed"
    return found


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


PAGES = {name_of(page): blocks(page) for page in markdown()}


def pages_with(wanted: str | set[str]) -> list[str]:
    languages = {wanted} if isinstance(wanted, str) else wanted
    return [name for name, found in PAGES.items() if any(block.language in languages for block in found)]


# ---------------------------------------------------------------- what is marked


def test_every_mark_is_known_and_stands_before_a_block_it_fits() -> None:
    fits = {
        "file": {"sql"}, "save": {"sql"}, "refused": {"sql"}, "run": {"sh", "python"},
        "output": {"text"}, "findings": {"text"}, "": {"sql", "text", ""},
    }  # fmt: skip
    for name, found in PAGES.items():
        for block in found:
            assert block.language in fits[block.what], f"{name}:{block.line}: a block that no test looks at"
    lines = [line for name in PAGES for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    written = sum(bool(_MARK.fullmatch(line)) for line in lines)
    assert written == sum(bool(block.what) for found in PAGES.values() for block in found)


@pytest.mark.parametrize("page", [name for name, found in PAGES.items() if any(b.what == "file" for b in found)])
def test_blocks_that_show_a_file_show_all_of_it(page: str) -> None:
    for block in PAGES[page]:
        if block.what == "file":
            assert block.text == (ROOT / block.argument).read_text(encoding="utf-8")


# ---------------------------------------------------------------- queries


def check(text: str, catalog: Catalog) -> list[Finding]:
    """What `anabranch check` would say of these statements, beside what the catalogue holds already."""
    workbook = parse(text, "my.abq")
    findings = declare(workbook, catalog)
    queries = [catalog.query(statement.name) for statement in workbook.statements]
    return findings or objections([query for query in queries if query is not None], catalog)


@pytest.mark.parametrize("page", pages_with("sql"))
def test_queries_are_what_the_page_says_they_are(page: str) -> None:
    catalog, said = Catalog(), []
    for block in PAGES[page]:
        place = f"{page}:{block.line}"
        if block.language == "sql":
            refused = block.what == "refused"
            said = [
                finding.line("my.abq")
                for finding in check(block.text, Catalog(dict(catalog.entries)) if refused else catalog)
            ]
            assert bool(said) == refused, f"{place}: {said}"
        elif block.what == "findings":
            assert block.text.splitlines() == said, place


# ---------------------------------------------------------------- commands and Python


def plain(text: str) -> list[str]:
    """The lines that say something, without the spaces that pad a table."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


class Reader:
    """Somebody who types what a page says, in a folder that has the examples."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, object] = {"__name__": "page"}

    def does(self, block: Block) -> str:
        """Run a block; what its last command, or the whole of its Python, printed."""
        printed = ""
        if block.language == "python":
            return self._printed(lambda: exec(block.text, self.names))  # noqa: S102 - our own documentation
        for line in block.text.splitlines():
            command, *arguments = shlex.split(line)
            if command == "python":
                printed = self._printed(lambda given=arguments: self._script(given))
            else:
                assert command == "anabranch", line
                printed = self._printed(lambda given=arguments: self._command(given))
        return printed

    def _script(self, arguments: list[str]) -> None:
        """Run a script as Python does: it finds the modules beside it, and no other script has them afterwards."""
        sys.argv = arguments
        sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
        try:
            runpy.run_path(arguments[0], run_name="__main__")
        finally:
            del sys.path[0]
            for name, module in list(sys.modules.items()):
                if (getattr(module, "__file__", None) or "").startswith(str(self.folder)):
                    del sys.modules[name]

    def _command(self, arguments: list[str]) -> None:
        from anabranch.cli import main

        # The JVM of the tests' Spark session has a current folder of its own.
        folders = {"--output", "--checkpoint"}
        given = [
            str(self.folder / text) if before in folders else text
            for before, text in zip(["", *arguments], arguments, strict=False)
        ]
        sys.argv = ["anabranch", *given]
        with pytest.raises(SystemExit) as ended:
            main.main()
        assert not ended.value.code, arguments

    @staticmethod
    def _printed(run) -> str:
        stdout = io.StringIO()
        with contextlib.redirect_stdout(stdout):
            run()
        return stdout.getvalue()


@pytest.mark.parametrize("page", pages_with({"sh", "python"}))
def test_what_is_run_prints_what_the_page_shows(page: str, spark, tmp_path: Path, monkeypatch) -> None:
    folder = tmp_path / "project"
    shutil.copytree(EXAMPLES, folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    if DATA.is_dir():
        (tmp_path / "shared").symlink_to(DATA.parent)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    reader, printed = Reader(folder), ""
    for block in PAGES[page]:
        if block.what == "save":
            (folder / block.argument).write_text(block.text, encoding="utf-8")
        elif block.what == "run":
            if not (DATA / block.argument).is_dir() and block.argument:
                pytest.skip(f"there is no {block.argument} in {DATA}")
            printed = reader.does(block)
        elif block.what == "output":
            assert plain(printed) == plain(block.text), f"{page}:{block.line}"


def test_every_example_is_run_by_some_page() -> None:
    run = {
        argument
        for found in PAGES.values()
        for block, after in zip(found, found[1:], strict=False)
        if (block.language, block.what, after.what) == ("sh", "run", "output")
        for argument in shlex.split(block.text)
    }
    files = [*EXAMPLES.rglob("*.abq"), *EXAMPLES.rglob("*.py")]
    assert files
    assert {name_of(path) for path in files} <= run


# ---------------------------------------------------------------- links and names


def anchors(page: Path) -> set[str]:
    """The places of a page that a link can name, as hosts of Markdown make them of its headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", list(PAGES))
def test_links_lead_somewhere(page: str) -> None:
    text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in _LINK.findall(text):
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), f"{page}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{page}: {link}"


def repository() -> list[Path]:
    """Every file that is, or would be, committed."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a repository")
    listed = subprocess.run(
        [git, "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
    )
    return [ROOT / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]


#: Folders of somebody's machine, and hosts of package registries; in brackets, so that this file does not name them.
_ELSEWHERE = re.compile(
    r"(?<![\w.~*{}$-])/(?:[w]ork|[t]mp|[h]ome|[r]oot|[U]sers)/"
    r"|[p]ypi\.org|[p]ythonhosted|[n]pmjs\.|[c]rates\.io|[m]aven\.org|[a]rtifactory|--[i]ndex-url"
)


def test_no_file_names_a_machine_or_a_registry() -> None:
    for path in repository():
        if not path.is_file():
            continue
        text = path.read_bytes().decode("utf-8", errors="ignore")
        found = _ELSEWHERE.search(text)
        assert not found, f"{name_of(path)}:{text.count(chr(10), 0, found.start()) + 1}: {found.group()}"
