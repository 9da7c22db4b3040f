"""Every mutant still applies: its line is in its file exactly once, and the tests that must kill it exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.mutants import MUTANTS, Mutant
from tests.mutate import ROOT, check


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.description)
def test_a_mutant_applies_to_its_file(mutant: Mutant) -> None:
    check([mutant])


def test_the_tests_of_mutants_exist() -> None:
    for name in sorted({test for mutant in MUTANTS for test in mutant.tests}):
        file, _, function = name.partition("::")
        assert (ROOT / file).is_file(), name
        function = function.partition("[")[0]
        if function:
            text = Path(ROOT / file).read_text(encoding="utf-8")
            assert re.search(rf"^def {function}\(", text, re.MULTILINE), name


def test_a_line_that_is_missing_or_not_unique_is_refused() -> None:
    mutant = Mutant("any.py", "a < b", "a <= b", [], False)
    assert mutant.apply("if a < b:") == "if a <= b:"
    for text in ("if a > b:", "a < b and a < b"):
        with pytest.raises(ValueError, match=r"any\.py has \d matches for 'a < b', not 1"):
            mutant.apply(text)
