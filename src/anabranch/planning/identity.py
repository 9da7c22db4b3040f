"""The identity of a checkpoint: a canonical, versioned description of its queries, their streams and the state format.

A checkpoint can be resumed by the same queries over the same streams. What "the same" means is written down here field
by field, as a JSON document. It does not depend on internal classes: a new field with a default leaves the identity of
existing queries as it is, because values that are not set are left out. Golden files in `tests/fixtures/identity` pin
the documents. Where the data lie is no part of the identity, so that folders can be moved.

Queries that share a pass may be added and removed, but not changed. Each has a part of the state, which is found by the
hash of its definition.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from anabranch.binding.words import condition_text
from anabranch.language.unparse import unparse
from anabranch.planning.prepared import Prepared, streams_of
from anabranch.transport.layout import IntervalColumns, Layout, PredictionColumns, SegmentTimes
from anabranch.transport.state import OLDEST_FORMAT

#: Increase it when the meaning of the document changes, and note it in CHANGELOG.md under "State format".
VERSION = 2

Document = dict[str, object]


def identity_of(group: Sequence[Prepared], layouts: Sequence[Layout]) -> Document:
    """The identity of a group of queries, given the layouts of their streams."""
    operands = [text for prepared in group for text in prepared.bound.combined_definitions]
    return {
        "version": VERSION,
        # State of these formats is read, so that their checkpoints have the same identity.
        "state format": OLDEST_FORMAT,
        # State does not depend on calibration maps and targets: a restarted stream may have others.
        "queries": {
            prepared.query.name.lower(): unparse(
                replace(prepared.query.declaration, or_replace=False, calibrated=None, target=None)
            )
            for prepared in group
        },
        **({"operands": operands} if operands else {}),
        "streams": [
            {
                "declaration": unparse(replace(stream.declaration, source=None, or_replace=False, clustered=())),
                "layout": _layout(layout),
            }
            for stream, layout in zip(streams_of(group), layouts, strict=True)
        ],
    }


def fingerprint_of(identity: Document, shares_pass: bool = False) -> str:
    """A hash of an identity, which marks the state of every bucket; without the queries if they may change."""
    return _hash({name: part for name, part in identity.items() if not (shares_pass and name == "queries")})


def query_fingerprints(identity: Document) -> tuple[str, ...]:
    """A hash of the definition of each query, which marks its part of the state; 64 bits distinguish the queries."""
    return tuple(_hash(definition)[:16] for definition in queries_in(identity).values())


def queries_in(identity: Document) -> dict[str, str]:
    """The definitions of the queries of an identity, by lower-case name."""
    return cast(dict[str, str], identity["queries"])


def _hash(document: object) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _layout(layout: Layout) -> Document:
    """The columns that are read, with their types, and what is done with them."""
    document: Document = {
        "name": layout.name,
        "keys": [list(pair) for pair in zip(layout.keys, map(str, layout.key_types), strict=True)],
        "values": [list(pair) for pair in zip(layout.values, map(str, layout.value_types), strict=True)],
        "time": [layout.time, layout.time_kind.value],
        "start": layout.start,
        "lateness": layout.lateness,
    }
    if layout.distribution is not None:
        document["probability"] = layout.distribution.probability
        document["previous"] = list(layout.distribution.previous)
    if layout.interval is not None:
        document["interval"] = _interval(layout.interval)
    if layout.prediction is not None:
        document["prediction"] = _prediction(layout.prediction)
    if layout.space is not None:
        space = layout.space
        shape = None if space.shape_type is None else str(space.shape_type)
        document["space"] = _known(columns=space.columns, geodesic=space.geodesic, shape=shape, origin=space.origin)
    if layout.derivation is not None:
        document["derivation"] = layout.derivation.identity()
    if layout.runs is not None:
        runs = layout.runs
        document["runs"] = _known(
            at_least=runs.at_least, silence=runs.silence, condition=condition_text(runs.condition),
            interval=_interval(runs.interval),
        )  # fmt: skip
    if layout.preparation is not None:
        document["reading"] = layout.preparation.declaration
    return _known(**document)


def _interval(interval: IntervalColumns) -> Document:
    return _known(
        order=interval.order, length=interval.length, role=interval.role, window=interval.window,
        horizon=interval.horizon, duration=_segment_times(interval.duration), gap=_segment_times(interval.gap),
        horizon_columns=interval.horizon_columns if any(interval.horizon_columns) else None,
    )  # fmt: skip


def _segment_times(times: SegmentTimes | None) -> Document | None:
    return (
        None
        if times is None
        else _known(phases=times.phases, mean=times.mean, column=times.column, classes=tuple(map(list, times.classes)))
    )


def _prediction(prediction: PredictionColumns) -> Document:
    reporting = prediction.reporting
    return _known(
        errors=prediction.errors, normals=prediction.normals, period=prediction.period, rates=prediction.rates,
        accelerations=prediction.accelerations,
        reporting=None if reporting is None else reporting.identity(),
    )  # fmt: skip


def _known(**fields: object) -> Document:
    """The fields that are set, with tuples as lists; NULL, false, 0 and empty fields are left out."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items() if value}


def differences(ours: Document, saved: Document, shares_pass: bool = False) -> str:
    """In words, where two identities differ first; empty if a checkpoint of the saved one can be resumed."""
    if ours == saved:
        return ""
    for name in ("version", "state format"):
        if ours[name] != saved.get(name):
            return f"has {name} {saved.get(name)}, this version writes {ours[name]}"
    if shares_pass:
        if queries_in(ours).keys().isdisjoint(queries_in(saved)):
            return "belongs to other queries"
    elif any(ours.get(name) != saved.get(name) for name in ("queries", "operands")):
        return "belongs to another query, or to an earlier version of this query"
    return "" if ours["streams"] == saved["streams"] else "was written for streams with other columns, types or clauses"
