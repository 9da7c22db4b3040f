"""The types of columns and expressions, with the names of Spark SQL."""

from __future__ import annotations

from enum import Enum


class Type(Enum):
    """The type of a column or expression; UNKNOWN before the source of the column has been read."""

    STRING = "STRING"
    INTEGER = "INTEGER"
    DOUBLE = "DOUBLE"
    BOOLEAN = "BOOLEAN"
    TIMESTAMP = "TIMESTAMP"
    DATE = "DATE"
    BINARY = "BINARY"
    NULL = "NULL"
    UNKNOWN = "UNKNOWN"

    @property
    def is_numeric(self) -> bool:
        """Whether arithmetic is allowed; UNKNOWN counts as numeric."""
        return self in (Type.INTEGER, Type.DOUBLE, Type.UNKNOWN)


#: The type names allowed in a workbook, as in `KEY (person STRING)`, in upper case.
TYPE_NAMES = {
    "STRING": Type.STRING, "VARCHAR": Type.STRING, "TEXT": Type.STRING,
    "INTEGER": Type.INTEGER, "INT": Type.INTEGER, "BIGINT": Type.INTEGER, "LONG": Type.INTEGER,
    "DOUBLE": Type.DOUBLE, "FLOAT": Type.DOUBLE, "REAL": Type.DOUBLE,
    "BOOLEAN": Type.BOOLEAN, "BOOL": Type.BOOLEAN,
    "TIMESTAMP": Type.TIMESTAMP, "DATE": Type.DATE, "BINARY": Type.BINARY,
}  # fmt: skip


def comparable(left: Type, right: Type) -> bool:
    """Whether values of the two types can be compared."""
    if Type.UNKNOWN in (left, right) or Type.NULL in (left, right):
        return True
    if left.is_numeric and right.is_numeric:
        return True
    return left == right
