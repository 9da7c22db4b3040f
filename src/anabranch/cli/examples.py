"""`anabranch examples`: copy the example workbooks and their data into a folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

import anabranch
from anabranch.cli.messages import say
from anabranch.errors import AnabranchError

_PACKAGE = Path(anabranch.__file__).parent

#: In a wheel the examples are part of the package; in a clone they are a folder beside `src`.
_FOLDERS = (_PACKAGE / "examples", _PACKAGE.parents[1] / "examples")


def command(
    folder: Annotated[Path, typer.Argument(help="A new folder for the examples.")] = Path("anabranch-examples"),
) -> None:
    """Copy the example workbooks, with their data, into a new folder."""
    if folder.exists():
        raise AnabranchError(f"{folder} exists already; name another folder, or remove it first")
    shutil.copytree(examples_folder(), folder, ignore=shutil.ignore_patterns("__pycache__"))
    say(f"copied the examples to {folder}; try: anabranch run {folder / 'coffee.abq'}")


def examples_folder() -> Path:
    """The folder of the examples in this installation."""
    folder = next((path for path in _FOLDERS if path.is_dir()), None)
    if folder is None:
        raise AnabranchError("this installation has no examples; install the wheel again")
    return folder
