"""Builds the site of the documentation: `make docs`.

The pages of the repository link to each other and to other files by relative paths, as hosts of Markdown show them. The
site has only pages. So they are copied, and a link to a file that is not a page becomes its address in the repository.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
CONFIGURATION = ROOT / "zensical.toml"

#: Pages outside of docs/, and where they are in the site.
OTHER_PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "running-benchmarks.md",
    "examples/README.md": "examples/index.md",
    "reproductions/README.md": "reproductions.md",
    "src/anabranch/README.md": "source-map.md",
}

#: What pages use: pictures, and the style of the site.
ASSETS = {".css", ".js", ".json", ".png", ".svg"}

_TARGET = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^)\s]+)(?=\))")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_TABLE_ROW = re.compile(r"^\|.*", re.MULTILINE)
_COMMENT = re.compile(r"^<!-- docs: .*-->\n", re.MULTILINE)


def pages() -> dict[str, str]:
    """The pages: their paths in the repository, and in the site."""
    docs = {name: name.removeprefix("docs/") for name in sorted(_names("docs", "*.md"))}
    examples = {name: f"examples/{PurePosixPath(name).parts[1]}.md" for name in _names("examples", "*/README.md")}
    return {**docs, **examples, **OTHER_PAGES}


def _names(folder: str, pattern: str) -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob(pattern)]


def link_rewriter(page: str, known: dict[str, str], repository: str) -> Callable[[str], str]:
    """Return a function from a link on a page of the repository to the link on the same page of the site.

    Parameters
    ----------
    page : str
        The path of the page in the repository.
    known : dict of str to str
        The pages and assets of the site, by their paths in the repository.
    repository : str
        The address of the repository.
    """

    def rewrite(link: str) -> str:
        path, mark, anchor = link.partition("#")
        if not path or re.match(r"\w+:", path):
            return link
        target = os.path.normpath(PurePosixPath(page).parent / path)
        if target in known:
            return os.path.relpath(known[target], PurePosixPath(known[page]).parent) + mark + anchor
        view = "tree" if (ROOT / target).is_dir() else "blob"
        return f"{repository}/{view}/main/{target}{mark}{anchor}"

    return rewrite


def site_text(text: str, rewrite: Callable[[str], str]) -> str:
    """Return a page for the site: with other links, and without the comments for the tests."""
    text = _COMMENT.sub("", text)
    # Hosts of Markdown need a backslash before a | in the code of a table; the site would show it.
    text = _TABLE_ROW.sub(lambda row: _CODE.sub(lambda code: code.group().replace(r"\|", "|"), row.group()), text)
    # Code may look like a link, and the text of a link may have code in it.
    without_code = _CODE.sub(lambda code: re.sub(r"[^\n]", "x", code.group()), text)
    written, end = [], 0
    for link in _TARGET.finditer(without_code):
        start, stop = link.span(2)
        written += [text[end:start], rewrite(text[start:stop])]
        end = stop
    return "".join([*written, text[end:]])


def copy_pages(target: Path) -> None:
    """Write the pages and assets of the site to a folder, which is emptied first."""
    shutil.rmtree(target, ignore_errors=True)
    repository = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]
    assets = {name: name.removeprefix("docs/") for name in _names("docs", "*") if PurePosixPath(name).suffix in ASSETS}
    known = {**pages(), **assets}
    for source, name in known.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if source in assets:
            shutil.copyfile(ROOT / source, target / name)
        else:
            text = (ROOT / source).read_text(encoding="utf-8")
            (target / name).write_text(site_text(text, link_rewriter(source, known, repository)), encoding="utf-8")


def build() -> Path:
    """Build the site, and return its first page; a link or an anchor without a target is an error."""
    project = tomllib.loads(CONFIGURATION.read_text(encoding="utf-8"))["project"]
    copy_pages(ROOT / project["docs_dir"])
    shutil.rmtree(ROOT / project["site_dir"], ignore_errors=True)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "--config-file", str(CONFIGURATION)]
    subprocess.run(command, cwd=ROOT, check=True)
    return ROOT / project["site_dir"] / "index.html"


def main() -> None:
    """Build the site and print where it is."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    try:
        sys.stdout.write(f"{build().relative_to(ROOT)}\n")
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)


if __name__ == "__main__":
    main()
