"""`anabranch simulate`: simulated data with ground truth, and a workbook to query them."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from anabranch.cli.messages import say
from anabranch.simulate import SCENARIOS
from anabranch.simulate.options import Number, Option, flag, make_options, options_of

Scenario = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="; ".join(f"{n}: {s.summary}" for n, s in SCENARIOS.items()))
]
Output = Annotated[Path, typer.Option("--output", metavar="DIR", help="Output folder.")]
Seed = Annotated[
    int, typer.Option("--seed", min=0, help="Seed of the random numbers; the same seed gives the same data.")
]


def command(scenario: Scenario, output: Output, seed: Seed = 0, **options: Number | None) -> None:
    """Write the streams, relations, ground truth and workbook of a scenario."""
    chosen = SCENARIOS.get(scenario.lower())
    if chosen is None:
        raise typer.BadParameter(f"there is no scenario {scenario}; there are: {', '.join(SCENARIOS)}")
    try:
        values: Any = make_options(
            chosen.options, {name: value for name, value in options.items() if value is not None}
        )
    except ValueError as error:
        raise typer.BadParameter(f"{scenario.lower()}: {error}") from None
    workbook = chosen.fill(output, seed, values)
    if chosen.remark is not None:
        say(chosen.remark(output))
    say(f"written to {output}; next: anabranch run {workbook}")


def _with_options_of_all_scenarios() -> Signature:
    """The signature of `command` with the options of all scenarios, each once."""
    shared: dict[str, dict[str, Option]] = {}
    for scenario, each in SCENARIOS.items():
        for name, option in options_of(each.options).items():
            shared.setdefault(name, {})[scenario] = option
    fixed = [each for each in signature(command, eval_str=True).parameters.values() if each.kind != each.VAR_KEYWORD]
    return Signature([*fixed, *_parameters(shared)], return_annotation=None)


def _parameters(shared: dict[str, dict[str, Option]]) -> Iterator[Parameter]:
    for name, by_scenario in shared.items():
        kind: Any = next(iter(by_scenario.values())).type
        help = "; ".join(f"{scenario}: {o.help} ({o.default})" for scenario, o in by_scenario.items())
        annotation = Annotated[kind | None, typer.Option(flag(name), help=help, show_default=False)]
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


# Typer derives the options of a command from its signature.
command.__signature__ = _with_options_of_all_scenarios()  # type: ignore[attr-defined]
