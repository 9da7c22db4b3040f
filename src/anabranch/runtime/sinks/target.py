"""What every target of answers can do, and the ids by which readers recognise an answer that is delivered twice."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from anabranch.binding.secrets import redacted
from anabranch.errors import AnabranchError
from anabranch.language import nodes
from anabranch.runtime.streaming import Answers, Sink

#: The run of answers that no stream has given, in their ids.
BATCH_RUN = "run"

#: Takes the answers of a micro-batch and its number; returns how many they are.
AnswerWriter = Callable[[SparkSession, Any, int], int]


class AnswerTarget(Protocol):
    """Where the answers of one query go."""

    #: Whether its writers also take DataFrames: executors write them. Other writers only take tables.
    takes_frames: ClassVar[bool]

    def open(self, owner: str) -> AnswerWriter:
        """The writer of a stream; `owner` is the id of its checkpoint. Fails if there is no connection."""

    def write_whole(self, answers: DataFrame) -> None:
        """Write the answers of a batch run."""


def to_targets(targets: Sequence[AnswerTarget], write_rejected: AnswerWriter) -> Callable[[str], Sink]:
    """The output of a stream of several queries, each with its own target. See `streaming.Output`."""

    def sink(owner: str) -> Sink:
        writers = [target.open(owner) for target in targets]
        takes_frames = [target.takes_frames for target in targets]

        def write(spark: SparkSession, answers: Mapping[int, Answers], rejected: pa.Table, batch: int) -> int:
            if rejected.num_rows:
                write_rejected(spark, rejected, batch)
            delivered = 0
            for query, rows in answers.items():
                fits = isinstance(rows, pa.Table) or takes_frames[query]
                delivered += writers[query](spark, rows if fits else rows.toArrow(), batch)
            return delivered

        return write

    return sink


def answer_ids(query: str, run: str, batch: int, rows: Sequence[str]) -> list[str]:
    """An id for each answer, from its content: a micro-batch that is repeated has the same ids, in any order.

    Equal answers of one micro-batch are numbered.

    >>> first, second = answer_ids("q", "run", 0, ["{}", "{}"])
    >>> first == second, answer_ids("q", "run", 0, ["{}"]) == [first]
    (False, True)
    """
    seen: Counter[str] = Counter()
    ids = []
    for row in rows:
        text = "\0".join((query, run, str(batch), row, str(seen[row])))
        ids.append(hashlib.sha256(text.encode()).hexdigest()[:32])
        seen[row] += 1
    return ids


@contextmanager
def without_secrets(target: nodes.Target) -> Iterator[None]:
    """Errors of the connection begin with the target, and have no secrets."""
    try:
        yield
    except AnabranchError as error:
        message = redacted(str(error), target.options, os.environ)
        raise AnabranchError(f"TO {target.system} '{target.name}': {message}") from None
