"""`anabranch state`: what the streams of a checkpoint folder keep, and what they keep about a key."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.cli import options
from anabranch.cli.common import spark_settings
from anabranch.cli.messages import say
from anabranch.cli.status import Checkpoint, open_checkpoint, size_text

if TYPE_CHECKING:
    from anabranch.runtime.stored_state import StoredState

Key = Annotated[
    list[str] | None,
    typer.Option("--key", metavar="COLUMN=VALUE", help="Show what is kept about this key (repeat it for each column)."),
]


def command(
    checkpoint: Checkpoint, key: Key = None, master: options.Master = None, conf: options.Conf = None,
    packages: options.Packages = None,
) -> None:  # fmt: skip
    """Show what the streams of a checkpoint folder keep, or what they keep about a key."""
    from anabranch.runtime.spark import make_session
    from anabranch.runtime.stored_state import read_state
    from anabranch.runtime.stream_log import folders_with_log

    wanted = _wanted(key or [])
    settings = spark_settings(conf, packages)
    root = open_checkpoint(checkpoint, master, settings)
    folders = folders_with_log(root)
    if not folders:
        raise typer.BadParameter(f"{checkpoint} has no checkpoint of a stream")
    spark = make_session(master, short=True, settings=settings)
    # The folder of a query whose answers several streams read is in the checkpoint of each of them.
    names = (folder.address.removeprefix(root.address).strip("/") or folder.name for folder in folders)
    states = {name: read_state(spark, folder) for name, folder in zip(names, folders, strict=True)}
    if wanted:
        _print_about(wanted, states)
        return
    for name, state in states.items():
        sys.stdout.write(as_text(name, state))


def _wanted(arguments: list[str]) -> dict[str, str]:
    """The values of key columns, by lower-case name."""
    wanted = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"--key takes COLUMN=VALUE, not {argument}")
        wanted[name.lower()] = value
    return wanted


def _print_about(wanted: dict[str, str], states: dict[str, StoredState]) -> None:
    """Print a JSON line for each row about a key."""
    from anabranch.columns.json_rows import finite

    streams = {stream.name: stream for state in states.values() for stream in state.streams}
    if not any(stream.has_key(wanted) for stream in streams.values()):
        known = "; ".join(f"{name}: {', '.join(stream.keys)}" for name, stream in streams.items())
        raise typer.BadParameter(f"no stream has the key columns {', '.join(wanted)}; the key columns are {known}")
    n_rows = 0
    for name, state in states.items():
        for bucket, stream, found in state.about(wanted):
            n_rows += 1
            row = {"query": name, "stream": stream.name, "bucket": bucket, "place": found.place, "row": found.row}
            sys.stdout.write(json.dumps(finite(row), default=str) + "\n")
    if not n_rows:
        say("nothing is kept about this key")


def as_text(name: str, state: StoredState) -> str:
    """The sizes of the state of a stream."""
    tables: Counter[str] = Counter()
    for bucket in state.buckets:
        tables.update({table: rows.num_rows for table, rows in bucket.tables.items()})
    n_pages = sum(len(bucket.pages) for bucket in state.buckets)
    in_pages = sum(page.num_rows for bucket in state.buckets for page in bucket.pages.values())
    hot = sum(bucket.n_bytes for bucket in state.buckets)
    largest = max(state.buckets, key=lambda bucket: bucket.n_bytes + bucket.page_bytes)
    lines = [
        f"{name}: {len(state.buckets)} buckets, {size_text(hot)} in every micro-batch, "
        f"{size_text(sum(bucket.page_bytes for bucket in state.buckets))} in {n_pages:,} pages with {in_pages:,} rows",
        f"  largest bucket: {largest.number}, {size_text(largest.n_bytes + largest.page_bytes)}",
        *(f"  {rows:>12,}  {table}" for table, rows in tables.items() if rows),
    ]
    return "\n".join(lines) + "\n"
