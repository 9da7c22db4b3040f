"""The office as a stream of files: a session, a checkpoint and an output folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery
from tests.runtime.office import query, stream, write_parquet, written

from anabranch import Session
from anabranch.transport.operator import Counts

NOW = {"availableNow": True}


def finish(running: StreamingQuery, session: Session, checkpoint: str) -> None:
    """Process all input of a stream, end the input, process its end, and stop the stream."""
    try:
        running.processAllAvailable()
        session.end_input(checkpoint)
        running.processAllAvailable()
    finally:
        running.stop()


class Office:
    """A stream of files and the query on it; every `Office` of a folder resumes from the same checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path, declaration: str = "", query_text: str = "") -> None:
        self.folder = folder
        self.session = Session(spark)
        self.session.execute(
            (declaration or stream("at", f"'{folder}/in/*.parquet'", more="WATERMARK 2")) + (query_text or query())
        )
        self.checkpoint, self.output = str(folder / "checkpoint"), folder / "out" / "coffee"
        self.running: StreamingQuery | None = None

    def file(self, name: str) -> Path:
        """The path of a file of the stream; its name has special characters."""
        return self.folder / "in" / f"{name} + 50%20.parquet"

    def add(self, name: str, *rows: tuple) -> None:
        write_parquet(self.file(name), rows)

    def process_files(self, **options: Any) -> None:
        """Process all files, one per micro-batch; the stream keeps running until `stop`."""
        if self.running is None:
            self.running = self.session.start("coffee", self.checkpoint, str(self.output), max_files=1, **options)
        self.running.processAllAvailable()

    def end(self) -> None:
        """End the input, and process its end."""
        self.session.end_input(self.checkpoint)
        self.process_files()

    def stop(self) -> None:
        """Stop the stream; the next `process_files` resumes from the checkpoint."""
        if self.running is not None:
            self.running.stop()
            self.running = None

    @property
    def answers(self) -> dict[tuple, float]:
        return written(self.output)

    @property
    def counts(self) -> Counts:
        return self.session.counts("coffee")

    def quarantined(self) -> list[dict]:
        files = sorted((self.output.parent / "_quarantine" / "coffee").glob("*.json"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]
