"""The thread that starts Spark and runs queries, while the main thread waits for Ctrl-C."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from anabranch.errors import AnabranchError

if TYPE_CHECKING:
    from anabranch.session import Session

#: A query that is still being planned has no Spark job yet, so cancelling is repeated until the query ends.
_CANCEL_EVERY_SECONDS = 0.2

#: How often progress is shown.
_CALL_EVERY_SECONDS = 0.5


class Cancelled(AnabranchError):
    """The user has cancelled a query."""


class Background:
    """Runs tasks in one thread, in order.

    A Ctrl-C in the middle of a call to the JVM would leave the connection of its thread unusable. Therefore queries
    have a thread of their own, and Ctrl-C reaches the main thread.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tasks: SimpleQueue[tuple[Future[None], Callable[[], Any]]] = SimpleQueue()
        threading.Thread(target=self._work, daemon=True, name="queries").start()

    def start_spark(self) -> None:
        """Start Spark and its Python workers while the user types. The first query reports an error."""
        self.submit(lambda: warm_up(self._session))

    def run(self, task: Callable[[], Any], meanwhile: Callable[[], None] | None = None) -> None:
        """Run a task and wait for it; Ctrl-C cancels it. `meanwhile` is called again and again until it ends.

        Raises
        ------
        Cancelled
            After Ctrl-C, when the task has ended.
        """
        future = self.submit(task)
        try:
            while meanwhile is not None and not wait([future], _CALL_EVERY_SECONDS).done:
                meanwhile()
            future.result()
        except KeyboardInterrupt:
            self.cancel(future)
            raise Cancelled("cancelled") from None

    def submit(self, task: Callable[[], Any]) -> Future[None]:
        """Run a task after those before it; the future says when it has ended."""
        future: Future[None] = Future()
        self._tasks.put((future, task))
        return future

    def _work(self) -> None:
        while True:
            future, task = self._tasks.get()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                task()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(None)

    def cancel(self, future: Future[None]) -> None:
        """Cancel a task, and wait until it has ended. Only a task that waits for Spark's start does not run yet."""
        while not future.cancel() and not future.done():
            self._session.spark.interruptAll()
            wait([future], _CANCEL_EVERY_SECONDS)


def warm_up(session: Session) -> None:
    """Start Spark, and the process that its Python workers are forked from."""
    session.spark.range(1).mapInArrow(lambda batches: batches, "id long").toArrow()
