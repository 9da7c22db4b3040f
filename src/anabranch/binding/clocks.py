"""The clock of a query: the times of all its streams must be comparable."""

from __future__ import annotations

from collections.abc import Iterable

from anabranch.catalog import Catalog, Stream
from anabranch.errors import Span
from anabranch.language import nodes
from anabranch.language.findings import Findings
from anabranch.language.types import Type


def time_type(stream: Stream, catalog: Catalog) -> Type:
    """The type of the times of a stream; those of a derived stream are the times of its source."""
    if isinstance(stream.source, nodes.DerivedSource):
        source = catalog.stream(stream.source.stream)
        if source is not None and source.time.type is not Type.UNKNOWN:
            return source.time.type
    return stream.time.type


def check_clocks(streams: Iterable[Stream], catalog: Catalog, span: Span, findings: Findings) -> None:
    """Report streams of one query of which some have timestamps and others have numbers as times."""
    types = {stream.name: time_type(stream, catalog) for stream in streams}
    known = {name: kind for name, kind in types.items() if kind is not Type.UNKNOWN}
    if Type.TIMESTAMP in known.values() and len(set(known.values())) > 1:
        described = ", ".join(f"{name} has {kind.value}" for name, kind in known.items())
        message = f"the streams of one query have different time types ({described})"
        findings.add("time-type", message, span, "convert one of them")
