"""Garbage collection between two tasks of a worker."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace

import pytest

from anabranch.patches.spark_daemon_gc import TaskGarbageCollector, install


class Circle:
    """An object that only the garbage collector can free."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def collector() -> Iterator[TaskGarbageCollector]:
    yield TaskGarbageCollector()
    gc.unfreeze()


def test_garbage_of_a_task_is_collected_at_its_end(collector: TaskGarbageCollector) -> None:
    collector.collect()
    garbage = weakref.ref(Circle())
    assert collector.collect() > 0
    assert garbage() is None


def test_objects_that_outlive_a_task_are_collected_after_many(collector: TaskGarbageCollector) -> None:
    outlives = Circle()
    garbage = weakref.ref(outlives)
    collector.collect()
    del outlives
    collector.collect()
    assert garbage() is not None
    for _ in range(TaskGarbageCollector.FULL_COLLECTION_EVERY):
        collector.collect()
    assert garbage() is None


def test_other_functions_are_those_of_gc(collector: TaskGarbageCollector) -> None:
    assert collector.get_threshold() == gc.get_threshold()


def test_the_installed_daemon_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark import daemon

    monkeypatch.setattr(daemon, "gc", gc)
    assert install(daemon)
    assert isinstance(daemon.manager.__globals__["gc"], TaskGarbageCollector)


def test_workers_of_spark_have_it(spark) -> None:
    def collector_of_worker(_: int) -> str:
        return type(sys.modules["pyspark.daemon"].gc).__name__

    assert spark.sparkContext.parallelize([0], 1).map(collector_of_worker).collect() == ["TaskGarbageCollector"]


def daemon_without_gc() -> ModuleType:
    module = ModuleType("daemon")
    exec("def manager(): return 'tasks done'", vars(module))  # noqa: S102 - a module of another version
    return module


def daemon_that_ignores_gc() -> ModuleType:
    module = daemon_without_gc()
    module.gc = gc
    return module


@pytest.mark.parametrize(
    "daemon",
    [daemon_without_gc(), daemon_that_ignores_gc(), SimpleNamespace(gc=gc), ModuleType("empty")],
    ids=["no gc", "gc not used", "no manager", "empty"],
)
def test_a_daemon_of_another_shape_stays_as_it_is(daemon) -> None:
    before = dict(vars(daemon))
    assert not install(daemon)
    assert vars(daemon) == before
