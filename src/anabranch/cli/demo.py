"""`anabranch demo`: simulated worlds, a question of each kind, and how its answers compare with the truth."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
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
    """Simulate an office, a shop, a motorway, an ocean and roads, ask about them, and compare with what happened."""
    folder = output or Path(tempfile.gettempdir()) / "anabranch-demo"
    console = Console()
    workbook = _office(folder / "office", seed, verbose, console)
    console.print()
    _shop(folder / "shop", seed, verbose, console)
    console.print()
    _motorway(folder / "motorway", seed, verbose, console)
    console.print()
    _ocean(folder / "ocean", seed, verbose, console)
    console.print()
    _roads(folder / "roads", seed, verbose, console)
    _what_next(console, workbook)


def _office(folder: Path, seed: int, verbose: bool, console: Console) -> Path:
    """PATTERN: who went for coffee, though antennas missed most of it."""
    with progress("simulating an office", lambda: 0):
        workbook = SCENARIOS["office"].write(folder, seed)
    readings = pq.read_metadata(folder / "readings.parquet").num_rows
    console.print(
        f"Six people in an office for two hours; its antennas read their tags {readings:,} times, "
        "and missed them far more often."
    )
    console.print("PATTERN: who went from their office through the hall to the coffee room?", style="bold")
    session = open_workbook(str(workbook), None, verbose=verbose)
    answers = _ask(session, "coffee").sort_by([("t", "ascending"), ("p", "ascending")])
    truth = pq.read_table(folder / "true_trips.parquet").select(["person", "t"]).rename_columns(["p", "t"])
    console.print()
    print_answers(answers, console, title="coffee: the first answers", limit=8)
    console.print()
    print_chart(answers, console, threshold=FOUND, truth=truth)
    console.print()
    print_verdicts(answers, truth, console, at_least=FOUND, group="p")
    return workbook


def _shop(folder: Path, seed: int, verbose: bool, console: Console) -> None:
    """SEQUENCE: what was carried out without being paid for, though antennas missed one tag in ten."""
    with progress("simulating a shop", lambda: 0):
        workbook = SCENARIOS["shop"].write(folder, seed)
    reads = pq.read_metadata(folder / "reads.parquet").num_rows
    truth = csv.read_csv(folder / "truth.csv")
    stolen = set(truth.filter(truth["stolen"])["tag"].to_pylist())
    console.print(
        f"A shop with {truth.num_rows:,} items taken from its shelves: antennas at shelf, checkout and exit read their "
        f"tags {reads:,} times, and missed one in ten."
    )
    console.print("SEQUENCE: which left without having been paid for?", style="bold")
    session = open_workbook(str(workbook), None, verbose=verbose)
    answers = _ask(session, "shoplifting").sort_by("t")
    tags = [event["tag"] for event in answers["z"].to_pylist()]
    console.print()
    shown = pa.table({"t": answers["t"], "tag": tags, "probability": answers["probability"]})
    print_answers(shown, console, title="shoplifting: the first answers", limit=8)
    console.print()
    console.print(
        f"{len(tags):,} items left unpaid with a probability of a half at least; these add up to "
        f"{sum(answers['probability'].to_pylist()):.1f}, and {len(set(tags) & stolen):,} of them really were."
    )


def _motorway(folder: Path, seed: int, verbose: bool, console: Console) -> None:
    """RELATE: which sectors were congested together, though some beginnings and ends were lost."""
    with progress("simulating a motorway", lambda: 0):
        workbook = SCENARIOS["traffic"].write(folder, seed, loss=0.3)
    events, kept = (pq.read_table(folder / f"{name}.parquet", columns=["t"]) for name in ("truth", "congestion"))
    lost = events.num_rows - kept["t"].drop_null().length()
    console.print(
        f"A motorway of 200 sectors for two hours: {events.num_rows:,} times congestion began or ended somewhere, "
        f"and {lost:,} of these moments were lost."
    )
    console.print("RELATE: in which two sectors did it happen together, twice at least?", style="bold")
    session = open_workbook(str(workbook), None, verbose=verbose)
    answers, truth = _ask(session, "jam"), _ask(session, "true_jam")
    console.print()
    print_answers(answers.sort_by("probability"), console, title="jam: the least probable answers", limit=8)
    found, real = (set(map(str, table.select(["a", "b"]).to_pylist())) for table in (answers, truth))
    console.print()
    console.print(
        f"Of {len(real):,} pairs that really did, {len(found & real):,} were found; {len(found - real)} are wrong."
    )


def _ocean(folder: Path, seed: int, verbose: bool, console: Console) -> None:
    """CONSTRAIN: where three buoys felt the same storm."""
    with progress("simulating an ocean", lambda: 0):
        workbook = SCENARIOS["buoys"].write(folder, seed)
    readings = pq.read_metadata(folder / "readings.parquet").num_rows
    console.print(f"An ocean with 200 drifting buoys for a month: {readings:,} readings, and storms passing over.")
    console.print(
        "CONSTRAIN: where did three buoys within 500 km of each other report low pressure in half a day?", style="bold"
    )
    session = open_workbook(str(workbook), None, verbose=verbose)
    answers = _ask(session, "low").sort_by("t")
    hits = pq.read_table(folder / "hits.parquet", columns=["storm", "buoy", "t"]).to_pylist()
    storms = {(hit["buoy"], hit["t"]): hit["storm"] for hit in hits}
    named = [{storms.get((event["buoy"], event["t"])) for event in alert} for alert in answers["v"].to_pylist()]
    console.print()
    print_answers(_shortened(answers), console, title="low: the first alerts", limit=8)
    real = [next(iter(each)) for each in named if len(each) == 1 and None not in each]
    console.print()
    console.print(
        f"Of {len(named):,} alerts, {len(real):,} are three readings from inside one storm; "
        f"{len(set(real))} of {len(set(storms.values()))} storms that buoys were in were found."
    )


def _roads(folder: Path, seed: int, verbose: bool, console: Console) -> None:
    """MONITOR: which cars came near each other, though they reported rarely."""
    with progress("simulating roads", lambda: 0):
        workbook = SCENARIOS["vehicles"].write(folder, seed, objects=20)
    measured, reported = (pq.read_metadata(folder / f"{name}.parquet").num_rows for name in ("positions", "cars"))
    console.print(
        f"Twenty cars for three minutes; their GPS measured {measured:,} positions, and they reported {reported:,}: "
        "where they had strayed 25 m from what they had said, or said nothing for half a minute."
    )
    console.print("MONITOR: which of them came within 400 m of each other, and when?", style="bold")
    session = open_workbook(str(workbook), None, verbose=verbose)
    answers = _ask(session, "near").sort_by([("valid_from", "ascending"), ("probability", "ascending")])
    found = {(row["a"]["car"], row["b"]["car"]) for row in answers.select(["a", "b"]).to_pylist()}
    real = _true_pairs(pq.read_table(folder / "positions.parquet"), 400.0)
    console.print()
    print_answers(_with_cars(answers), console, title="near: the first answers", limit=8)
    console.print()
    console.print(
        f"Of {len(real)} pairs that really did, {len(found & real)} were found; {len(found - real)} others may have."
    )


def _with_cars(answers: pa.Table) -> pa.Table:
    """The answers with the names of their cars, and when they hold."""
    cars = [f"{row['a']['car']}, {row['b']['car']}" for row in answers.select(["a", "b"]).to_pylist()]
    return pa.table({"cars": cars, **{name: answers[name] for name in ("valid_from", "valid_to", "probability")}})


def _true_pairs(positions: pa.Table, near: float) -> set[tuple[int, int]]:
    """The pairs of cars, the lesser first, that were near in x and in y where GPS measured both."""
    columns = [positions[name].to_numpy() for name in ("t", "car", "x", "y")]
    pairs: set[tuple[int, int]] = set()
    for instant in np.unique(columns[0]):
        car, x, y = (column[columns[0] == instant] for column in columns[1:])
        close = (np.abs(x[:, None] - x) <= near) & (np.abs(y[:, None] - y) <= near) & (car[:, None] < car)
        pairs |= {(int(car[one]), int(car[other])) for one, other in np.argwhere(close)}
    return pairs


def _shortened(answers: pa.Table) -> pa.Table:
    """The alerts with the names of their buoys alone."""
    buoys = [", ".join(str(event["buoy"]) for event in alert) for alert in answers["v"].to_pylist()]
    return pa.table({"t": answers["t"], "buoys": buoys, "probability": answers["probability"]})


def _ask(session: Session, name: str) -> pa.Table:
    began = time.monotonic()
    counter = session.spark.sparkContext.accumulator(0)
    with progress("asking", lambda: counter.value):
        answers = session.run(name, counter=counter).toArrow()
    say(summary(name, session.report(name), time.monotonic() - began))
    return answers


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
