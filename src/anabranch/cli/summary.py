"""The summary of a run: one line per query for people, and a JSON document for programs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from anabranch.transport.operator import Counts


#: A run over fewer rows has no rate: most of its time is that of starting Spark and its workers.
_LEAST_ROWS_OF_RATE = 10_000


def summary_line(name: str, counts: Counts, seconds: float) -> str:
    """The counts of a run in one line."""
    answers = "1 answer" if counts.answers == 1 else f"{counts.answers:,} answers"
    line = (
        f"{name}: {answers}; {counts.read:,} rows read, {counts.used:,} used, "
        f"{counts.late:,} late, {counts.quarantined:,} quarantined"
    )
    if counts.duplicate:
        line += f", {counts.duplicate:,} duplicate"
    if counts.excluded:
        line += f", {counts.excluded:,} excluded"
    if counts.kept:
        line += f"; at most {counts.kept:,} events kept at a time"
    if counts.reported:
        saved = 1 - counts.reported / max(counts.used, 1)
        line += f"; sensors have to report {counts.reported:,} of the rows ({saved:.1%} saved)"
    rate = f" ({counts.read / max(seconds, 1e-9):,.0f} rows/s)" if counts.read >= _LEAST_ROWS_OF_RATE else ""
    return f"{line}; {seconds:.1f} s{rate}"


@dataclass(slots=True)
class RunSummary:
    """What `run --summary FILE` writes. Queries that share a pass have the same rows and seconds."""

    workbook: str
    queries: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None
    began: float = field(default_factory=time.monotonic)

    def add(self, name: str, counts: Counts, seconds: float, output: str | None, warnings: list[str]) -> None:
        """Add the run of a query; `output` is the folder of its answers, `-` for standard output."""
        rows = {key: getattr(counts, key) for key in ("read", "used", "duplicate", "late", "quarantined")}
        rows |= {"excluded": counts.excluded} if counts.excluded else {}
        kept = {key: getattr(counts, key) for key in ("kept", "reported") if getattr(counts, key)}
        self.queries.append(
            {"query": name, "answers": counts.answers, "rows": rows, **kept, "seconds": round(seconds, 3),
             "output": output, "quarantine": None, "warnings": warnings}
        )  # fmt: skip

    @property
    def has_warnings(self) -> bool:
        """Whether an input is probably wrong."""
        return any(query["warnings"] for query in self.queries)

    def document(self) -> dict[str, Any]:
        """The summary as data for JSON."""
        return {
            "workbook": self.workbook,
            "seconds": round(time.monotonic() - self.began, 3),
            "error": self.error,
            "queries": self.queries,
        }


@contextmanager
def run_summary(workbook: str, path: str | None) -> Iterator[RunSummary]:
    """The summary of a run, which is written to `path` when the run ends, even if it fails."""
    summary = RunSummary(workbook)
    if path is not None:
        try:
            # Before the run, which may take hours.
            open(path, "w", encoding="utf-8").close()
        except OSError as error:
            raise typer.BadParameter(f"--summary {path} cannot be written: {error.strerror}") from None
    try:
        yield summary
    except BaseException as error:
        summary.error = str(error) or type(error).__name__
        raise
    finally:
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(json.dumps(summary.document(), indent=2) + "\n")
