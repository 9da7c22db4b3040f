"""Settings for all tests: Hypothesis profiles, and the one Spark session that serves every test which needs one."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from numba.core.dispatcher import Dispatcher

from tests import spark_home
from tests.drawn import USUAL
from tests.untraced import seen_at_first, unseen, untraced

# Derandomised: a failure in one run is a failure in the next. No deadline: kernels compile within the first example.
settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    max_examples=USUAL,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
# For a first look at a failure: without the minutes that finding its smallest form may take.
settings.register_profile(
    "quick", settings.get_profile("default"), phases=[Phase.explicit, Phase.reuse, Phase.generate]
)
settings.register_profile("thorough", settings.get_profile("default"), derandomize=False, max_examples=3000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Numba's compiler is much Python, none of which is counted.
Dispatcher.compile = untraced(Dispatcher.compile)

#: So many examples of a property are seen by coverage: later ones find other answers, and hardly any other lines.
SEEN = 8

#: Nothing of these is seen: what they run of the package has tests of its own, and to be seen takes as long again.
UNSEEN = (
    "tests/benchmarks/",
    "tests/docs/test_docs.py::test_what_is_run_prints_what_the_page_shows[examples/",
    "tests/examples/",
    "tests/language/test_fuzz.py",
    "tests/oracles/",
)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator:
    """Let coverage look away after the first examples of a property, or at once."""
    if pyfuncitem.nodeid.startswith(UNSEEN):
        with unseen():
            return (yield)
    handle = getattr(pyfuncitem.obj, "hypothesis", None)
    if handle is None:
        return (yield)
    with seen_at_first(handle, SEEN):
        return (yield)


spark_home.use()

#: Spark's other way to write a checkpoint. The usual one starts a `readlink` for each file, which takes longer than a
#: micro-batch of a few rows; the processes that `recovery` kills keep to it.
FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


@pytest.fixture(scope="session")
def spark() -> Iterator:
    """A local session on two cores, started by the first test that asks for it."""
    from anabranch.runtime.spark import make_session

    session = make_session(
        "local[2]", spark__sql__shuffle__partitions="2", spark__sql__streaming__checkpointFileManagerClass=FILE_MANAGER
    )
    yield session
    session.stop()
