"""A short run of the fuzzer; `python -m tests.fuzz.files --count 20000` is a long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.files import check, run

#: Seeds of files that once failed, and why.
FAILED = {
    20535: "a code of a Parquet column that is not in its dictionary",
    108169: "a name of a Parquet column that is not valid UTF-8",
}


def test_damaged_files_are_read_or_quarantined() -> None:
    assert list(run(150, seed=1_000_000)) == []


@pytest.mark.parametrize("seed", FAILED)
def test_files_that_once_failed(seed: int, tmp_path: Path) -> None:
    assert check(seed, tmp_path) == ""
