"""Which inputs a workbook on the page may have: files in its folder, and nothing else.

A workbook on the page may have been pasted from anywhere. On the command line, a user names the workbook to run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from anabranch.errors import Finding
from anabranch.language import nodes

#: The fields of nodes that are paths.
_PATHS = ("path", "calibrated")


def foreign_inputs(workbook: nodes.Workbook, folder: Path) -> list[Finding]:
    """Report every input that is not a file in the folder."""
    return [finding for node in _nodes(workbook) for finding in _findings(node, folder.resolve())]


def _findings(node: nodes.Node, folder: Path) -> Iterator[Finding]:
    if isinstance(node, nodes.ConnectorSource | nodes.TableSource):
        hint = "run this workbook with `anabranch run` or `anabranch stream`"
        yield Finding("foreign-input", "the page reads only files in the folder of the workbook", hint, node.span)
        return
    for name in _PATHS:
        path = getattr(node, name, None)
        if isinstance(path, str) and not _is_inside(path, folder):
            message = f"'{path}' is not in the folder of the workbook, {folder}"
            yield Finding("foreign-input", message, "move the file there, or use `anabranch run`", node.span)


def _is_inside(path: str, folder: Path) -> bool:
    """Whether a path, with links followed, is in the folder; one with a scheme is not."""
    # Hadoop expands braces after this check: 'in/{a,../../b}'.
    if "://" in path or path.lower().startswith(("file:", "dbfs:")) or ("{" in path and ".." in path):
        return False
    return Path(os.path.realpath(folder / path)).is_relative_to(folder)


def _nodes(value: Any) -> Iterator[nodes.Node]:
    """All nodes of a tree."""
    if isinstance(value, tuple | list):
        for each in value:
            yield from _nodes(each)
    elif is_dataclass(value) and not isinstance(value, type):
        if isinstance(value, nodes.Node):
            yield value
        for field in fields(value):
            yield from _nodes(getattr(value, field.name))
