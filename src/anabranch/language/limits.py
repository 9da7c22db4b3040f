"""Limits on the size of a workbook. Each is checked in linear time, before more expensive work begins."""

from __future__ import annotations

#: Characters of a workbook. A workbook that people read has a few hundred lines; this is several thousand.
MAX_TEXT = 256 * 1024

#: Tokens of a workbook. The parser takes 20 to 40 microseconds per token, so the longest text takes 1 to 2 seconds.
MAX_TOKENS = 40_000

#: Tokens of a statement. A longer one is generated or hostile, and its conditions are traversed several times.
MAX_STATEMENT_TOKENS = 10_000

#: Statements of a workbook. Each becomes a catalog entry, and unknown names are compared with all entries.
MAX_STATEMENTS = 2_000

#: Nested brackets; more are unreadable.
MAX_NESTING = 64

#: Depth of an expression. Expressions are traversed by recursion after parsing; this stays far below Python's limit of
#: 1,000 frames.
MAX_DEPTH = 100

#: Goals of a PATTERN. A goal takes two bits (matched, accepted) of a 64-bit word, and two bits are reserved.
MAX_GOALS = 31

#: Bytes of a name in UTF-8. Names become columns, folders and state keys; file systems allow 255 bytes.
MAX_NAME = 128

#: Characters of a string. Strings are values, paths and polygons in text form.
MAX_STRING = 64 * 1024

#: Characters of a number. A double needs 17 digits and an exponent, and long digit runs are slow to convert.
MAX_NUMBER = 40

#: Integers are 64-bit columns in Spark.
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**63 - 1

#: The longest duration in seconds. Times are 64-bit microseconds, which is about this many seconds.
MAX_SECONDS = 9_000_000_000_000

#: The n of `v*n`, which stands for n variables; no join can handle more events in one configuration.
MAX_COUNT = 256

#: Nodes that one IN expands to: its operand is repeated for each item of the list.
MAX_CONDITION_NODES = 10_000

#: Findings reported. More do not help a user, and each costs a search for the nearest name.
MAX_FINDINGS = 100
