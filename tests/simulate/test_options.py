"""Options of scenarios: what a dataclass declares is what can be told, within its bounds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from anabranch.simulate import SCENARIOS, Scenario
from anabranch.simulate.options import Option, make_options, option, options_of


@dataclass(frozen=True)
class Weather:
    days: int = option(7, "how long it lasts", most=30)
    rain: float = option(0.5, "how wet it is", least=0, most=1)


def test_what_is_declared_can_be_told() -> None:
    assert options_of(Weather) == {
        "days": Option(int, 7, "how long it lasts", 1, 30),
        "rain": Option(float, 0.5, "how wet it is", 0, 1),
    }
    assert make_options(Weather, {}) == Weather(7, 0.5)
    assert make_options(Weather, {"rain": 1}) == Weather(7, 1)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"snow": 1}, "there is no option --snow; there are: --days, --rain"),
        ({"days": 0}, "--days is from 1 to 30, not 0"),
        ({"rain": 1.01}, "--rain is from 0 to 1, not 1.01"),
        ({"rain": float("nan")}, "--rain is from 0 to 1, not nan"),
    ],
)
def test_what_is_not_declared_or_out_of_bounds_is_refused(given: dict[str, float], told: str) -> None:
    with pytest.raises(ValueError, match=f"^{told}$"):
        make_options(Weather, given)


def test_a_scenario_fills_its_folder_as_it_was_told(tmp_path: Path) -> None:
    scenario = Scenario("rain", Weather, lambda folder, seed, told: folder / f"{seed}-{told.days}-{told.rain}")
    assert scenario.write(tmp_path, 3, days=2) == tmp_path / "3-2-0.5"


def test_an_option_has_one_type_whatever_the_scenario() -> None:
    """The command line reads it before it knows what the scenario makes of it."""
    types: dict[str, type] = {}
    for scenario in SCENARIOS.values():
        for name, each in options_of(scenario.options).items():
            assert types.setdefault(name, each.type) is each.type
            assert each.least <= each.default <= each.most
