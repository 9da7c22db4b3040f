"""The benchmarks import the reproductions, never the other way."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import reproductions

FOLDER = Path(reproductions.__file__).parent


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: str(path.relative_to(FOLDER)))
def test_no_module_imports_the_benchmarks(path: Path) -> None:
    statements = list(ast.walk(ast.parse(path.read_text())))
    names = [alias.name for node in statements if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in statements if isinstance(node, ast.ImportFrom)]
    assert not {name for name in names if name.split(".")[0] == "benchmarks"}
