"""Adds recorded kernel calls to the list of kernels that are compiled in advance.

`python -m anabranch.compiled.record FILE` adds the lines of FILE, which a test run writes where it finds kernels that
are not listed. With `--replace`, the lines become the whole list: a way to drop signatures that nothing uses any more.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from anabranch.compiled.signatures import FILE, Signature, listed_signatures


def merge(listed: Mapping[str, Sequence[Signature]], lines: Iterable[str]) -> dict[str, list[Signature]]:
    """The listed signatures and those of recorded lines, in a fixed order."""
    merged = {function: list(signatures) for function, signatures in listed.items()}
    for line in lines:
        function, signature = json.loads(line)
        known = merged.setdefault(function, [])
        if signature not in known:
            known.append(signature)
    return {function: sorted(merged[function], key=json.dumps) for function in sorted(merged)}


def to_text(signatures: Mapping[str, Sequence[Signature]]) -> str:
    """The content of `signatures.json`: one signature per line."""
    functions = []
    for function, listed in signatures.items():
        lines = ",\n".join(f"    {json.dumps(signature)}" for signature in listed)
        functions.append(f"  {json.dumps(function)}: [\n{lines}\n  ]")
    return "{\n" + ",\n".join(functions) + "\n}\n"


def main() -> None:
    """Read the arguments and write `signatures.json`."""
    parser = argparse.ArgumentParser(prog="python -m anabranch.compiled.record", description=__doc__)
    parser.add_argument("file", type=Path, help="recorded calls, a line of JSON each")
    parser.add_argument("--replace", action="store_true", help="forget the present list")
    options = parser.parse_args()
    listed = {} if options.replace else listed_signatures()
    Path(str(FILE)).write_text(to_text(merge(listed, options.file.read_text().splitlines())))


if __name__ == "__main__":
    main()
