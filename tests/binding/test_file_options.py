"""OPTIONS of a file source: only those that say how its bytes are parsed reach Spark's reader."""

from __future__ import annotations

import pytest

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.language.parser import parse


def messages(source: str) -> list[str]:
    text = f"CREATE STREAM s KEY (k) TIME t FROM {source};"
    return [finding.line("w.abq") for finding in declare(parse(text, "w.abq"), Catalog())]


@pytest.mark.parametrize(
    "source",
    [
        "'x.csv' OPTIONS (sep = ';', Header = TRUE, timestampFormat = 'dd.MM.yyyy', nullValue = 'NA')",
        "'x.csv.gz' OPTIONS (DELIMITER = '|')",
        "'x.jsonl' OPTIONS (multiLine = TRUE, allowComments = TRUE)",
        "'x.parquet' OPTIONS (mergeSchema = TRUE)",
        "'folder' OPTIONS (mergeSchema = TRUE, sep = ';')",
    ],
)
def test_options_about_the_bytes_of_a_file_are_allowed(source: str) -> None:
    assert messages(source) == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("'x.csv' OPTIONS (cleanSource = 'delete')", "a query never deletes or moves its input"),
        ("'folder' OPTIONS (cleansource = 'archive', sourceArchiveDir = 'y')", "a query never deletes or moves"),
        ("'x.csv' OPTIONS (mode = 'DROPMALFORMED')", "rows that cannot be read are quarantined; use --strict"),
        ("'x.csv' OPTIONS (maxFileAge = '1d')", "every file is read, whatever its age"),
        ("'x.json' OPTIONS (columnNameOfCorruptRecord = 'x')", "rows that cannot be read are quarantined"),
        ("'x.parquet' OPTIONS (ignoreCorruptFiles = TRUE)", "files that cannot be read are quarantined"),
        ("'x.parquet' OPTIONS (sep = ';')", "the options are datetimeRebaseMode, int96RebaseMode and mergeSchema"),
        ("'x.json' OPTIONS (sep = ';')", "the options are allowBackslash"),
        ("'x.csv' OPTIONS (timestampformt = 'y')", "did you mean 'timestampFormat'?"),
    ],
)  # fmt: skip
def test_other_options_are_refused_by_name(source: str, message: str) -> None:
    found = messages(source)
    assert found
    assert all("is not allowed for" in line for line in found)
    assert message in found[0]
    assert found[0].startswith("w.abq:1:")
