"""The examples that the page opens with one click: packaged workbooks, and scenarios that are simulated."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from anabranch.cli.examples import examples_folder
from anabranch.cli.serve.workbench import Opened
from anabranch.errors import AnabranchError
from anabranch.simulate import SCENARIOS


@dataclass(frozen=True, slots=True)
class Example:
    """An example.

    Attributes
    ----------
    name : a packaged workbook, or a scenario of `simulate`
    query : the query that is run when the example is opened
    """

    name: str
    kind: str
    title: str
    question: str
    query: str

    def document(self) -> dict[str, Any]:
        """The example as data for JSON."""
        return asdict(self)


EXAMPLES: Mapping[str, Example] = {
    example.name: example
    for example in (
        Example("coffee", "PATTERN", "Coffee", "Who probably went through the hall to the coffee room?", "coffee"),
        Example("floor", "PATTERN", "Antennas", "Where is a tag that antennas read only sometimes?", "looking_back"),
        Example("shop", "SEQUENCE", "Shop", "Which items left unpaid, if readers miss some of them?", "shoplifting"),
        Example("traffic", "RELATE", "Motorway", "Which jams overlapped, if some of their times are lost?", "jam"),
        Example("vehicles", "MONITOR", "Vehicles", "Which vehicles come close between two reports?", "near"),
        Example("buoys", "CONSTRAIN", "Buoys", "Where did several buoys report low pressure together?", "low"),
    )
}

#: Smaller sizes than usual: an example answers in seconds.
_SIZES: Mapping[str, Mapping[str, Any]] = {
    "shop": {"items": 300},
    "traffic": {"sectors": 100},
    "vehicles": {"objects": 120, "duration": 60.0},
}


class Gallery:
    """Opens examples in folders that end with the server."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="anabranch-examples-")

    def open(self, name: str) -> Opened:
        """Copy or simulate the files of an example, if that has not been done, and return its workbook."""
        example = EXAMPLES.get(name)
        if example is None:
            raise AnabranchError(f"there is no example {name}; there are: {', '.join(EXAMPLES)}")
        workbook = self._workbook(name, Path(self._folder.name) / name)
        return Opened(example.title, workbook.read_text(encoding="utf-8"), workbook)

    def close(self) -> None:
        """Remove the files."""
        self._folder.cleanup()

    def _workbook(self, name: str, folder: Path) -> Path:
        if name in SCENARIOS:
            made = sorted(folder.glob("*.abq")) if folder.is_dir() else []
            return made[0] if made else SCENARIOS[name].write(folder, 0, **_SIZES.get(name, {}))
        if not folder.is_dir():
            shutil.copytree(examples_folder(), folder, ignore=shutil.ignore_patterns("__pycache__"))
        return folder / f"{name}.abq"
