"""Every case folder of a kind that is built, in batch and in streaming, held against its expected answers.

`make cases` runs them on other numbers of partitions, too.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.conformance.cases import CASES, WAYS, run_batch, run_streaming

pytestmark = pytest.mark.skipif(not CASES.exists(), reason="the cases lie beside the project, not in it")


@pytest.mark.parametrize("folder", WAYS["batch"].folders)
def test_batch_gives_the_expected_answers(spark: SparkSession, folder: str) -> None:
    verdict = run_batch(spark, folder, partitions=7)
    assert verdict.right, verdict.said


@pytest.mark.parametrize("folder", WAYS["streaming"].folders)
def test_streaming_gives_the_expected_answers(spark: SparkSession, folder: str) -> None:
    verdict = run_streaming(spark, folder, partitions=2)
    assert verdict.right, verdict.said
