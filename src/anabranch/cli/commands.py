"""The commands and their help. A command's module is imported when the command is called."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

#: The first line of the help of each command, which is also the docstring of its function.
COMMANDS = {
    "run": "Run the queries of a workbook over the archive.",
    "stream": "Run the queries of a workbook on live inputs; a restarted stream resumes from its checkpoint.",
    "status": "Show what the streams of a checkpoint folder do: watermark, rows, rates and state.",
    "state": "Show what the streams of a checkpoint folder keep, or what they keep about a key.",
    "serve": "Write workbooks, run them and see their answers on a page; only this machine can open it.",
    "shell": "Type queries and see their answers; without a terminal, execute standard input.",
    "explain": "Show the class, the plan and the cost of each query.",
    "why": "Explain the probability of an answer: what moved it, and the most likely histories.",
    "why-not": "Explain why a query has no answers, or none of a key: where it fails, and the rows that are missing.",
    "check": "Parse, bind and analyse a workbook, and report every error.",
    "new": "Write a commented workbook from the columns of a file, and say what was guessed.",
    "replay": "Play an archive as a live stream by event time: to a folder, a Kafka topic or an MQTT topic.",
    "rows": "Show or write the rows of a stream; those of an inferred or predicted stream are derived.",
    "simulate": "Write the streams, relations, ground truth and workbook of a scenario.",
    "demo": "Simulate an office, a shop, a motorway, roads and an ocean, query them, and compare with the truth.",
    "examples": "Copy the example workbooks, with their data, into a new folder.",
    "doctor": "Check Python, Java, Spark, kernels, cores, memory, disk and caches.",
    "pack": "Pack Python, the package and its dependencies into an archive for Spark's executors.",
    "fit": "Learn a model from history.",
    "plot": "Draw answers as an interactive page, a picture or GeoJSON.",
    "evaluate": "Compare answers with ground truth: precision, recall, calibration, and the best threshold.",
    "language-server": "Tell editors what is wrong with workbooks, complete words, and explain queries (LSP on stdio).",
    "holdout": "Remove a share of the events of a file by a seed, and keep them as ground truth.",
}


#: A command that Spark calls in a container, and that the help does not list.
CALLED_BY_SPARK = "executor"


class LazyGroup(TyperGroup):
    """A group of commands that knows their names and help, and imports the module of the command that is called.

    Loading all of them would load Spark, Arrow and Numba for `anabranch --help`.
    """

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        # Only the names are used, for suggestions; the commands come from `get_command`.
        self.commands: Any = dict.fromkeys(COMMANDS)

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name; None if there is none."""
        if cmd_name not in COMMANDS and cmd_name != CALLED_BY_SPARK:
            return None
        module = import_module(f"anabranch.cli.{cmd_name.replace('-', '_')}")
        app = getattr(module, "app", None)
        if app is None:
            app = typer.Typer(rich_markup_mode=None, add_completion=False)
            app.command(name=cmd_name)(module.command)
        command = typer.main.get_command(app)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the names and help of the commands, without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
