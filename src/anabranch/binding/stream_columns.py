"""The columns of a stream as conditions name them, and checks of their types."""

from __future__ import annotations

from collections.abc import Iterable

from anabranch.binding.type_rules import a_type
from anabranch.catalog import Column, Model, Stream
from anabranch.language.findings import Findings, shown
from anabranch.language.types import Type

#: The types allowed for a coordinate, and for a geometry.
_COORDINATE_TYPES = (Type.INTEGER, Type.DOUBLE, Type.UNKNOWN)
_GEOMETRY_TYPES = (Type.STRING, Type.BINARY, Type.UNKNOWN)


def named_columns(stream: Stream) -> dict[str, Column]:
    """The columns of a stream by name.

    For events with a duration, `t_from` and `t` also name the start and the end, unless columns have these names.
    """
    columns = {column.name: column for column in stream.columns}
    if stream.start is not None:
        taken = {name.lower() for name in columns}
        columns |= {name: end for name, end in (("t", stream.time), ("t_from", stream.start)) if name not in taken}
    return columns


def find_column(stream: Stream, name: str) -> Column | None:
    """The column that a condition calls `name`, ignoring case; None if there is none."""
    columns = named_columns(stream).items()
    return next((column for column_name, column in columns if column_name.lower() == name.lower()), None)


def check_column_types(stream: Stream, findings: Findings, declared: bool) -> None:
    """Report columns of TIME, SPACE, VALUE, ERROR, DURATION and GAP whose types are not allowed there.

    With `declared`, only types that the workbook states are checked; this happens once, when the stream is declared.
    Without, only types that come from the source are checked; this happens when a query uses the stream.
    """
    if stream.start is not None and (stream.start.declared and stream.time.declared) is declared:
        _check_times(stream, stream.start, stream.time, findings)
    for name in stream.declaration.space or ():
        column = find_column(stream, name)
        if column is not None and column.declared is declared:
            _check_space(stream, column, findings)
    if stream.model is Model.PREDICTED:
        for clause, what, names in (
            ("VALUE", "a predicted value", [value.name for value in stream.values]),
            ("ERROR", "an error", stream.error_columns),
        ):
            columns = (find_column(stream, name) for name in names)
            checked = [column for column in columns if column is not None and column.declared is declared]
            _check_numbers(stream, clause, what, checked, findings)

    error = find_column(stream, stream.location_error.source or "") if stream.location_error is not None else None
    if error is not None and error.declared is declared:
        _check_numbers(stream, "ERROR", "an error", [error], findings)
    for clause, law in stream.segment_laws:
        column = find_column(stream, law.column or "")
        if law.path is None and column is not None and column.declared is declared:
            _check_numbers(stream, clause, "a mean", [column], findings)


def _check_numbers(stream: Stream, clause: str, what: str, columns: Iterable[Column], findings: Findings) -> None:
    for column in columns:
        if not column.type.is_numeric:
            message = f"{what} must be a number, but {shown(column.name)} is {a_type(column.type)}"
            span = stream.declaration.clause_span(clause)
            findings.add(f"{clause.lower()}-type", message, span, "use a numeric column")


def _check_times(stream: Stream, start: Column, end: Column, findings: Findings) -> None:
    if start.type is end.type or Type.UNKNOWN in (start.type, end.type):
        return
    types = f"{shown(start.name)} is {a_type(start.type)} and {shown(end.name)} is {a_type(end.type)}"
    are_numbers = start.type.is_numeric and end.type.is_numeric
    hint = f"write TIME ({start.name}, {end.name}) DOUBLE" if are_numbers else "use two columns of the same type"
    message = f"the columns of TIME must have the same type, but {types}"
    findings.add("time-type", message, stream.declaration.clause_span("TIME"), hint)


def _check_space(stream: Stream, column: Column, findings: Findings) -> None:
    if stream.shape is None:
        rule, allowed, hint = "a coordinate must be a number", _COORDINATE_TYPES, "use numeric columns"
    else:
        rule, allowed = "a geometry must be a STRING or a BINARY", _GEOMETRY_TYPES
        hint = "use a column of well-known text or binary"
    if column.type not in allowed:
        message = f"{rule}, but {shown(column.name)} is {a_type(column.type)}"
        findings.add("space-type", message, stream.declaration.clause_span("SPACE"), hint)
