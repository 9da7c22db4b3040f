"""`anabranch demo`: simulates five scenarios, runs a query of each kind, and compares the answers with the truth.

In the end one of them is played as a live stream.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Hashable, Mapping, Set
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import typer
from rich.console import Console

from anabranch.charts import print_answers, print_chart, print_verdicts
from anabranch.cli import options
from anabranch.cli.messages import say
from anabranch.cli.progress import progress
from anabranch.cli.summary import summary_line
from anabranch.simulate import SCENARIOS
from anabranch.simulate.options import Value

if TYPE_CHECKING:
    from anabranch.session import Session

#: An event counts as found if its answer has at least this probability: an arrival is often split over two instants.
FOUND = 0.25

#: How many answers of each query are printed.
SHOWN = 8

#: How many scenarios run at the same time. Each is a single task, so that each keeps one core busy.
CONCURRENT = 2

#: MONITOR takes longest, most of all where its kernels have to be compiled.
STARTED_FIRST = "vehicles"

#: The scenario that is played as a live stream in the end.
LIVE = "shop"

Folder = Annotated[
    Path | None,
    typer.Option("--output", metavar="DIR", help="Folder for the files of the demo. Default: a temporary folder."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the simulations.")]

Answers = Mapping[str, pa.Table]
"""The answers of each query, by its name."""


class Result(NamedTuple):
    """What is printed about a scenario: what was simulated, some answers, and a comparison with the truth."""

    description: str
    title: str
    rows: pa.Table
    verdict: str = ""
    truth: pa.Table | None = None


class Demo(NamedTuple):
    """A scenario with a question in plain words, the queries that answer it, and a function that evaluates them."""

    scenario: str
    question: str
    queries: tuple[str, ...]
    evaluate: Callable[[Answers, Path], Result]
    options: Mapping[str, Value] = {}


def command(output: Folder = None, seed: Seed = 0, verbose: options.Verbose = False) -> None:
    """Simulate an office, a shop, a motorway, roads and an ocean, query them, and compare with the truth."""
    from anabranch.cli.live_demo import play_live
    from anabranch.runtime.spark import make_session
    from anabranch.session import Session

    folder = output or Path(tempfile.gettempdir()) / "anabranch-demo"
    console = Console()
    with progress("starting", lambda: 0):
        # Fair scheduling, because the first scenario would otherwise use all cores.
        spark = make_session(None, verbose, short=True, settings={"spark.scheduler.mode": "FAIR"})
    with ThreadPoolExecutor(CONCURRENT) as pool:
        runs = {
            demo.scenario: pool.submit(_run, demo, folder / demo.scenario, seed, Session(spark, partitions=1))
            for demo in sorted(DEMOS, key=lambda demo: demo.scenario != STARTED_FIRST)
        }
        for demo in DEMOS:
            _print_demo(demo, folder / demo.scenario, runs[demo.scenario], console)
    archived, _ = runs[LIVE].result()
    play_live(Session(spark, partitions=1), folder / LIVE, archived["shoplifting"], console)
    first = DEMOS[0].scenario
    _what_next(console, folder / first / f"{first}.abq")


def _run(demo: Demo, folder: Path, seed: int, session: Session) -> tuple[Answers, list[str]]:
    """Simulate a scenario and run its queries; returns the answers and the summaries."""
    from anabranch.runtime.spark_mode import use_scheduler_pool

    workbook = SCENARIOS[demo.scenario].write(folder, seed, **demo.options)
    use_scheduler_pool(session.spark, demo.scenario)
    session.execute_file(str(workbook))
    answers, summaries = {}, []
    for name in demo.queries:
        began = time.monotonic()
        answers[name] = session.run(name).toArrow()
        summaries.append(summary_line(name, session.counts(name), time.monotonic() - began))
    return answers, summaries


def _print_demo(demo: Demo, folder: Path, run: Future[tuple[Answers, list[str]]], console: Console) -> None:
    """Print what was simulated, the question, the answers, and how they compare with the truth."""
    with progress(f"running {demo.scenario}", lambda: 0):
        answers, summaries = run.result()
    result = demo.evaluate(answers, folder)
    console.print(result.description)
    console.print(demo.question, style="bold")
    say("\n".join(summaries))
    console.print()
    print_answers(result.rows, console, title=result.title, limit=SHOWN)
    if result.truth is not None:
        console.print()
        print_chart(result.rows, console, threshold=FOUND, truth=result.truth)
        console.print()
        print_verdicts(result.rows, result.truth, console, at_least=FOUND, group="p")
    else:
        console.print(result.verdict)
    console.print()


# ---------------------------------------------------------------- the scenarios


def _office(answers_of: Answers, folder: Path) -> Result:
    """PATTERN: antennas missed most readings."""
    description = (
        f"Six people in an office for two hours; antennas read their tags {_count(folder, 'readings'):,} times, "
        "and missed them far more often."
    )
    answers = answers_of["coffee"].sort_by([("t", "ascending"), ("p", "ascending")])
    truth = pq.read_table(folder / "true_trips.parquet").select(["person", "t"]).rename_columns(["p", "t"])
    return Result(description, "coffee: the first answers", answers, truth=truth)


def _shop(answers_of: Answers, folder: Path) -> Result:
    """SEQUENCE: antennas missed one tag in ten."""
    truth = pq.read_table(folder / "true_trips.parquet")
    description = (
        f"A shop with {truth.num_rows:,} items taken from its shelves: antennas at shelf, checkout and exit read their "
        f"tags {_count(folder, 'reads'):,} times, and missed one in ten."
    )
    answers = answers_of["shoplifting"].sort_by("t")
    tags = [event["tag"] for event in answers["z"].to_pylist()]
    rows = pa.table({"t": answers["t"], "tag": tags, "probability": answers["probability"]})
    stolen = set(truth.filter(pc.and_(truth["stolen"], truth["exit_read"]))["tag"].to_pylist())
    verdict = _verdict(set(tags), stolen, "stolen items that were read at the exit,")
    expected = pc.sum(answers["probability"]).as_py()
    return Result(
        description, "shoplifting: the first answers", rows, f"{verdict} The probabilities add up to {expected:.0f}."
    )


def _motorway(answers_of: Answers, folder: Path) -> Result:
    """RELATE: some start and end times are lost."""
    events = _count(folder, "true_congestion")
    recorded = pq.read_table(folder / "congestion.parquet", columns=["t"])["t"].drop_null()
    description = (
        f"A motorway of 200 sectors for two hours: {events:,} times congestion began or ended somewhere, and "
        f"{events - len(recorded):,} of these times are lost."
    )
    pairs, real = (_pairs(answers_of[name], "sector") for name in ("jam", "true_jam"))
    rows = answers_of["jam"].sort_by("probability")
    return Result(description, "jam: the least probable answers", rows, _verdict(pairs, real, "true pairs,"))


def _roads(answers_of: Answers, folder: Path) -> Result:
    """MONITOR: cars report rarely."""
    positions = pq.read_table(folder / "true_positions.parquet")
    description = (
        f"Twenty cars for three minutes; their GPS measured {positions.num_rows:,} positions, and they reported "
        f"{_count(folder, 'cars'):,}: when they were 25 m away from the predicted position, or had not reported for "
        "half a minute."
    )
    answers = answers_of["near"].sort_by([("valid_from", "ascending"), ("probability", "ascending")])
    cars = [f"{row['a']['car']}, {row['b']['car']}" for row in answers.select(["a", "b"]).to_pylist()]
    rows = answers.select(["valid_from", "valid_to", "probability"]).add_column(0, "cars", [cars])
    verdict = _verdict(_pairs(answers, "car"), _near_pairs(positions, 400.0), "true pairs,", "may have")
    return Result(description, "near: the first answers", rows, verdict)


def _ocean(answers_of: Answers, folder: Path) -> Result:
    """CONSTRAIN: nothing is uncertain."""
    readings = _count(folder, "readings")
    description = f"An ocean with 200 drifting buoys for a month: {readings:,} readings, and storms passing over."
    answers = answers_of["low"].sort_by("t")
    alerts = answers["v"].to_pylist()
    buoys = [", ".join(str(event["buoy"]) for event in alert) for alert in alerts]
    rows = pa.table({"t": answers["t"], "buoys": buoys, "probability": answers["probability"]})
    hits = pq.read_table(folder / "true_hits.parquet", columns=["storm", "buoy", "t"]).to_pylist()
    storm_of = {(hit["buoy"], hit["t"]): hit["storm"] for hit in hits}
    storms = {frozenset(storm_of.get((event["buoy"], event["t"])) for event in alert) for alert in alerts}
    real = {frozenset([storm]) for storm in storm_of.values()}
    return Result(description, "low: the first answers", rows, _verdict(storms, real, "storms with a buoy inside,"))


DEMOS = (
    Demo("office", "PATTERN: who went from their office through the hall to the coffee room?", ("coffee",), _office),
    Demo("shop", "SEQUENCE: which items left the shop without being paid for?", ("shoplifting",), _shop),
    Demo(
        "traffic",
        "RELATE: which pairs of sectors were congested at the same time, at least twice?",
        ("jam", "true_jam"),
        _motorway,
        {"loss": 0.3},
    ),
    Demo(
        "vehicles", "MONITOR: which cars came within 400 m of each other, and when?", ("near",), _roads, {"objects": 20}
    ),
    Demo(
        "buoys",
        "CONSTRAIN: where did three buoys within 500 km of each other report low pressure in half a day?",
        ("low",),
        _ocean,
    ),
)


def _count(folder: Path, name: str) -> int:
    """The number of rows of a file."""
    return pq.read_metadata(folder / f"{name}.parquet").num_rows


def _verdict(found: Set[Hashable], real: Set[Hashable], what: str, others: str = "are wrong") -> str:
    return f"Of {len(real):,} {what} {len(found & real):,} were found; {len(found - real):,} others {others}."


def _pairs(answers: pa.Table, key: str) -> set[tuple[int, int]]:
    """The keys of a and b of all answers."""
    return {(row["a"][key], row["b"][key]) for row in answers.select(["a", "b"]).to_pylist()}


def _near_pairs(positions: pa.Table, near: float) -> set[tuple[int, int]]:
    """The pairs of cars, smaller number first, that were near in x and in y when GPS measured both."""
    times, *columns = (positions[name].to_numpy() for name in ("t", "car", "x", "y"))
    pairs: set[tuple[int, int]] = set()
    for instant in np.unique(times):
        car, x, y = (column[times == instant] for column in columns)
        close = (np.abs(x[:, None] - x) <= near) & (np.abs(y[:, None] - y) <= near) & (car[:, None] < car)
        pairs |= {(int(car[one]), int(car[other])) for one, other in np.argwhere(close)}
    return pairs


def _what_next(console: Console, workbook: Path) -> None:
    console.print("Next:", style="bold")
    anabranch = "anabranch" if shutil.which("anabranch") else sys.argv[0]
    for what, how in (
        ("read a query", f"{workbook}"),
        ("see its plan", f"{anabranch} explain {workbook}"),
        ("run it as a stream", f"{anabranch} stream {workbook} --once --checkpoint cp --output out"),
    ):
        console.print(f"  {what:<20}{how}", markup=False, soft_wrap=True)
