"""The documentation is run: its queries are checked, its commands and Python are run, and its outputs are compared."""

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
from collections.abc import Callable
from pathlib import Path

import pytest

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.errors import Finding
from anabranch.language.parser import parse
from anabranch.planning.planner import Planner
from tests.docs.pages import EXAMPLES, PAGES, ROOT, Block, name_of, pages_with

#: Real data; they may be missing.
DATA = ROOT.parent / "shared" / "data"

_LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")

# ---------------------------------------------------------------- queries


def check(text: str, catalog: Catalog) -> list[Finding]:
    """Return what `anabranch check` reports for these statements, after those that the catalog has already.

    A page may show several versions of a declaration; each block replaces the declarations of earlier blocks.
    """
    workbook = parse(text, "my.abq")
    for statement in workbook.statements:
        catalog.entries.pop(statement.name.lower(), None)
    findings = declare(workbook, catalog)
    queries = [catalog.query(statement.name) for statement in workbook.statements]
    return findings or Planner(catalog).objections([query for query in queries if query is not None])


@pytest.mark.parametrize("page", pages_with("sql"))
def test_queries_pass_the_check_or_are_refused_as_the_page_shows(page: str) -> None:
    catalog, messages = Catalog(), []
    for block in PAGES[page]:
        where = f"{page}:{block.line}"
        if block.language == "sql" and block.action != "illustration":
            refused = block.action == "refused"
            findings = check(block.text, Catalog(dict(catalog.entries)) if refused else catalog)
            messages = [finding.line("my.abq") for finding in findings]
            assert bool(messages) == refused, f"{where}: {messages}"
        elif block.action == "findings":
            assert block.text.splitlines() == messages, where


# ---------------------------------------------------------------- commands and Python


def lines_of(output: str) -> list[str]:
    """Return the lines of an output without blank lines and the spaces that pad a table."""
    return [line.rstrip() for line in output.splitlines() if line.strip()]


class Reader:
    """Runs the blocks of a page in a folder that has the examples."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.variables: dict[str, object] = {"__name__": "page"}

    def run(self, block: Block) -> str:
        """Run a block, and return the output of its last command or of all its Python."""
        if block.language == "python":
            return self._output(lambda: exec(block.text, self.variables))  # noqa: S102 - our own documentation
        output = ""
        for line in block.text.splitlines():
            program, *arguments = shlex.split(line)
            assert program in ("python", "anabranch"), line
            run = self._script if program == "python" else self._command
            output = self._output(lambda run=run, arguments=arguments: run(arguments))
        return output

    def _script(self, arguments: list[str]) -> None:
        """Run a script as Python does: it can import the modules next to it, and a later script cannot."""
        sys.argv = arguments
        before = sys.path[:]
        sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
        try:
            runpy.run_path(arguments[0], run_name="__main__")
        finally:
            sys.path[:] = before
            for name, module in list(sys.modules.items()):
                if (getattr(module, "__file__", None) or "").startswith(str(self.folder)):
                    del sys.modules[name]

    def _command(self, arguments: list[str]) -> None:
        from anabranch.cli import main

        # The JVM of the tests' Spark session has another current folder.
        folder_options = {"--output", "--checkpoint"}
        absolute = [
            str(self.folder / argument) if before in folder_options and argument != "-" else argument
            for before, argument in zip(["", *arguments], arguments, strict=False)
        ]
        sys.argv = ["anabranch", *absolute]
        with pytest.raises(SystemExit) as ended:
            main.main()
        assert not ended.value.code, arguments

    @staticmethod
    def _output(run: Callable[[], object]) -> str:
        stdout = io.StringIO()
        with contextlib.redirect_stdout(stdout):
            run()
        return stdout.getvalue()


@pytest.mark.parametrize("page", pages_with("sh", "python"))
def test_commands_print_the_output_on_the_page(page: str, spark, tmp_path: Path, monkeypatch) -> None:
    folder = tmp_path / "project"
    shutil.copytree(EXAMPLES, folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    if DATA.is_dir():
        (tmp_path / "shared").symlink_to(DATA.parent)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    reader, output = Reader(folder), ""
    for block in PAGES[page]:
        if block.action == "save":
            (folder / block.argument).write_text(block.text, encoding="utf-8")
        elif block.action == "run":
            if not (DATA / block.argument).is_dir() and block.argument:
                pytest.skip(f"there is no {block.argument} in {DATA}")
            output = reader.run(block)
        elif block.action == "output":
            assert lines_of(output) == lines_of(block.text), f"{page}:{block.line}"


def test_every_example_is_run_by_some_page() -> None:
    run = {
        argument
        for blocks in PAGES.values()
        for block, after in zip(blocks, blocks[1:], strict=False)
        if (block.language, block.action, after.action) == ("sh", "run", "output")
        for argument in shlex.split(block.text)
    }
    scripts = [path for path in EXAMPLES.rglob("*.py") if path.name != "shared.py"]
    files = [*EXAMPLES.rglob("*.abq"), *scripts]
    assert files
    assert {name_of(path) for path in files} <= run


# ---------------------------------------------------------------- links and names


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page, as hosts of Markdown derive them from its headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", list(PAGES))
def test_links_have_a_target(page: str) -> None:
    text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in _LINK.findall(text):
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), f"{page}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{page}: {link}"


def committed_files() -> list[Path]:
    """Return every file that is, or would be, committed."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a repository")
    listed = subprocess.run(
        [git, "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
    )
    return [ROOT / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]


#: Folders of a particular machine, and hosts of package registries; in brackets, so that this file does not match.
_ELSEWHERE = re.compile(
    r"(?<![\w.~*{}$-])/(?:[w]ork|[t]mp|[h]ome|[r]oot|[U]sers)/"
    r"|[p]ypi\.org|[p]ythonhosted|[n]pmjs\.|[c]rates\.io|[m]aven\.org|[a]rtifactory|--[i]ndex-url"
)


def test_no_file_names_a_machine_or_a_registry() -> None:
    for path in committed_files():
        if not path.is_file():
            continue
        text = path.read_bytes().decode("utf-8", errors="ignore")
        match = _ELSEWHERE.search(text)
        assert not match, f"{name_of(path)}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}"
