"""What a worker does between two tasks."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from anabranch.runtime.daemon import TaskGarbage


class Circle:
    """Something that only the collector can find to be garbage."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def garbage() -> Iterator[TaskGarbage]:
    yield TaskGarbage()
    gc.unfreeze()


def test_what_a_task_leaves_behind_is_collected_at_its_end(garbage: TaskGarbage) -> None:
    garbage.collect()
    left = weakref.ref(Circle())
    garbage.collect()
    assert left() is None


def test_what_outlives_a_task_is_looked_at_again_after_many(garbage: TaskGarbage) -> None:
    kept = Circle()
    left = weakref.ref(kept)
    garbage.collect()
    del kept
    garbage.collect()
    assert left() is not None
    for _ in range(TaskGarbage.EVERYTHING):
        garbage.collect()
    assert left() is None
