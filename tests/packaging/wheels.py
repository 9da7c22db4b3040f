"""What a complete wheel contains; used by the test of the build and by `make release-check`."""

from __future__ import annotations

import re
import zipfile
from email.parser import Parser
from pathlib import Path

#: A link that only works inside the repository.
RELATIVE_LINK = re.compile(r"\]\((?!https?:|#|mailto:)[^)]*\)")

REQUIRED = (
    "anabranch/py.typed",
    "anabranch/compiled/signatures.json",
    "anabranch/language/grammar.lark",
    "anabranch/examples/coffee.abq",
    "anabranch/examples/at.csv",
    "anabranch/examples/buoys/buoys.abq",
)


def faults(wheel: Path, with_kernels: bool) -> list[str]:
    """What a wheel lacks, a line each."""
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        (metadata_name,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(file.read(metadata_name).decode())
    found = [f"{name} is missing" for name in REQUIRED if name not in names]
    found += [f"{name} does not belong into a wheel" for name in names if name.endswith((".pyc", ".lock"))]
    if with_kernels and not any(name.endswith(".kernel") for name in names):
        found.append("there are no compiled kernels")
    found += [f"the description has a relative link: {link}" for link in RELATIVE_LINK.findall(metadata.get_payload())]
    fields = ("License-Expression", "Project-URL", "Summary", "Requires-Python")
    return found + [f"METADATA has no {field}" for field in fields if not metadata.get_all(field)]
