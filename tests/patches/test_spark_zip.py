"""The zip file of PySpark on the workers' search path: removed where the same sources are installed."""

from __future__ import annotations

from pathlib import Path

import pyspark

from anabranch.patches.spark_zip import without_zip

INSTALLED = Path(pyspark.__file__).parent


def test_the_installed_pyspark_has_the_zip_file() -> None:
    # The reason for the patch; where Spark stops to ship it, the patch can go.
    assert (INSTALLED / "python" / "lib" / "pyspark.zip").exists()


def test_the_zip_file_of_an_installed_pyspark_is_removed() -> None:
    zip_file = str(INSTALLED / "python" / "lib" / "pyspark.zip")
    others = ["", "/usr/lib/python3", str(INSTALLED.parent)]
    assert without_zip([zip_file, *others]) == others


def test_another_zip_file_stays(tmp_path: Path) -> None:
    distribution = str(tmp_path / "python" / "lib" / "pyspark.zip")
    assert without_zip([distribution, str(INSTALLED.parent)]) == [distribution, str(INSTALLED.parent)]


def test_without_the_installed_package_the_zip_file_stays() -> None:
    zip_file = str(INSTALLED / "python" / "lib" / "pyspark.zip")
    assert without_zip([zip_file, "/elsewhere"]) == [zip_file, "/elsewhere"]
