"""`anabranch simulate`: data with ground truth, ready to query."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anabranch.cli.common import say
from anabranch.simulate import SCENARIOS

Scenario = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="; ".join(f"{n}: {s.summary}" for n, s in SCENARIOS.items()))
]
Output = Annotated[Path, typer.Option("--output", metavar="DIR", help="The folder to write.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same data.")]


def command(scenario: Scenario, output: Output, seed: Seed = 0) -> None:
    """Write a scenario: its streams, relations, true events and a workbook."""
    chosen = SCENARIOS.get(scenario.lower())
    if chosen is None:
        raise typer.BadParameter(f"there is no scenario {scenario}; there are: {', '.join(SCENARIOS)}")
    workbook = chosen.write(output, seed)
    say(f"written to {output}; now: anabranch run {workbook}")
