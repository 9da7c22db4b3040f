"""From a bound PATTERN question to the job that runs it."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from anabranch.language.bound import BoundPattern
from anabranch.pattern.analysis import analyse
from anabranch.pattern.archive import ArchiveJob
from anabranch.pattern.operator import PatternJob
from anabranch.rows.packing import Layout


def make_job(
    query: BoundPattern, layouts: tuple[Layout, ...], relations: Mapping[str, pa.Table], fingerprint: str, live: bool
) -> PatternJob:
    """A query made ready for the workers; `live` where its inputs go on."""
    analysis, _ = analyse(query)
    kind = PatternJob if live or analysis.surely_exact else ArchiveJob
    return kind(analysis, layouts, dict(relations), fingerprint)
