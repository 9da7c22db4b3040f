"""Watches the streams of a workbook: a stream that fails is reported, and restarted if that can help; others go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from anabranch.cli.messages import RunFailed, say
from anabranch.errors import DataError, SparkEnded, StateError, TooManyAnswers, WorkbookError

#: Texts of errors that pass: Spark waits at most 10 seconds for a Python process, which takes longer on a busy machine.
_PASSING = ("failed to connect back", "waiting for the Python worker to connect")
#: How often a stream is restarted after such an error, if it is not restarted after every error.
_ATTEMPTS = 5

#: The pause before the first restart and the longest one, in seconds; each pause is twice as long as the one before.
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
#: A stream that has run this long after a restart begins again with the first pause, in seconds.
_STABLE = 600.0


class RunningStream(Protocol):
    """What is needed of Spark's StreamingQuery."""

    @property
    def isActive(self) -> bool:
        """Whether the stream runs."""

    def awaitTermination(self) -> object:
        """Wait for the end of the stream; raises its error."""

    def stop(self) -> None:
        """Stop the stream."""


@dataclass(slots=True)
class Watched:
    """A stream that is watched.

    Attributes
    ----------
    name : for messages
    start : starts it, or resumes it from its checkpoint; a failure is a `RunFailed` whose cause is the error
    await_end : waits for its end; likewise
    leave_out : removes the query that an error is about from those of the stream; whether it can go on without it
    has_left_out : whether a query was removed
    """

    name: str
    start: Callable[[], RunningStream]
    await_end: Callable[[RunningStream], None]
    leave_out: Callable[[RunFailed], bool] = lambda error: False
    has_left_out: bool = False
    stream: RunningStream | None = None
    began: float = 0.0
    failures: int = 0
    total_failures: int = 0
    due: float | None = None
    error: RunFailed | None = None

    @property
    def is_running(self) -> bool:
        """Whether the stream runs at the moment."""
        return self.stream is not None and self.stream.isActive

    @property
    def is_over(self) -> bool:
        """Whether the stream has ended and will not be restarted."""
        return self.stream is None and self.due is None


@dataclass(slots=True)
class Supervisor:
    """Starts streams and keeps them running.

    Parameters
    ----------
    streams : to watch
    restart : whether a stream is restarted after any error that a restart can mend
    clock : seconds that never go back
    """

    streams: Sequence[Watched]
    restart: bool
    clock: Callable[[], float] = field(default=time.monotonic)

    def start(self) -> None:
        """Start all streams; errors of the workbook and of checkpoints are raised before any row is read."""
        for watched in self.streams:
            self._start(watched)

    def poll(self) -> bool:
        """Look at every stream once; returns whether any runs or will be restarted."""
        for watched in self.streams:
            if watched.stream is not None and not watched.stream.isActive:
                self._end(watched, watched.stream)
            elif watched.due is not None and self.clock() >= watched.due:
                self._start(watched)
        return not all(watched.is_over for watched in self.streams)

    def stop(self) -> None:
        """Stop all streams."""
        for watched in self.streams:
            if watched.stream is not None:
                watched.stream.stop()

    @property
    def failed(self) -> list[Watched]:
        """The streams that have ended with an error, or go on without a query that has failed."""
        return [
            watched
            for watched in self.streams
            if watched.has_left_out or (watched.error is not None and watched.is_over)
        ]

    def _start(self, watched: Watched) -> None:
        watched.due, watched.began = None, self.clock()
        try:
            watched.stream = watched.start()
        except RunFailed as error:
            self._failed(watched, error)

    def _end(self, watched: Watched, stream: RunningStream) -> None:
        watched.stream = None
        if self.clock() - watched.began >= _STABLE:
            watched.failures = 0
        try:
            watched.await_end(stream)
        except RunFailed as error:
            self._failed(watched, error)

    def _failed(self, watched: Watched, error: RunFailed) -> None:
        watched.error = error
        if watched.leave_out(error):
            watched.has_left_out, watched.due = True, self.clock()
            say(f"{error}; the other queries of its pass go on", watched.name)
            return
        watched.failures += 1
        watched.total_failures += 1
        if not self._may_restart(watched, error):
            say(str(error), watched.name)
            return
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (watched.failures - 1))
        watched.due = self.clock() + pause
        say(f"{error}; restarting {watched.name} in {pause:g} s", watched.name)

    def _may_restart(self, watched: Watched, error: RunFailed) -> bool:
        """Whether the same rows may succeed.

        They cannot if rows are invalid with --strict, the checkpoint is wrong, there are too many answers, or the JVM
        of this process has ended.
        """
        if isinstance(error.reason, (DataError, SparkEnded, StateError, TooManyAnswers, WorkbookError)):
            return False
        passing = any(text in str(error.__cause__) for text in _PASSING)
        return self.restart or (passing and watched.failures <= _ATTEMPTS)
