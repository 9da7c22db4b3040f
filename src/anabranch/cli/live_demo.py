"""The last act of `anabranch demo`: the readings of the shop arrive as a live stream, and the answers with them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console

from anabranch.replay.archive import open_archive
from anabranch.replay.playing import Player, slices
from anabranch.replay.targets import FolderTarget
from anabranch.session import Session

#: The readings arrive in this many files, within this many seconds.
_FILES, _SECONDS = 8, 4.0


def play_live(session: Session, shop: Path, archived: pa.Table, console: Console) -> None:
    """Replay the shop in a new session, print the answers as they come, and compare with those of the archive."""
    folder = shop / "live"
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier demo
    archive = open_archive(str(shop / "reads.parquet"), "t")
    target = FolderTarget(archive, str(folder / "in"))
    session.execute_file(str(shop / "shop.abq"))
    session.bind("reads", str(folder / "in"))
    received: list[pa.Table] = []

    def show(answers: Any, batch: int) -> None:
        rows = answers.toArrow()
        received.append(rows)
        if rows.num_rows:
            console.print(f"  micro-batch {batch}: {_described(rows)}", markup=False, soft_wrap=True)

    console.print("Live: the readings of the shop arrive again, in a few seconds (anabranch replay).", style="bold")
    seconds = archive.survey.seconds
    parts = slices(archive.blocks(), seconds / _FILES)
    target.send(next(parts).rows)  # the types of the columns are those of the first file
    running = session.start("shoplifting", str(folder / "checkpoint"), foreach_batch=show, max_files=1)
    try:
        Player(target, seconds / _SECONDS).play(parts)
        running.processAllAvailable()
        session.end_input(str(folder / "checkpoint"))
        running.processAllAvailable()
    finally:
        running.stop()
    live = pa.concat_tables([archived.schema.empty_table(), *(rows.cast(archived.schema) for rows in received)])
    same = _sorted(live) == _sorted(archived)
    verdict = "the answers over the archive, to the last bit" if same else "other answers than over the archive"
    console.print(f"{target.sent:,} rows arrived; {live.num_rows:,} answers: {verdict}.")
    console.print()


def _described(rows: pa.Table) -> str:
    """The first answers of a micro-batch."""
    tags = [event["tag"] for event in rows["z"].to_pylist()]
    shown = ", ".join(f"{tag} {p:.2f}" for tag, p in zip(tags[:3], rows["probability"].to_pylist(), strict=False))
    return shown + (f" and {len(tags) - 3} more" if len(tags) > 3 else "")


def _sorted(answers: pa.Table) -> list[dict]:
    return sorted(answers.to_pylist(), key=repr)
