"""The kinds of query: each is a folder of this package, and named here once.

The house asks four things of such a folder, and takes them from modules of these names:

==============  ==============================================================================================
module          what
==============  ==============================================================================================
``syntax``      ``Builder``: the rules of its grammar as nodes; `unparse` learns there to write them
``binding``     ``Binder``: names resolved, types checked; which streams it takes, which columns its answers have
``explain``     ``plan``: how a bound query is run, or why it cannot be
``job``         ``make_job``: queries made ready for the workers
==============  ==============================================================================================

They are imported when they are asked for: checking a workbook takes no Spark, and parsing it no arrays.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

KINDS = ("PATTERN", "SEQUENCE", "RELATE", "MONITOR", "CONSTRAIN")


def load_kind_module(kind: str, module: str) -> Any:
    """A module of the folder of a kind, such as `load_kind_module("PATTERN", "binding")`."""
    return import_module(f"anabranch.{kind.lower()}.{module}")
