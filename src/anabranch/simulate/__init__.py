"""Scenarios with ground truth, ready to be queried.

`SCENARIOS` is what the command line offers: each writes data, the truth and a workbook into a folder. What a
scenario can be told besides is a dataclass of options.
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
    """A simulation by its name on the command line.

    Attributes
    ----------
    summary : str
        One line: what happens in it.
    options : type
        A dataclass whose fields are made by `option`.
    fill : callable
        Takes a folder, a seed and the options, fills the folder and returns the path of its workbook.
    remark : callable, optional
        Takes a folder that was filled, and says in a line what is worth knowing of it.
    """

    summary: str
    options: type
    fill: Callable[[Path, int, Any], Path]
    remark: Callable[[Path], str] | None = None

    def write(self, folder: Path, seed: int, **given: Value) -> Path:
        """Fill a folder and return the path of its workbook; ValueError where an option is not as it should be."""
        return self.fill(folder, seed, make_options(self.options, given))


def _scenario(module: Any, summary: str) -> Scenario:
    """The scenario of a module, which has `Options`, `simulate` and `write`, and perhaps a `remark`."""

    def fill(folder: Path, seed: int, options: Any) -> Path:
        return module.write(module.simulate(options, seed), folder)

    return Scenario(summary, module.Options, fill, getattr(module, "remark", None))


SCENARIOS: Mapping[str, Scenario] = {
    "office": _scenario(office, "who went for coffee, as far as the RFID antennas of an office floor can tell"),
    "rfid": _scenario(
        rfid, "people and what they carry in a building of two floors, with RFID antennas in its corridors alone"
    ),
    "shop": _scenario(shop, "items of a shop, read or missed at the shelf, the checkout and the exit"),
    "traffic": _scenario(traffic, "congestion of the sectors of a motorway, where some of the times are lost"),
    "vehicles": _scenario(vehicles, "vehicles that tell where they are only when they have to"),
    "buoys": _scenario(buoys, "weather at drifting buoys, with storms passing over"),
}
