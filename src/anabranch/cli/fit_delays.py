"""`anabranch fit delays`: learns the MISS, OCCURS and DELAY clauses of a SEQUENCE from the history of its streams."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.binding.binder import bind
from anabranch.binding.typed import Member, walk
from anabranch.catalog import Catalog, Query
from anabranch.cli import options
from anabranch.cli.common import chosen_queries, open_workbook, valid_rows
from anabranch.cli.messages import say
from anabranch.cli.progress import progress
from anabranch.errors import WorkbookError
from anabranch.language.reading import read_workbook
from anabranch.language.types import Type
from anabranch.sequence.query import BoundSequence

if TYPE_CHECKING:
    from rich.console import Console

    from anabranch.sequence.fit import ComponentFit
    from anabranch.sequence.history import History
    from anabranch.sequence.likelihood import FittedDistribution
    from anabranch.sequence.occurrence_fit import Stated
    from anabranch.session import Session

#: With fewer passes, the estimates are reported with a warning.
FEW_PASSES = 100

OneQuery = Annotated[str, typer.Option("--query", metavar="NAME", help="The SEQUENCE query.")]
Output = Annotated[Path, typer.Option("--output", metavar="DIR", help="Output folder for the fitted delays.")]
Misses = Annotated[
    list[str] | None,
    typer.Option(
        "--miss", metavar="NAME=P", help="A known MISS of a component; its OCCURS is learned (may be repeated)."
    ),
]
Occurrences = Annotated[
    list[str] | None,
    typer.Option(
        "--occurs", metavar="NAME=P[+-E]", help="A known OCCURS of a component; its MISS is learned (may be repeated)."
    ),
]


def command(
    workbook: options.Workbook,
    query: OneQuery,
    output: Output,
    miss: Misses = None,
    occurs: Occurrences = None,
    input: options.Inputs = None,
    master: options.Master = None,
    verbose: options.Verbose = False,
) -> None:
    """Learn the delays, losses and occurrences of the components of a SEQUENCE, for DELAY, MISS and OCCURS."""
    # Imported here, because the optimisers take long to load.
    from rich.console import Console

    from anabranch.sequence.files import write_fits
    from anabranch.sequence.fit import fit_delays

    session = open_workbook(workbook, input, master, verbose)
    (chosen,) = chosen_queries(session.catalog, [query])
    with progress("learning", lambda: 0):
        bound, history = _history(session, chosen, workbook)
        fits = fit_delays(history, _stated(bound, miss or [], occurs or []))
        write_fits(fits, output)
        _draw(bound, fits, output)
    console = Console(soft_wrap=True, markup=False, highlight=False)
    for fit in fits:
        _show(fit, console)
    # Paths in a workbook are relative to it.
    path = os.path.relpath(output, os.path.dirname(workbook) or ".")
    console.print(_clauses(bound, fits, _is_clock(bound), path))
    for note in (*_notes(history), *(note for fit in fits for note in fit.notes)):
        say(f"warning: {note}")
    say(f"learned from {len(history.times):,} passes; written to {output}; or: DELAY ... FITTED '{path}/laws.csv'")


# ---------------------------------------------------------------- history


def _stated(bound: BoundSequence, misses: list[str], occurrences: list[str]) -> Stated:
    """What --miss and --occurs state."""
    from anabranch.sequence.occurrence_fit import Stated

    miss, occurs = _probabilities(bound, "--miss", misses), _probabilities(bound, "--occurs", occurrences)
    both = sorted(miss.keys() & occurs.keys())
    if both:
        raise typer.BadParameter(f"--miss and --occurs both state {both[0]}; state one, and the other is learned")
    return Stated(miss, occurs)


def _probabilities(bound: BoundSequence, option: str, items: list[str]) -> dict[str, tuple[float, float]]:
    """The items NAME=P or NAME=P+-E of an option, by component: a probability and its standard error."""
    names = [component.name for component in bound.components[1:-1]]
    stated = {}
    for item in items:
        name, _, text = item.partition("=")
        try:
            value, error = map(float, text.split("+-")) if "+-" in text else (float(text), 0.0)
        except ValueError:
            value, error = -1.0, 0.0
        if not 0 <= value <= 1 or error < 0 or (option == "--miss" and value == 1):
            raise typer.BadParameter(
                f"{option} {item}: write NAME=P, such as {name or 'y'}=0.1 or {name or 'y'}=0.1+-0.02"
            )
        if name.lower() not in names:
            known = ", ".join(component.label for component in bound.components[1:-1]) or "none"
            raise typer.BadParameter(f"{option} {item}: no component between the first and the last is {name}: {known}")
        stated[name.lower()] = value, error
    return stated


def _notes(history: History) -> Iterator[str]:
    """Warnings about the passes."""
    if len(history.times) < FEW_PASSES:
        yield f"only {len(history.times)} passes; the estimates are rough"
    if history.repeated:
        yield (
            f"{history.repeated:,} events repeat the component before them; each begins a new pass, "
            "which lowers OCCURS and raises MISS; add a condition that selects one of them"
        )
    if history.ambiguous:
        yield (
            f"{history.ambiguous:,} events fit several places of a pass, or come before their turn; "
            "add a condition that separates passes, or a shorter WITHIN"
        )


def _history(session: Session, query: Query, workbook: str) -> tuple[BoundSequence, History]:
    """The query with the types of its streams, and the passes through its components."""
    from anabranch.columns.types import types_of_columns
    from anabranch.sequence.analysis import analyse
    from anabranch.sequence.history import make_history, objection

    try:
        bound = _sequence(query, session.catalog)
        tables = {stream.name.lower(): valid_rows(session, stream) for stream in bound.streams}
        typed = Catalog(dict(session.catalog.entries))
        for stream in bound.streams:
            typed.add(stream.with_types(types_of_columns(tables[stream.name.lower()].schema)))
        analysis = analyse(_sequence(query, typed))
        refused = objection(analysis)
        if refused is not None:
            raise WorkbookError([refused])
    except WorkbookError as error:
        raise type(error)(error.findings, read_workbook(workbook), workbook) from None
    return analysis.query, make_history(analysis, tables, {})


def _sequence(query: Query, catalog: Catalog) -> BoundSequence:
    """The bound query; refused if its delays cannot be learned."""
    bound = bind(query, catalog)
    if not isinstance(bound, BoundSequence):
        raise typer.BadParameter(f"{query.name} is not a SEQUENCE; only the components of a SEQUENCE have delays")
    if bound.has_probabilities:
        raise typer.BadParameter(f"a stream of {query.name} has probabilities; delays are learned from CERTAIN streams")
    relations = [node.relation.name for each in bound.conditions for node in walk(each) if isinstance(node, Member)]
    if relations:
        raise typer.BadParameter(
            f"{query.name} uses the relation {relations[0]}; use a query that lists its values instead"
        )
    return bound


def _is_clock(bound: BoundSequence) -> bool:
    return bound.components[0].stream.time.type is Type.TIMESTAMP


# ---------------------------------------------------------------- output


def _show(fit: ComponentFit, console: Console) -> None:
    """Print a component: the number of its delays, and the log likelihood of each distribution."""
    import pyarrow as pa

    from anabranch.charts.table import print_answers

    title = f"{fit.label}: {_counted(len(fit.delays), 'delay')} seen"
    if fit.miss is not None:
        title += f", {fit.miss:.1%} of {fit.opportunities:,.0f} readings missed{_error(fit.miss_error)}"
    occurrence = fit.occurrence
    if occurrence is not None and occurrence.occurs is not None and not occurrence.always:
        title += f", happens in {occurrence.occurs:.1%} of the passes{_error(occurrence.occurs_error)}"
    if not fit.distributions:
        console.print(f"{title}; no distribution was fitted\n")
        return
    rows = {
        "law": [_written(distribution, False) for distribution in fit.distributions],
        "log likelihood": [round(distribution.log_likelihood, 1) for distribution in fit.distributions],
    }
    # As the title of the table, it would be cut at the width of the table.
    console.print(title)
    print_answers(pa.table(rows), console)


def _error(error: float | None) -> str:
    return f" (± {error:.1%})" if error else ""


def _counted(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number:,} {what}s"


def _clauses(bound: BoundSequence, fits: list[ComponentFit], clock: bool, folder: str) -> str:
    """The MISS, OCCURS and DELAY clauses for the query."""
    fitted = [(fit, fit.distributions[0]) for fit in fits if fit.distributions]
    optional = [
        (fit, fit.occurrence) for fit in fits if fit.occurrence is not None and fit.occurrence.occurs is not None
    ]
    optional = [(fit, occurrence) for fit, occurrence in optional if not occurrence.always]
    if not bound.ending_open and not optional:
        # The last component is always observed, so it needs neither; but with OCCURS it needs a delay.
        fitted = [(fit, best) for fit, best in fitted if fit.label != bound.components[-1].label]
    misses = [f"{fit.label} {fit.miss:.3g}" for fit, _ in fitted if fit.miss is not None and 0 < fit.miss < 1]
    delays = [f"{fit.label} {_written(best, clock)}" for fit, best in fitted]
    for fit, occurrence in optional:
        for happened, _, _ in occurrence.laws():
            word = "WITH" if happened else "WITHOUT"
            delays.append(f"{occurrence.end} {word} {fit.label} EMPIRICAL '{folder}/delays.csv'")
    clauses = {
        "MISS": misses,
        "OCCURS": [f"{fit.label} {occurrence.occurs:.3g}" for fit, occurrence in optional],
        "DELAY": delays,
        "SCORING": ["POSTERIOR"] if optional else [],
    }
    lines = [f"  {clause} {', '.join(items)}" for clause, items in clauses.items() if items]
    return "\n".join(lines) if lines else "no component has a delay that could be learned"


def _written(distribution: FittedDistribution, clock: bool) -> str:
    """A distribution in the syntax of DELAY, with durations in seconds for a TIMESTAMP."""
    from anabranch.sequence.query import LAWS

    texts = [
        f"{_number(value)} SECONDS" if clock and timed else _number(value)
        for value, (_, timed, _) in zip(distribution.parameters, LAWS[distribution.law], strict=True)
    ]
    return f"{distribution.law}({', '.join(texts)})"


def _number(number: float) -> str:
    return f"{number:.6g}".replace("e+", "e")


def _draw(bound: BoundSequence, fits: list[ComponentFit], folder: Path) -> None:
    """Write `delays.svg`: the delays of each component and its best distribution."""
    import numpy as np

    from anabranch.arrays import F64
    from anabranch.charts.delays import Panel, draw_delays
    from anabranch.sequence.densities import log_density

    def density_of(distribution: FittedDistribution) -> Callable[[F64], F64]:
        return lambda x: np.exp(log_density(distribution.law, distribution.parameters, x))

    panels = []
    for fit in fits:
        for best in fit.distributions[:1]:
            title = f"{fit.label}: {_counted(len(fit.delays), 'delay')}, {_written(best, False)}"
            panels.append(Panel(title, fit.delays, density_of(best)))
    picture = draw_delays(panels, f"Delays of {bound.name}", "seconds" if _is_clock(bound) else "")
    (folder / "delays.svg").write_text(picture + "\n", encoding="utf-8")
