"""What pyproject.toml cannot express: the examples in the package, and a description with absolute links."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]

#: A Markdown link or image to a file of the repository.
RELATIVE_LINK = re.compile(r"(!?\[[^\]]*\]\()(?!https?:|#|mailto:)([^)\s]+\))")


class BuildWithExamples(build_py):
    """Builds the package with the examples, which are a folder of their own in the repository."""

    def run(self) -> None:
        """Build, and copy the examples unless the package stays where it is."""
        super().run()
        if not self.editable_mode:
            examples = Path(self.build_lib) / "anabranch" / "examples"
            shutil.copytree(
                ROOT / "examples", examples, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"), dirs_exist_ok=True
            )


def description() -> str:
    """The README for a package index: links to files, and images, are absolute."""

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link[1].startswith("!") else "blob"
        return f"{link[1]}{REPOSITORY}/{kind}/main/{link[2]}"

    return RELATIVE_LINK.sub(absolute, (ROOT / "README.md").read_text())


setup(
    cmdclass={"build_py": BuildWithExamples},
    long_description=description(),
    long_description_content_type="text/markdown",
)
