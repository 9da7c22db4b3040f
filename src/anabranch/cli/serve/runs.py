"""Runs of queries on the page: one at a time, in the background, with its progress and its answers."""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I64
from anabranch.cli.background import Background
from anabranch.cli.run import first_answers
from anabranch.cli.serve.tables import cells, probabilities_of, shown_columns, without_microseconds
from anabranch.cli.serve.workbench import Opened, require_valid
from anabranch.errors import AnabranchError, WorkbookError
from anabranch.evaluation import evaluate
from anabranch.evaluation.files import read_table
from anabranch.explanation.explainer import literal
from anabranch.explanation.explanation import runs_of
from anabranch.plotting import plot
from anabranch.plotting.style import THEMES, config
from anabranch.runtime.failures import translate
from anabranch.runtime.spark_mode import row_counter
from anabranch.session import Session
from anabranch.transport.operator import Counts

#: The page gets no more answers of a run.
MOST_ANSWERS = 100_000
#: The most rows of the table that are sent at once.
MOST_ROWS = 200
#: The thresholds of the slider.
THRESHOLDS = tuple(n / 100 for n in range(101))
#: Columns that do not say which answer it is.
_NOT_NAMED = ("probability", "lower", "upper", "method")


@dataclass(frozen=True, slots=True)
class Truth:
    """What really happened, to compare answers with.

    Attributes
    ----------
    tolerance : the largest distance in time between an answer and its event
    """

    table: pa.Table
    tolerance: float

    @staticmethod
    def of_file(path: Path, tolerance: float) -> Truth:
        """The events of a file."""
        return Truth(read_table(str(path)), tolerance)


@dataclass
class Answers:
    """The answers of a run.

    Attributes
    ----------
    query : its name
    session : in which the query was run
    counts : what happened to the rows
    doubts : inputs that are probably wrong, with the likely fix
    is_cut : whether there are more answers
    """

    query: str
    session: Session
    table: pa.Table
    counts: Counts
    doubts: list[str]
    is_cut: bool
    truth: Truth | None = None

    @cached_property
    def probabilities(self) -> F64:
        """The probability of each answer."""
        return probabilities_of(self.table)

    @cached_property
    def columns(self) -> list[str]:
        """The columns that the page shows."""
        return shown_columns(self.table)

    def rows(self, threshold: float, by_probability: bool, first: int) -> dict[str, Any]:
        """Some rows of the table, with their numbers in the run."""
        chosen = self._reaching(threshold)
        if by_probability:
            chosen = chosen[np.argsort(-self.probabilities[chosen], kind="stable")]
        shown = chosen[first : first + MOST_ROWS]
        found = cells(self.table.take(pa.array(shown)), self.columns)
        return {**found, "numbers": shown.tolist(), "total": len(chosen)}

    def _reaching(self, threshold: float) -> I64:
        # A threshold of the slider is a rounded number.
        return np.flatnonzero(self.probabilities >= threshold - 1e-9)

    @cached_property
    def thresholds(self) -> dict[str, Any]:
        """For each threshold of the slider: how many answers remain, and with the truth, how good they are."""
        ordered = np.sort(self.probabilities)
        remaining = len(ordered) - np.searchsorted(ordered, np.array(THRESHOLDS) - 1e-9)
        found: dict[str, Any] = {"remaining": remaining.tolist()}
        if self.truth is not None and self.table.num_rows:
            try:
                found |= _qualities(self.table, self.truth)
            except AnabranchError as error:
                found["remark"] = str(error)
        return found

    def why(self, row: int) -> dict[str, Any]:
        """What moved the probability of an answer, and the most likely histories, as data for JSON."""
        if row >= self.table.num_rows:
            raise AnabranchError(f"there is no answer {row}")
        answer = self.table.slice(row, 1)
        found = self.session.why(self.query, answer.to_pylist()[0])
        effects = [
            {"evidence": item["evidence"], "t": _time(item["t"]), "without": item["without"], "effect": item["effect"]}
            for item in found.to_rows()
        ]
        histories = [
            {
                "true": history.true,
                "probability": history.probability,
                "note": history.note,
                "moments": [
                    [_times(moment.t, last), moment.subject, moment.event] for last, moment in runs_of(history.moments)
                ],
            }
            for history in found.histories
        ]
        return {
            "answer": cells(answer, [name for name in self.columns if name not in _NOT_NAMED]),
            "probability": found.probability, "effects": effects, "histories": histories, "notes": list(found.notes),
        }  # fmt: skip

    @cached_property
    def chart(self) -> dict[str, Any]:
        """The specification of the chart, with the configuration of each theme."""
        specification = plot(self.table, title=self.query).to_dict()
        specification.pop("config")
        return {"specification": specification, "configs": {theme: config(theme) for theme in THEMES}}


def _time(t: Any) -> str:
    return "" if t is None else without_microseconds(literal(t))


def _times(first: Any, last: Any) -> str:
    return _time(first) if first == last else f"{_time(first)} to {_time(last)}"


def _qualities(table: pa.Table, truth: Truth) -> dict[str, Any]:
    """Precision and recall at each threshold of the slider."""
    result = evaluate(table, truth.table, tolerance=truth.tolerance, thresholds=THRESHOLDS)
    figures = result.to_dict()["thresholds"]
    found = {name: [figure[name] for figure in figures] for name in ("precision", "recall", "f1")}
    return {**found, "best": result.best.threshold}


@dataclass
class Run:
    """A run of a query.

    Attributes
    ----------
    number : increases with each run
    file : the workbook
    error : one line for each error; empty while there is none
    """

    number: int
    query: str
    file: Path
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    counter: Any = None
    cancelled: bool = False
    error: list[str] = field(default_factory=list)
    answers: Answers | None = None

    def document(self) -> dict[str, Any]:
        """The state of the run as data for JSON."""
        found: dict[str, Any] = {
            "number": self.number,
            "query": self.query,
            "state": self._state(),
            "seconds": round((self.ended or time.monotonic()) - self.began, 1),
            "rows": self.counter.value if self.counter is not None else 0,
            "error": self.error,
        }
        if self.answers is not None:
            found |= {
                "answers": self.answers.table.num_rows,
                "is_cut": self.answers.is_cut,
                "counts": {name: count for name, count in asdict(self.answers.counts).items() if count},
                "doubts": self.answers.doubts,
                "has_truth": self.answers.truth is not None,
            }
        return found

    def _state(self) -> str:
        if self.ended is None:
            return "cancelling" if self.cancelled else "running" if self.counter is not None else "starting"
        if self.cancelled:
            return "cancelled"
        return "failed" if self.error else "done"


class Runs:
    """The last run, and the thread that runs it.

    Parameters
    ----------
    session : starts Spark; each run has a session of its own on it
    """

    def __init__(self, session: Session, truth: Truth | None = None) -> None:
        self.last: Run | None = None
        self._session = session
        self._background = Background(session)
        self._future: Future[None] | None = None
        self._truth = truth

    def start(self, text: str, query: str, opened: Opened) -> Run:
        """Run a query of a text; refuses while another one runs."""
        if self._future is not None and not self._future.done():
            raise AnabranchError("a query is running; cancel it first")
        name = require_valid(text, opened).catalog.require_query(query).name
        run = Run((self.last.number if self.last else 0) + 1, name, opened.file)
        self.last = run
        self._future = self._background.submit(lambda: self._execute(run, text, opened))
        return run

    def cancel(self) -> None:
        """Cancel the query that runs, and wait for its end."""
        if self.last is not None and self._future is not None and not self._future.done():
            self.last.cancelled = True
            self._background.cancel(self._future)
            self.last.ended = self.last.ended or time.monotonic()

    def require_answers(self, number: int) -> Answers:
        """The answers of a run, if it is the last one."""
        if self.last is None or self.last.number != number or self.last.answers is None:
            raise AnabranchError("these answers are no longer there; run the query again")
        return self.last.answers

    def why(self, number: int, row: int) -> dict[str, Any]:
        """Explain an answer, after the query that runs."""
        answers = self.require_answers(number)
        found: list[dict[str, Any]] = []
        try:
            self._background.submit(lambda: found.append(answers.why(row))).result()
        except Exception as error:
            raise AnabranchError(str(translate(error))) from error
        return found[0]

    def _execute(self, run: Run, text: str, opened: Opened) -> None:
        try:
            run.answers = self._answers(run, text, opened)
        except WorkbookError as error:
            run.error = error.lines()
        except Exception as error:
            run.error = str(translate(error)).splitlines()
        finally:
            run.ended = time.monotonic()

    def _answers(self, run: Run, text: str, opened: Opened) -> Answers:
        session = Session(self._session.spark)
        session.execute(text, str(opened.file))
        run.counter = row_counter(session.spark)
        is_ordered = session.catalog.require_query(run.query).declaration.limit is not None
        answers = session.run(run.query, counter=run.counter)
        table = first_answers(answers, MOST_ANSWERS + 1, is_ordered).toArrow()
        doubts = [doubt for _, doubt in session.doubts(run.query)]
        if not table.num_rows and not doubts:
            doubts = session.absent_values(run.query)
        shown = table.slice(0, MOST_ANSWERS)
        is_cut = table.num_rows > MOST_ANSWERS
        # The examples are about other events than the workbook of the user.
        truth = self._truth if opened.can_be_saved else None
        return Answers(run.query, session, shown, session.counts(run.query), doubts, is_cut, truth)
