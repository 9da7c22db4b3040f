"""Scenarios with ground truth, ready to be queried.

`SCENARIOS` is what the command line offers: each writes data, the truth and a workbook into a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from anabranch.simulate import office


@dataclass(frozen=True, slots=True)
class Scenario:
    """A simulation by its name on the command line.

    Attributes
    ----------
    summary : str
        One line: what happens in it.
    write : callable
        Takes a folder and a seed, fills the folder and returns the path of its workbook.
    """

    summary: str
    write: Callable[[Path, int], Path]


def _write_office(folder: Path, seed: int) -> Path:
    return office.write(office.simulate(seed=seed), folder)


SCENARIOS: Mapping[str, Scenario] = {
    "office": Scenario("who went for coffee, as far as the RFID antennas of an office floor can tell", _write_office),
}
