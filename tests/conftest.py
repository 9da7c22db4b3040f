"""Settings for all tests: Hypothesis profiles, and the one Spark session that serves every test which needs one."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings

# Derandomised: a failure in one run is a failure in the next. No deadline: kernels compile within the first example.
settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
# For a first look at a failure: without the minutes that finding its smallest form may take.
settings.register_profile(
    "quick", settings.get_profile("default"), phases=[Phase.explicit, Phase.reuse, Phase.generate]
)
settings.register_profile("thorough", settings.get_profile("default"), derandomize=False, max_examples=3000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def spark() -> Iterator:
    """A local session on two cores, started by the first test that asks for it."""
    from anabranch.runtime.spark import make_session

    session = make_session("local[2]", spark__sql__shuffle__partitions="2")
    yield session
    session.stop()
