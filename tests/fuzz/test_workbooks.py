"""A short run of the fuzzer of workbooks, and the texts that it has found; `make fuzz` is a long run."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.language import nodes
from anabranch.language.parser import parse
from anabranch.language.unparse import unparse
from tests import strategies
from tests.drawn import examples
from tests.fuzz.workbooks import KEPT, Outcome, run, run_part


def test_workbooks_give_plans_or_positioned_findings_and_nothing_else() -> None:
    outcome = Outcome()
    for part in run(1_000, seed=20):
        outcome += part
    assert [failure.reason for failure in outcome.failures] == []
    assert outcome.count == 1_000
    assert outcome.accepted > 50, "too few texts reach the analysis"


@pytest.mark.parametrize("path", sorted(KEPT.glob("*.abq")), ids=lambda path: path.stem)
def test_texts_that_were_failures_stay_mended(path: Path) -> None:
    outcome = Outcome()
    outcome.add(path.read_bytes().decode("utf-8", "surrogatepass"))
    assert outcome.failures == []


def test_a_part_of_a_run_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    monkeypatch.setattr(Outcome, "add", lambda self, text: texts.append(text))
    run_part(7, 3, 20)
    run_part(7, 3, 20)
    assert texts[:20] == texts[20:]
    assert len(set(texts)) > 10


@examples(40)
@given(strategies.workbooks())
def test_any_syntax_tree_is_declared_or_has_findings(workbook: nodes.Workbook) -> None:
    catalog = Catalog()
    findings = declare(parse(unparse(workbook)), catalog)
    assert all(finding.span for finding in findings)
    # OR REPLACE may declare a name again.
    declared = {statement.name.lower() for statement in workbook.statements}
    assert findings or set(catalog.entries) == declared
    assert not findings or len(catalog.entries) < len(workbook.statements)
