"""The kinds of query. Each kind is a package of this name in lower case, and is listed here once.

The rest of Anabranch uses five names of such a package:

===============  ===========================================================================================
module           name
===============  ===========================================================================================
``syntax``       ``Builder``: makes the nodes of its grammar rules; the module registers them with `unparse`
``binding``      ``Binder``: resolves names and checks types
``analysis``     ``analyse``: takes a bound query apart
``explain``      ``plan``: how an analysed query is run, or why it is refused
``job``          ``make_job``: prepares analysed queries for the workers
===============  ===========================================================================================

Modules are imported when they are needed: checking a workbook loads no Spark, and parsing it loads no arrays.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

KINDS = ("PATTERN", "SEQUENCE", "RELATE", "MONITOR", "CONSTRAIN")


def load_kind_module(kind: str, module: str) -> Any:
    """Import a module of a kind, such as `load_kind_module("PATTERN", "binding")`."""
    return import_module(f"anabranch.{kind.lower()}.{module}")
