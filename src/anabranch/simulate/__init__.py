"""Simulated scenarios with ground truth.

`SCENARIOS` are the scenarios of `anabranch simulate`. Each writes data, the ground truth and a workbook to a folder.
The options of a scenario are a dataclass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.simulate import buoys, office, rfid, shop, traffic, vehicles
from anabranch.simulate.options import Value, make_options


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario of the command line.

    Attributes
    ----------
    summary : str
        One line about its content.
    options : type
        A dataclass whose fields are made by `option` and `choice`.
    fill : callable
        Takes a folder, a seed and the options, writes the files and returns the path of the workbook.
    remark : callable, optional
        Takes a folder with these files, and returns one line about the data.
    """

    summary: str
    options: type
    fill: Callable[[Path, int, Any], Path]
    remark: Callable[[Path], str] | None = None

    def write(self, folder: Path, seed: int, **values: Value) -> Path:
        """Write the files and return the path of the workbook; ValueError if an option is not valid."""
        return self.fill(folder, seed, make_options(self.options, values))


def _scenario(module: Any, summary: str) -> Scenario:
    """Return the scenario of a module, which has `Options`, `simulate`, `write` and optionally `remark`."""

    def fill(folder: Path, seed: int, options: Any) -> Path:
        return module.write(module.simulate(options, seed), folder)

    return Scenario(summary, module.Options, fill, getattr(module, "remark", None))


SCENARIOS: Mapping[str, Scenario] = {
    "office": _scenario(office, "people on an office floor with RFID antennas, who go for coffee"),
    "rfid": _scenario(
        rfid, "people and their objects in a building with two floors and RFID antennas only in the corridors"
    ),
    "shop": _scenario(shop, "items of a shop, read or missed at the shelf, the checkout and the exit"),
    "traffic": _scenario(traffic, "congestion of the sectors of a motorway, with some of the times lost"),
    "vehicles": _scenario(vehicles, "vehicles that report their position only when they must"),
    "buoys": _scenario(buoys, "weather at drifting buoys, with passing storms"),
}
