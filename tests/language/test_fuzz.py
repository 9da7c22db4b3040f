"""A short run of the fuzzer; `python -m tests.fuzz_workbooks 100000` is a long one."""

from __future__ import annotations

from hypothesis import given

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.language import nodes
from anabranch.language.parser import parse
from anabranch.language.unparse import unparse
from tests import strategies
from tests.drawn import examples
from tests.fuzz_workbooks import run


def test_mutated_workbooks_give_positioned_findings_and_nothing_else() -> None:
    assert [failure.reason for failure in run(2_000, seed=20)] == []


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
