"""`anabranch demo`: simulated worlds, a query of each kind, and how its answers compare with the truth."""

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
from anabranch.cli.common import Verbose, progress, say, summary
from anabranch.simulate import SCENARIOS
from anabranch.simulate.options import Value

if TYPE_CHECKING:
    from anabranch.session import Session

#: An answer counts as found where it is at least this probable: an arrival is often shared out over two instants.
FOUND = 0.25

#: Answers shown of each query.
SHOWN = 8

#: Acts that are prepared at a time. Each compiles kernels of its own the first time, which keeps a core busy; and is a
#: single task, for every worker that takes part would compile the same.
AT_A_TIME = 2

#: MONITOR has the largest kernel: what is compiled beside it then costs no time.
PREPARED_FIRST = "vehicles"

Folder = Annotated[Path | None, typer.Option("--output", metavar="DIR", help="Keep the demo's files here.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Another seed, another day.")]

Answers = Mapping[str, pa.Table]
"""By the name of their query."""


class Told(NamedTuple):
    """What an act shows: what happened, some answers, and how all of them compare with the truth."""

    scene: str
    title: str
    rows: pa.Table
    verdict: str = ""
    truth: pa.Table | None = None


class Act(NamedTuple):
    """A query about a simulated world: the queries of its workbook, and what is told of their answers."""

    scenario: str
    plain_words: str
    queries: tuple[str, ...]
    tell: Callable[[Answers, Path], Told]
    options: Mapping[str, Value] = {}


def command(output: Folder = None, seed: Seed = 0, verbose: Verbose = False) -> None:
    """Simulate an office, a shop, a motorway, roads and an ocean, ask about them, and compare with what happened."""
    from anabranch.runtime.spark import make_session
    from anabranch.session import Session

    folder = output or Path(tempfile.gettempdir()) / "anabranch-demo"
    console = Console()
    with progress("starting", lambda: 0):
        # Fair, so that acts share the cores; the first would have all of them otherwise.
        spark = make_session(None, verbose, spark__scheduler__mode="FAIR")
    with ThreadPoolExecutor(AT_A_TIME) as backstage:
        asked = {
            act.scenario: backstage.submit(_ask, act, folder / act.scenario, seed, Session(spark, partitions=1))
            for act in sorted(ACTS, key=lambda act: act.scenario != PREPARED_FIRST)
        }
        for act in ACTS:
            _play(act, folder / act.scenario, asked[act.scenario], console)
    first = ACTS[0].scenario
    _what_next(console, folder / first / f"{first}.abq")


def _ask(act: Act, folder: Path, seed: int, session: Session) -> tuple[Answers, list[str]]:
    """Simulate the world of an act: the answers to its queries, and what became of their rows."""
    workbook = SCENARIOS[act.scenario].write(folder, seed, **act.options)
    session.spark.sparkContext.setLocalProperty("spark.scheduler.pool", act.scenario)
    session.execute_file(str(workbook))
    answers, told = {}, []
    for name in act.queries:
        began = time.monotonic()
        answers[name] = session.run(name).toArrow()
        told.append(summary(name, session.counts(name), time.monotonic() - began))
    return answers, told


def _play(act: Act, folder: Path, asked: Future[tuple[Answers, list[str]]], console: Console) -> None:
    """Print what happened, what is asked, what is answered, and how good that is."""
    with progress(f"asking about {act.scenario}", lambda: 0):
        answers, became = asked.result()
    told = act.tell(answers, folder)
    console.print(told.scene)
    console.print(act.plain_words, style="bold")
    say("\n".join(became))
    console.print()
    print_answers(told.rows, console, title=told.title, limit=SHOWN)
    if told.truth is not None:
        console.print()
        print_chart(told.rows, console, threshold=FOUND, truth=told.truth)
        console.print()
        print_verdicts(told.rows, told.truth, console, at_least=FOUND, group="p")
    else:
        console.print(told.verdict)
    console.print()


# ---------------------------------------------------------------- the acts


def _office(found: Answers, folder: Path) -> Told:
    """PATTERN: antennas missed most of what happened."""
    scene = (
        f"Six people in an office for two hours; its antennas read their tags {_count(folder, 'readings'):,} times, "
        "and missed them far more often."
    )
    answers = found["coffee"].sort_by([("t", "ascending"), ("p", "ascending")])
    truth = pq.read_table(folder / "true_trips.parquet").select(["person", "t"]).rename_columns(["p", "t"])
    return Told(scene, "coffee: the first answers", answers, truth=truth)


def _shop(found: Answers, folder: Path) -> Told:
    """SEQUENCE: antennas missed one tag in ten."""
    truth = pq.read_table(folder / "true_trips.parquet")
    scene = (
        f"A shop with {truth.num_rows:,} items taken from its shelves: antennas at shelf, checkout and exit read their "
        f"tags {_count(folder, 'reads'):,} times, and missed one in ten."
    )
    answers = found["shoplifting"].sort_by("t")
    tags = [event["tag"] for event in answers["z"].to_pylist()]
    rows = pa.table({"t": answers["t"], "tag": tags, "probability": answers["probability"]})
    stolen = set(truth.filter(pc.and_(truth["stolen"], truth["exit_read"]))["tag"].to_pylist())
    verdict = _verdict(set(tags), stolen, "items that really did, and were read at the exit,")
    expected = pc.sum(answers["probability"]).as_py()
    return Told(scene, "shoplifting: the first answers", rows, f"{verdict} The probabilities add up to {expected:.0f}.")


def _motorway(found: Answers, folder: Path) -> Told:
    """RELATE: some beginnings and ends were lost."""
    events = _count(folder, "true_congestion")
    recorded = pq.read_table(folder / "congestion.parquet", columns=["t"])["t"].drop_null()
    scene = (
        f"A motorway of 200 sectors for two hours: {events:,} times congestion began or ended somewhere, and "
        f"{events - len(recorded):,} of these moments were lost."
    )
    pairs, real = (_pairs(found[name], "sector") for name in ("jam", "true_jam"))
    rows = found["jam"].sort_by("probability")
    return Told(scene, "jam: the least probable answers", rows, _verdict(pairs, real, "pairs that really did,"))


def _roads(found: Answers, folder: Path) -> Told:
    """MONITOR: cars reported rarely."""
    positions = pq.read_table(folder / "true_positions.parquet")
    scene = (
        f"Twenty cars for three minutes; their GPS measured {positions.num_rows:,} positions, and they reported "
        f"{_count(folder, 'cars'):,}: where they had strayed 25 m from what they had said, or said nothing for half a "
        "minute."
    )
    answers = found["near"].sort_by([("valid_from", "ascending"), ("probability", "ascending")])
    cars = [f"{row['a']['car']}, {row['b']['car']}" for row in answers.select(["a", "b"]).to_pylist()]
    rows = answers.select(["valid_from", "valid_to", "probability"]).add_column(0, "cars", [cars])
    verdict = _verdict(_pairs(answers, "car"), _near_pairs(positions, 400.0), "pairs that really did,", "may have")
    return Told(scene, "near: the first answers", rows, verdict)


def _ocean(found: Answers, folder: Path) -> Told:
    """CONSTRAIN: nothing is uncertain."""
    readings = _count(folder, "readings")
    scene = f"An ocean with 200 drifting buoys for a month: {readings:,} readings, and storms passing over."
    answers = found["low"].sort_by("t")
    alerts = answers["v"].to_pylist()
    buoys = [", ".join(str(event["buoy"]) for event in alert) for alert in alerts]
    rows = pa.table({"t": answers["t"], "buoys": buoys, "probability": answers["probability"]})
    hits = pq.read_table(folder / "true_hits.parquet", columns=["storm", "buoy", "t"]).to_pylist()
    storm_of = {(hit["buoy"], hit["t"]): hit["storm"] for hit in hits}
    storms = {frozenset(storm_of.get((event["buoy"], event["t"])) for event in alert) for alert in alerts}
    real = {frozenset([storm]) for storm in storm_of.values()}
    return Told(scene, "low: the first answers", rows, _verdict(storms, real, "storms that buoys were in,"))


ACTS = (
    Act("office", "PATTERN: who went from their office through the hall to the coffee room?", ("coffee",), _office),
    Act("shop", "SEQUENCE: which left without having been paid for?", ("shoplifting",), _shop),
    Act(
        "traffic",
        "RELATE: in which two sectors did it happen together, twice at least?",
        ("jam", "true_jam"),
        _motorway,
        {"loss": 0.3},
    ),
    Act("vehicles", "MONITOR: which came within 400 m of each other, and when?", ("near",), _roads, {"objects": 20}),
    Act(
        "buoys",
        "CONSTRAIN: where did three buoys within 500 km of each other report low pressure in half a day?",
        ("low",),
        _ocean,
    ),
)


def _count(folder: Path, name: str) -> int:
    """The rows of a file."""
    return pq.read_metadata(folder / f"{name}.parquet").num_rows


def _verdict(found: Set[Hashable], real: Set[Hashable], what: str, others: str = "are wrong") -> str:
    return f"Of {len(real):,} {what} {len(found & real):,} were found; {len(found - real):,} others {others}."


def _pairs(answers: pa.Table, key: str) -> set[tuple[int, int]]:
    """The keys of a and b in each answer."""
    return {(row["a"][key], row["b"][key]) for row in answers.select(["a", "b"]).to_pylist()}


def _near_pairs(positions: pa.Table, near: float) -> set[tuple[int, int]]:
    """The pairs of cars, the lesser first, that were near in x and in y where GPS measured both."""
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
        ("ask it of a stream", f"{anabranch} stream {workbook} --once --checkpoint cp --output out"),
    ):
        console.print(f"  {what:<20}{how}", markup=False, soft_wrap=True)
