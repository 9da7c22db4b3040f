"""The streams of a checkpoint folder and their newest answers, for the live view. Reads files only."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from anabranch.cli.serve.tables import cells, shown_columns
from anabranch.cli.status import status_of
from anabranch.evaluation.files import read_table
from anabranch.runtime.file_system import Folder, LocalFolder
from anabranch.runtime.stream_log import Entry, entries, folders_with_log

#: How many micro-batches of a stream are drawn.
MOST_BATCHES = 120
#: How many answers of a query are shown.
NEWEST = 20
#: How many of the newest files are read for them.
_FILES = 5


def live_document(checkpoint: Path | None, output: Path | None) -> dict[str, Any]:
    """What the streams do, and the newest answers, as data for JSON."""
    folders = folders_with_log(LocalFolder(checkpoint)) if checkpoint is not None else []
    return {"streams": [_stream(folder) for folder in folders], "answers": _newest(output) if output else []}


def _stream(folder: Folder) -> dict[str, Any]:
    status = status_of(folder)
    batches = [entry for entry in entries(folder) if entry.batch is not None][-MOST_BATCHES:]
    last = batches[-1] if batches else None
    return {
        "name": status.name,
        "runs": status.process is not None,
        "watermark": None if last is None or last.watermark is None else str(last.watermark),
        "state_bytes": last.state_bytes if last else 0,
        "total": {name: count for name, count in asdict(last.total).items() if count} if last else {},
        "rows_per_second": status.rows_per_second,
        "batches": [_batch(entry) for entry in batches],
    }


def _batch(entry: Entry) -> dict[str, Any]:
    return {
        "at": entry.at.isoformat(timespec="milliseconds"),
        "rows": entry.rows.read,
        "answers": entry.rows.answers,
        "late": entry.rows.late,
        "quarantined": entry.rows.quarantined,
        "seconds": entry.seconds,
        "state_bytes": entry.state_bytes,
    }


def _newest(output: Path) -> list[dict[str, Any]]:
    """The newest answers of each query, the last one first."""
    folders = sorted(path for path in output.iterdir() if path.is_dir() and not path.name.startswith(("_", ".")))
    return [{"query": folder.name, **_rows(_last_table(folder))} for folder in folders]


def _last_table(folder: Path) -> pa.Table:
    """The last rows of the files that were written last; a file may be replaced while it is read."""
    files = [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(("_", "."))]
    files.sort(key=lambda path: (path.stat().st_mtime_ns, path.name), reverse=True)
    tables: list[pa.Table] = []
    for path in files[:_FILES]:
        table = read_table(str(path))
        tables.append(table.slice(max(0, table.num_rows - NEWEST)))
        if sum(table.num_rows for table in tables) >= NEWEST:
            break
    tables.reverse()
    return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})


def _rows(table: pa.Table) -> dict[str, Any]:
    last = table.slice(max(0, table.num_rows - NEWEST))
    return cells(last.take(pa.array(range(last.num_rows - 1, -1, -1), pa.int64())), shown_columns(last))
