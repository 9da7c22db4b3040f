"""Scenarios with ground truth, ready to be queried.

`SCENARIOS` is what the command line offers: each writes data, the truth and a workbook into a folder. What a
scenario can be told besides is a dataclass of options.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
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


def _fill_office(folder: Path, seed: int, options: office.Options) -> Path:
    return office.write(office.simulate(**asdict(options), seed=seed), folder)


def _fill_rfid(folder: Path, seed: int, options: rfid.Options) -> Path:
    return rfid.write(rfid.simulate(options, seed), folder)


def _fill_traffic(folder: Path, seed: int, options: traffic.Options) -> Path:
    return traffic.write(traffic.simulate(options, seed), folder)


def _fill_buoys(folder: Path, seed: int, options: buoys.Options) -> Path:
    return buoys.write(buoys.simulate(options, seed), folder)


def _fill_vehicles(folder: Path, seed: int, options: vehicles.Options) -> Path:
    return vehicles.write(vehicles.simulate(options, seed), folder)


def _fill_shop(folder: Path, seed: int, options: shop.Options) -> Path:
    return shop.write(shop.simulate(options, seed), folder)


SCENARIOS: Mapping[str, Scenario] = {
    "office": Scenario(
        "who went for coffee, as far as the RFID antennas of an office floor can tell", office.Options, _fill_office
    ),
    "rfid": Scenario(
        "people and what they carry in a building of two floors, with RFID antennas in its corridors alone",
        rfid.Options,
        _fill_rfid,
    ),
    "traffic": Scenario(
        "congestion of the sectors of a motorway, where some of the times are lost", traffic.Options, _fill_traffic
    ),
    "buoys": Scenario("weather at drifting buoys, with storms passing over", buoys.Options, _fill_buoys),
    "vehicles": Scenario(
        "vehicles that tell where they are only when they have to", vehicles.Options, _fill_vehicles, vehicles.remark
    ),
    "shop": Scenario(
        "items of a shop, read or missed at the shelf, the checkout and the exit", shop.Options, _fill_shop, shop.remark
    ),
}
