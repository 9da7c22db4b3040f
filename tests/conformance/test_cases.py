"""Every case in batch, and some of each folder as streams, held against their expected answers.

`make cases` streams all of them, and runs them on other numbers of partitions, too.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.conformance.cases import CASES, TOGETHER, WAYS, run_batch, run_streaming

pytestmark = pytest.mark.skipif(not CASES.exists(), reason="the cases lie beside the project, not in it")


@pytest.mark.parametrize("folder", WAYS["batch"].folders)
def test_batch_gives_the_expected_answers(spark: SparkSession, folder: str) -> None:
    verdict = run_batch(spark, folder, partitions=2)
    assert verdict.right, verdict.said


@pytest.mark.parametrize("folder", WAYS["streaming"].folders)
def test_streaming_gives_the_expected_answers(spark: SparkSession, folder: str) -> None:
    verdict = run_streaming(spark, folder, partitions=2, most=TOGETHER)
    assert verdict.right, verdict.said
