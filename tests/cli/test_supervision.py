"""One stream of a workbook that fails does not stop the others, and is restarted where that can help."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from anabranch.cli.messages import RunFailed
from anabranch.cli.supervision import Supervisor, Watched
from anabranch.errors import AnabranchError, DataError, SparkEnded, StateError, TooManyAnswers


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Stream:
    """A stream that runs until `error` is set."""

    error: Exception | None = None
    ended: bool = False
    stopped: bool = False

    @property
    def isActive(self) -> bool:
        return self.error is None and not self.ended

    def awaitTermination(self) -> None:
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        self.stopped = True


@dataclass
class Query:
    """A query whose streams are recorded; `refusals` are the errors of its next starts."""

    name: str
    refusals: list[Exception] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)

    def start(self) -> Stream:
        if self.refusals:
            raise failure(self.refusals.pop(0))
        self.streams.append(Stream())
        return self.streams[-1]

    def await_end(self, stream: Stream) -> None:
        try:
            stream.awaitTermination()
        except Exception as error:
            raise failure(error) from error

    def watched(self) -> Watched:
        return Watched(self.name, self.start, self.await_end)


def failure(error: Exception) -> RunFailed:
    reason = error if isinstance(error, AnabranchError) else AnabranchError(str(error))
    failed = RunFailed(f"w.abq:1:1: q failed: {reason}", reason)
    failed.__cause__ = error
    return failed


def supervised(restart: bool, *queries: Query) -> tuple[Supervisor, Clock]:
    clock = Clock()
    supervisor = Supervisor([query.watched() for query in queries], restart, clock)
    supervisor.start()
    return supervisor, clock


def test_a_failed_stream_is_reported_and_the_others_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    one, two = Query("one"), Query("two")
    supervisor, clock = supervised(False, one, two)
    one.streams[0].error = RuntimeError("boom")
    assert supervisor.poll()
    clock.now = 1000.0
    assert supervisor.poll()
    assert (len(one.streams), len(two.streams)) == (1, 1)
    assert capsys.readouterr().err == "w.abq:1:1: q failed: boom\n"
    assert [watched.name for watched in supervisor.failed] == ["one"]
    supervisor.stop()
    assert two.streams[0].stopped
    two.streams[0].ended = True
    assert not supervisor.poll()


def test_pauses_between_restarts_double_and_begin_anew_after_a_stable_time(capsys: pytest.CaptureFixture[str]) -> None:
    query = Query("one")
    supervisor, clock = supervised(True, query)
    for attempt, pause in enumerate([1, 2, 4, 8, 16, 32, 60, 60], start=1):
        query.streams[-1].error = RuntimeError("boom")
        assert supervisor.poll()
        assert capsys.readouterr().err == f"w.abq:1:1: q failed: boom; restarting one in {pause} s\n"
        clock.now += pause - 0.1
        supervisor.poll()
        assert len(query.streams) == attempt, "the pause is not over"
        clock.now += 0.2
        supervisor.poll()
        assert len(query.streams) == attempt + 1
    clock.now += 3600
    query.streams[-1].error = RuntimeError("boom")
    supervisor.poll()
    assert capsys.readouterr().err.endswith("restarting one in 1 s\n")
    assert supervisor.failed == []


@pytest.mark.parametrize(
    "error",
    [
        DataError("invalid row"),
        StateError("the checkpoint belongs to another query"),
        SparkEnded("Java has ended"),
        TooManyAnswers("q: more than 10 answers"),
    ],
)
def test_errors_that_would_come_again_are_not_retried(error: Exception) -> None:
    query = Query("one")
    supervisor, clock = supervised(True, query)
    query.streams[0].error = error
    assert not supervisor.poll()
    clock.now = 1e6
    assert not supervisor.poll()
    assert len(query.streams) == 1


def test_a_start_on_a_busy_machine_is_retried_a_few_times() -> None:
    busy = RuntimeError("org.apache.spark.SparkException: Python worker failed to connect back.")
    query = Query("one", refusals=[busy] * 3)
    supervisor, clock = supervised(False, query)
    for _ in range(3):
        assert query.streams == []
        assert supervisor.poll()
        clock.now += 60
        supervisor.poll()
    assert len(query.streams) == 1
    hopeless = Query("two", refusals=[busy] * 10)
    supervisor, clock = supervised(False, hopeless)
    while supervisor.poll():
        clock.now += 60
    assert len(hopeless.refusals) == 10 - 6


def test_a_stream_goes_on_without_a_query_that_has_too_many_answers(capsys: pytest.CaptureFixture[str]) -> None:
    query, left_out = Query("one and 1 more"), []

    def leave_out(error: RunFailed) -> bool:
        left_out.append(str(error.reason))
        return len(left_out) == 1

    clock = Clock()
    supervisor = Supervisor([replace(query.watched(), leave_out=leave_out)], False, clock)
    supervisor.start()
    query.streams[0].error = TooManyAnswers("q: more than 10 answers")
    assert supervisor.poll()
    assert capsys.readouterr().err.endswith("q: more than 10 answers; the other queries of its pass go on\n")
    assert supervisor.poll()
    assert len(query.streams) == 2, "it is restarted at once"
    assert [watched.name for watched in supervisor.failed] == ["one and 1 more"], "the exit status is 1"
    query.streams[1].error = TooManyAnswers("p: more than 10 answers")
    assert not supervisor.poll()
    assert left_out == ["q: more than 10 answers", "p: more than 10 answers"]
