"""`anabranch status`: what the streams of a checkpoint folder do, without Spark and without disturbing them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anabranch.cli import options
from anabranch.cli.common import spark_settings
from anabranch.cli.messages import FAILED

if TYPE_CHECKING:
    from anabranch.runtime.file_system import Folder
    from anabranch.runtime.stream_log import Entry

Checkpoint = Annotated[str, typer.Argument(metavar="CHECKPOINT", help="The --checkpoint folder of a stream.")]
Json = Annotated[bool, typer.Option("--json", help="Print a JSON line per stream.")]
Check = Annotated[bool, typer.Option("--check", help="Exit with 1 unless all streams run; for health checks.")]

#: What happens to a row when it no longer waits.
_DECIDED = ("used", "duplicate", "late", "quarantined", "excluded")

#: The time over which rates are shown.
RECENT = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """What is known of a stream.

    Attributes
    ----------
    process : the number of the process that runs it; None if it does not run
    last : the last entry of its log; None if it has none
    rows_per_second, seconds_per_batch : of the recent micro-batches; None if there are none
    """

    folder: Folder
    process: str | None
    last: Entry | None
    rows_per_second: float | None
    seconds_per_batch: float | None

    @property
    def name(self) -> str:
        """The names of its queries."""
        return self.last.stream if self.last else self.folder.name

    def document(self) -> dict[str, Any]:
        """The status as data for JSON."""
        entry = json.loads(self.last.to_json()) if self.last else {}
        rates = {"rows_per_second": self.rows_per_second, "seconds_per_batch": self.seconds_per_batch}
        return {"folder": str(self.folder), "stream": self.name, "process": self.process} | rates | entry


def command(
    checkpoint: Checkpoint, as_json: Json = False, check: Check = False, conf: options.Conf = None,
    packages: options.Packages = None,
) -> None:  # fmt: skip
    """Show what the streams of a checkpoint folder do: watermark, rows, rates and state."""
    from anabranch.runtime.stream_log import folders_with_log

    folder = open_checkpoint(checkpoint, None, spark_settings(conf, packages))
    statuses = [status_of(folder) for folder in folders_with_log(folder)]
    if not statuses:
        raise typer.BadParameter(f"{checkpoint} has no checkpoint of a stream")
    now = datetime.now(UTC)
    for status in statuses:
        sys.stdout.write((json.dumps(status.document()) if as_json else as_text(status, now)) + "\n")
    if check and not all(status.process for status in statuses):
        raise typer.Exit(FAILED)


def open_checkpoint(path: str, master: str | None, settings: Mapping[str, str]) -> Folder:
    """The folder of checkpoints; Spark is started if it is an address."""
    from anabranch.runtime.file_system import open_folder

    def spark() -> Any:
        from anabranch.runtime.spark import make_session

        return make_session(master, short=True, settings=settings)

    return open_folder(path, spark)


def status_of(folder: Folder) -> StreamStatus:
    """The status of the stream with this checkpoint."""
    from anabranch.runtime.lock import owner_of
    from anabranch.runtime.stream_log import entries

    logged = list(entries(folder))
    since = datetime.now(UTC) - RECENT
    recent = [entry for entry in logged if entry.at >= since and entry.batch is not None]
    rows_per_second = seconds_per_batch = None
    if recent:
        # Spark starts no micro-batch without new rows, so this is the time in which rows arrived.
        first = recent[0].at - timedelta(seconds=recent[0].seconds)
        seconds = (recent[-1].at - first).total_seconds()
        rows_per_second = sum(entry.rows.read for entry in recent) / max(seconds, 1e-9)
        seconds_per_batch = sum(entry.seconds for entry in recent) / len(recent)
    return StreamStatus(folder, owner_of(folder), logged[-1] if logged else None, rows_per_second, seconds_per_batch)


def as_text(status: StreamStatus, now: datetime) -> str:
    """The status in a few lines."""
    state = f"runs in process {status.process}" if status.process else "does not run"
    lines = [f"{status.name}: {state}"]
    last = status.last
    if last is None:
        return f"{lines[0]}; no micro-batch is complete"
    age = (now - last.at).total_seconds()
    if last.batch is None:
        lines.append(f"  started {_ago(age)}; no micro-batch since then")
    else:
        watermark = "not set" if last.watermark is None else last.watermark
        lines.append(
            f"  micro-batch {last.batch}, {_ago(age)}; watermark {watermark}; state {size_text(last.state_bytes)}"
        )
    lines.append("  since its start: " + ", ".join(f"{count:,} {name}" for name, count in _counts(last).items()))
    if status.rows_per_second is not None:
        lines.append(
            f"  last {RECENT.seconds // 60} minutes: {status.rows_per_second:,.0f} rows/s, "
            f"{status.seconds_per_batch:.2f} s per micro-batch"
        )
    return "\n".join(lines)


def _counts(entry: Entry) -> dict[str, int]:
    """The counts since the start, and the rows that wait until the watermark has passed them."""
    counts = {name: n for name, n in asdict(entry.total).items() if n or name in ("read", "used", "answers")}
    waiting = counts["read"] - sum(counts.get(name, 0) for name in _DECIDED)
    return counts | ({"waiting": waiting} if waiting > 0 else {})


def _ago(seconds: float) -> str:
    return f"{timedelta(seconds=round(seconds))} ago"


def size_text(n_bytes: int) -> str:
    """A number of bytes for people."""
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes >= 1e5 else f"{n_bytes / 1e3:,.1f} kB"
