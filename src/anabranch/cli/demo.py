"""`anabranch demo`: an office with RFID antennas that miss most people, and who went for coffee all the same."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pyarrow as pa
import pyarrow.parquet as pq
import typer
from rich.console import Console

from anabranch.cli.common import Verbose, open_workbook, progress, say, summary
from anabranch.show import print_answers, print_chart, print_verdicts
from anabranch.simulate import SCENARIOS

if TYPE_CHECKING:
    from anabranch.session import Session

#: An answer counts as found where it is at least this probable: an arrival is often shared out over two instants.
FOUND = 0.25

Folder = Annotated[Path | None, typer.Option("--output", metavar="DIR", help="Keep the demo's files here.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Another seed, another day.")]


def command(output: Folder = None, seed: Seed = 0, verbose: Verbose = False) -> None:
    """Simulate an office, ask who went for coffee, and compare with what really happened."""
    folder = output or Path(tempfile.gettempdir()) / "anabranch-demo"
    console = Console()
    with progress("simulating an office", lambda: 0):
        workbook = SCENARIOS["office"].write(folder, seed)
    readings = pq.read_metadata(folder / "readings.parquet").num_rows
    console.print(
        f"Six people in an office for two hours; its antennas read their tags {readings:,} times, "
        "and missed them far more often."
    )
    console.print("Who went from their office through the hall to the coffee room?", style="bold")
    session = open_workbook(str(workbook), None, verbose=verbose)
    answers = _ask(session, "coffee")
    truth = pq.read_table(folder / "true_trips.parquet").select(["person", "t"]).rename_columns(["p", "t"])
    console.print()
    print_answers(answers, console, title="coffee: the first answers", limit=8)
    console.print()
    print_chart(answers, console, threshold=FOUND, truth=truth)
    console.print()
    print_verdicts(answers, truth, console, at_least=FOUND, group="p")
    _what_next(console, workbook)


def _ask(session: Session, name: str) -> pa.Table:
    began = time.monotonic()
    counter = session.spark.sparkContext.accumulator(0)
    with progress("asking", lambda: counter.value):
        answers = session.run(name, counter=counter).toArrow()
    say(summary(name, session.report(name), time.monotonic() - began))
    return answers.sort_by([("t", "ascending"), ("p", "ascending")])


def _what_next(console: Console, workbook: Path) -> None:
    console.print()
    console.print("Next:", style="bold")
    anabranch = "anabranch" if shutil.which("anabranch") else sys.argv[0]
    for what, how in (
        ("read the question", f"{workbook}"),
        ("see its plan", f"{anabranch} explain {workbook}"),
        ("ask it of a stream", f"{anabranch} stream {workbook} --once --checkpoint cp --output out"),
    ):
        console.print(f"  {what:<20}{how}", markup=False, soft_wrap=True)
