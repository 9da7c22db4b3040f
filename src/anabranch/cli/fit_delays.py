"""`anabranch fit delays`: learns the MISS and DELAY clauses of a SEQUENCE from the history of its streams."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.binding.binder import bind
from anabranch.binding.typed import Member, walk
from anabranch.catalog import Catalog, Query
from anabranch.cli import options
from anabranch.cli.common import chosen_queries, open_workbook, source_types, valid_rows
from anabranch.cli.messages import say
from anabranch.cli.progress import progress
from anabranch.errors import WorkbookError
from anabranch.language.reading import read_workbook
from anabranch.language.types import Type
from anabranch.sequence.query import BoundSequence

if TYPE_CHECKING:
    from rich.console import Console

    from anabranch.sequence.fit import ComponentFit, FittedDistribution
    from anabranch.sequence.history import History
    from anabranch.session import Session

OneQuery = Annotated[str, typer.Option("--query", metavar="NAME", help="The SEQUENCE query.")]
Output = Annotated[Path, typer.Option("--output", metavar="DIR", help="Output folder for the fitted delays.")]


def command(
    workbook: options.Workbook,
    query: OneQuery,
    output: Output,
    input: options.Inputs = None,
    master: options.Master = None,
    verbose: options.Verbose = False,
) -> None:
    """Learn the delays and losses of the components of a SEQUENCE, for DELAY and MISS."""
    # Imported here, because the optimisers take long to load.
    from rich.console import Console

    from anabranch.sequence.files import write_fits
    from anabranch.sequence.fit import fit_delays

    session = open_workbook(workbook, input, master, verbose)
    (chosen,) = chosen_queries(session.catalog, [query])
    with progress("learning", lambda: 0):
        bound, history = _history(session, chosen, workbook)
        fits = fit_delays(history)
        write_fits(fits, output)
        _draw(bound, fits, output)
    console = Console(soft_wrap=True, markup=False, highlight=False)
    for fit in fits:
        _show(fit, console)
    console.print(_clauses(bound, fits, _is_clock(bound)))
    # Paths in a workbook are relative to it.
    path = os.path.relpath(output, os.path.dirname(workbook) or ".")
    say(f"learned from {len(history.times):,} passes; written to {output}; or: DELAY ... FITTED '{path}/laws.csv'")


# ---------------------------------------------------------------- history


def _history(session: Session, query: Query, workbook: str) -> tuple[BoundSequence, History]:
    """The query with the types of its streams, and the passes through its components."""
    from anabranch.sequence.analysis import analyse
    from anabranch.sequence.history import make_history, objection

    try:
        bound = _sequence(query, session.catalog)
        tables = {stream.name.lower(): valid_rows(session, stream) for stream in bound.streams}
        typed = Catalog(dict(session.catalog.entries))
        for stream in bound.streams:
            typed.add(stream.with_types(source_types(tables[stream.name.lower()])))
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
        title += f", {fit.miss:.1%} of {fit.opportunities:,.0f} readings missed"
    if not fit.distributions:
        console.print(f"{title}; no distribution was fitted\n")
        return
    rows = {
        "law": [_written(distribution, False) for distribution in fit.distributions],
        "log likelihood": [round(distribution.log_likelihood, 1) for distribution in fit.distributions],
    }
    print_answers(pa.table(rows), console, title=title)


def _counted(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number:,} {what}s"


def _clauses(bound: BoundSequence, fits: list[ComponentFit], clock: bool) -> str:
    """The MISS and DELAY clauses for the query."""
    fitted = [(fit, fit.distributions[0]) for fit in fits if fit.distributions]
    if not bound.ending_open:
        # The last component is always observed, so it needs neither.
        fitted = [(fit, best) for fit, best in fitted if fit.label != bound.components[-1].label]
    misses = [f"{fit.label} {fit.miss:.3g}" for fit, _ in fitted if fit.miss is not None and 0 < fit.miss < 1]
    delays = [f"{fit.label} {_written(best, clock)}" for fit, best in fitted]
    lines = [f"  {clause} {', '.join(items)}" for clause, items in (("MISS", misses), ("DELAY", delays)) if items]
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
    from anabranch.sequence.likelihood import log_density

    def density_of(distribution: FittedDistribution) -> Callable[[F64], F64]:
        return lambda x: np.exp(log_density(distribution.law, distribution.parameters, x))

    panels = []
    for fit in fits:
        for best in fit.distributions[:1]:
            title = f"{fit.label}: {_counted(len(fit.delays), 'delay')}, {_written(best, False)}"
            panels.append(Panel(title, fit.delays, density_of(best)))
    picture = draw_delays(panels, f"Delays of {bound.name}", "seconds" if _is_clock(bound) else "")
    (folder / "delays.svg").write_text(picture + "\n", encoding="utf-8")
