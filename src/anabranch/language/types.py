"""The types of columns and expressions: few, and named as Spark SQL names them."""

from __future__ import annotations

from enum import Enum


class Type(Enum):
    """What a column holds. UNKNOWN is a column whose source has not been looked at yet."""

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
        """Whether arithmetic is defined on it."""
        return self in (Type.INTEGER, Type.DOUBLE, Type.UNKNOWN)


#: The names a workbook may use for a type, `KEY (person STRING)`, in upper case.
TYPE_NAMES = {
    "STRING": Type.STRING, "VARCHAR": Type.STRING, "TEXT": Type.STRING,
    "INTEGER": Type.INTEGER, "INT": Type.INTEGER, "BIGINT": Type.INTEGER, "LONG": Type.INTEGER,
    "DOUBLE": Type.DOUBLE, "FLOAT": Type.DOUBLE, "REAL": Type.DOUBLE,
    "BOOLEAN": Type.BOOLEAN, "BOOL": Type.BOOLEAN,
    "TIMESTAMP": Type.TIMESTAMP, "DATE": Type.DATE, "BINARY": Type.BINARY,
}  # fmt: skip


def comparable(left: Type, right: Type) -> bool:
    """Whether `=` or `<` between the two means anything."""
    if Type.UNKNOWN in (left, right) or Type.NULL in (left, right):
        return True
    if left.is_numeric and right.is_numeric:
        return True
    return left == right
