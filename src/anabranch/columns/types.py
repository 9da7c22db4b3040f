"""The type of a column of a workbook, from its Arrow type."""

from __future__ import annotations

import pyarrow as pa

from anabranch.language.types import Type

_TESTS = (
    (pa.types.is_timestamp, Type.TIMESTAMP),
    (pa.types.is_integer, Type.INTEGER),
    (pa.types.is_floating, Type.DOUBLE),
    (pa.types.is_decimal, Type.DOUBLE),
    (pa.types.is_string, Type.STRING),
    (pa.types.is_large_string, Type.STRING),
    (pa.types.is_boolean, Type.BOOLEAN),
    (pa.types.is_date, Type.DATE),
    (pa.types.is_binary, Type.BINARY),
    (pa.types.is_large_binary, Type.BINARY),
    (pa.types.is_null, Type.NULL),
)


def type_of(arrow: pa.DataType) -> Type:
    """Return the type of a column; UNKNOWN for lists, structs and other types that no clause can use.

    >>> type_of(pa.dictionary(pa.int32(), pa.string())), type_of(pa.list_(pa.int8()))
    (<Type.STRING: 'STRING'>, <Type.UNKNOWN: 'UNKNOWN'>)
    """
    kind = arrow.value_type if pa.types.is_dictionary(arrow) else arrow
    return next((own for test, own in _TESTS if test(kind)), Type.UNKNOWN)


def can_read(found: Type, wanted: Type) -> bool:
    """Whether a column that has one type can be read as another without a change of its values."""
    if found in (wanted, Type.NULL) or wanted is Type.UNKNOWN:
        return True
    if wanted is Type.STRING:
        return found not in (Type.BINARY, Type.UNKNOWN)
    return (wanted, found) in ((Type.DOUBLE, Type.INTEGER), (Type.TIMESTAMP, Type.DATE))


def types_of_columns(schema: pa.Schema) -> dict[str, Type]:
    """Return the types of all columns, by lower-case name."""
    return {field.name.lower(): type_of(field.type) for field in schema}
