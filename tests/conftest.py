"""Settings for all tests: Hypothesis profiles, markers, coverage, and one Spark session for all tests that need one."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from numba.core.dispatcher import Dispatcher

from anabranch.compiled.store import UNLISTED
from anabranch.patches import numba_cache
from tests import spark_home
from tests.drawn import DEFAULT_EXAMPLES, FULL_EXAMPLES
from tests.recorded_kernels import RecordedKernels
from tests.untraced import not_traced, traced_for_first_calls, untraced

# Derandomised: a failure in one run is a failure in the next. No deadline: kernels compile within the first example.
settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    max_examples=DEFAULT_EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
# For a first look at a failure: without the search for a smaller failing example, which may take minutes.
settings.register_profile(
    "quick", settings.get_profile("default"), phases=[Phase.explicit, Phase.reuse, Phase.generate]
)
# After a change of a kernel, and before a release: three times as many examples, also the same in every run.
settings.register_profile("full", settings.get_profile("default"), max_examples=FULL_EXAMPLES)
settings.register_profile("thorough", settings.get_profile("default"), derandomize=False, max_examples=3000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

#: Tests of oracles, benchmarks, reproductions and examples, and the fuzzer. They get the marker `slow`, and run without
#: coverage: other tests cover what they run of the package, and tracing would double their time.
UNTRACED = (
    "tests/benchmarks/",
    "tests/docs/test_docs.py::test_commands_print_the_output_on_the_page[examples/",
    "tests/examples/",
    "tests/fuzz/",
    "tests/oracles/",
    "tests/reproductions/",
)

#: Folders with tests that take minutes. They start first, so that no process runs one alone in the end.
LONGEST = ("tests/cluster/", "tests/conformance/", "tests/notebook/", "tests/recovery/", "tests/serve/")

#: Coverage traces this many examples of a property: later examples have other answers, but hardly ever reach new lines.
TRACED_EXAMPLES = 8


def pytest_configure(config: pytest.Config) -> None:
    """Prepare compiled functions: coverage does not trace the compiler, and `-m "not kernels"` compiles no kernel."""
    if "not kernels" in config.option.markexpr:
        numba_cache.compile_result = _skip_instead_of_compiling
    Dispatcher.compile = untraced(Dispatcher.compile)
    # Tests that run pytest in pytest use the recorder of the outer run.
    if UNLISTED not in os.environ:
        config.pluginmanager.register(RecordedKernels())


def _skip_instead_of_compiling(dispatcher: Dispatcher, args: Any) -> Any:
    """Skip the current test: most tests reach kernels through other modules, which their imports do not show."""
    function = dispatcher.py_func
    pytest.skip(f"needs the kernel function {function.__module__}.{function.__name__}")


def _is_kernel(module: str) -> bool:
    return module.startswith("anabranch.") and "kernel" in module.split(".")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import whole folders and files of slow tests for `-m "not slow"`."""
    names = {path.rstrip("/") for path in UNTRACED}
    if "not slow" in config.option.markexpr and collection_path.relative_to(config.rootpath).as_posix() in names:
        return True
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Set the markers; single tests that are slow or start Spark in another process have theirs in their files."""
    files_with_kernels = {
        module
        for module in {getattr(item, "module", None) for item in items}
        for value in vars(module or object).values()
        if _is_kernel(value.__name__ if isinstance(value, ModuleType) else str(getattr(value, "__module__", "")))
    }
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
        if getattr(item, "module", None) in files_with_kernels:
            item.add_marker("kernels")
        if item.nodeid.startswith(UNTRACED):
            item.add_marker("slow")
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (not item.nodeid.startswith(LONGEST), item.get_closest_marker("spark") is None))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator:
    """Pause coverage for some tests, and after the first examples of a property."""
    if pyfuncitem.nodeid.startswith(UNTRACED):
        with not_traced():
            return (yield)
    handle = getattr(pyfuncitem.obj, "hypothesis", None)
    if handle is None:
        return (yield)
    with traced_for_first_calls(handle, TRACED_EXAMPLES):
        return (yield)


spark_home.use()

#: Spark's alternative way to write a checkpoint. The default one starts a `readlink` process for each file, which takes
#: longer than a micro-batch of a few rows; the processes that `recovery` kills use the default.
FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


@pytest.fixture(scope="session", autouse=True)
def forget_early() -> Iterator:
    """Operators forget keys although there are few, so that every test of a split checks that no answer changes."""
    from anabranch.columns import dictionary

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dictionary, "FEW", 0)
        yield


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """An archive for executors with this environment, pytest and no Pygments, and what `anabranch pack` has printed."""
    from anabranch.cli import pack
    from anabranch.cli.pack import archive

    path = tmp_path_factory.mktemp("packed") / "new" / "env.tar.gz"
    with pytest.MonkeyPatch.context() as patch, redirect_stderr(io.StringIO()) as printed:
        patch.setattr(archive, "_REPORT_EVERY_SECONDS", 0.0)
        pack.command(output=path, with_=["PyTest"], without=["pygments"], level=0)
    yield path, printed.getvalue()
    path.unlink()


@pytest.fixture(scope="session")
def spark() -> Iterator:
    """A local session on two cores, started by the first test that uses it."""
    from anabranch.runtime.spark import make_session

    settings = {
        "spark.sql.shuffle.partitions": "2", "spark.sql.streaming.checkpointFileManagerClass": FILE_MANAGER,
    }  # fmt: skip
    session = make_session("local[2]", settings=settings)
    yield session
    session.stop()
