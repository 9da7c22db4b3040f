"""Writes the golden identities: `python -m tests.planning.golden_identity`.

A difference means that checkpoints of users cannot be resumed. It needs a new VERSION in `planning/identity.py` and an
entry in CHANGELOG.md under "State format".
"""

from __future__ import annotations

import json
from pathlib import Path

from anabranch.catalog import Stream
from anabranch.language import nodes
from anabranch.language.parser import parse
from anabranch.planning.derived import layouts_of
from anabranch.planning.identity import fingerprint_of, identity_of
from anabranch.planning.planner import Planner
from anabranch.planning.prepared import Prepared, streams_of
from anabranch.transport.layout import Layout

FOLDER = Path(__file__).parents[1] / "fixtures" / "identity"
WORKBOOKS = sorted(FOLDER.glob("*.abq"))


def group_of(workbook: Path) -> tuple[list[Prepared], tuple[Layout, ...]]:
    """The queries of a workbook, prepared as one group, and the layouts of their streams."""
    planner = Planner()
    assert not planner.declare(parse(workbook.read_text(encoding="utf-8"), workbook.name))
    group = [planner.prepare(query) for query in planner.catalog.queries()]
    streams = streams_of(group)
    read = [_read(planner, stream) for stream in streams]
    return group, layouts_of(streams, read, [str(FOLDER)] * len(streams))


def _read(planner: Planner, stream: Stream) -> Stream:
    if not isinstance(stream.source, nodes.DerivedSource):
        return stream
    read = planner.catalog.stream(stream.source.stream)
    assert read is not None
    return read


def golden(workbook: Path) -> str:
    """The identity of a workbook's queries, and its fingerprint."""
    identity = identity_of(*group_of(workbook))
    return json.dumps({"fingerprint": fingerprint_of(identity), "identity": identity}, indent=1) + "\n"


if __name__ == "__main__":
    for path in WORKBOOKS:
        path.with_suffix(".json").write_text(golden(path), encoding="utf-8")
