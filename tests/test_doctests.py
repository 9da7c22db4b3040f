"""The examples in docstrings (`>>>`) print what they show."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"


def examples_of_modules() -> dict[str, int]:
    """The number of examples in each module with examples."""
    counts = {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts): len(
            re.findall(r"^\s*>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
        )
        for path in sorted(SOURCE.rglob("*.py"))
    }
    return {module: count for module, count in counts.items() if count}


@pytest.mark.parametrize(("module", "count"), examples_of_modules().items())
def test_examples_print_what_they_show(module: str, count: int) -> None:
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    try:
        results = doctest.testmod(import_module(module), optionflags=options, raise_on_error=True)
    except doctest.DocTestFailure as failure:
        example = failure.example
        pytest.fail(f"{failure.test}: {example.source.strip()} shows {example.want!r} and prints {failure.got!r}")
    except doctest.UnexpectedException as failure:
        # Can also be the skip of a test that must not compile kernels.
        raise failure.exc_info[1] from None
    # doctest finds fewer examples if a docstring belongs to a compiled function, which it does not see as a function.
    assert results.attempted == count
