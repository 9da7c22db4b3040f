"""Runs every case folder in batch and in streaming, and compares with its expected answers.

`make cases` also runs them with other numbers of partitions.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.conformance.cases import CASES, MODES, load_folder, run_batch, run_streaming

pytestmark = pytest.mark.skipif(not CASES.exists(), reason="the cases are not part of the project")


@pytest.mark.parametrize("folder", MODES["batch"].folders)
def test_batch_gives_the_expected_answers(spark: SparkSession, folder: str) -> None:
    verdict = run_batch(spark, load_folder(folder), partitions=3)
    assert verdict.passed, verdict.output


@pytest.mark.parametrize("folder", MODES["streaming"].folders)
def test_streaming_gives_the_expected_answers(spark: SparkSession, folder: str) -> None:
    verdict = run_streaming(spark, load_folder(folder), partitions=2)
    assert verdict.passed, verdict.output
