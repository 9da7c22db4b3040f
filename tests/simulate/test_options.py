"""Options of scenarios: the fields of a dataclass, and their bounds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from anabranch.simulate import SCENARIOS, Scenario
from anabranch.simulate.options import Option, make_options, option, options_of


@dataclass(frozen=True)
class Weather:
    days: int = option(7, "number of days", most=30)
    rain: float = option(0.5, "probability of rain", least=0, most=1)


def test_declared_options() -> None:
    assert options_of(Weather) == {
        "days": Option(int, 7, "number of days", 1, 30),
        "rain": Option(float, 0.5, "probability of rain", 0, 1),
    }
    assert make_options(Weather, {}) == Weather(7, 0.5)
    assert make_options(Weather, {"rain": 1}) == Weather(7, 1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"snow": 1}, "there is no option --snow; the options are: --days, --rain"),
        ({"days": 0}, "--days must be from 1 to 30, not 0"),
        ({"rain": 1.01}, "--rain must be from 0 to 1, not 1.01"),
        ({"rain": float("nan")}, "--rain must be from 0 to 1, not nan"),
    ],
)
def test_unknown_options_and_values_out_of_bounds_are_errors(values: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        make_options(Weather, values)


def test_a_scenario_gets_its_options(tmp_path: Path) -> None:
    scenario = Scenario("rain", Weather, lambda folder, seed, options: folder / f"{seed}-{options.days}-{options.rain}")
    assert scenario.write(tmp_path, 3, days=2) == tmp_path / "3-2-0.5"


def test_an_option_has_one_type_in_all_scenarios() -> None:
    """The command line parses an option before it knows the scenario."""
    types: dict[str, type] = {}
    for scenario in SCENARIOS.values():
        for name, declared in options_of(scenario.options).items():
            assert types.setdefault(name, declared.type) is declared.type
            assert declared.least <= declared.default <= declared.most
