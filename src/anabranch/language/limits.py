"""How much a workbook may hold. Every limit is checked in linear time, before costlier work begins."""

from __future__ import annotations

#: The largest workbook a person would still read is a few hundred lines; this is some thousands.
MAX_TEXT = 256 * 1024

#: The parser takes some 20 to 40 microseconds a token, so the longest text takes between one and two seconds.
MAX_TOKENS = 40_000

#: One statement of that many words is generated or hostile; its conditions are walked several times.
MAX_STATEMENT_TOKENS = 10_000

#: Each statement becomes a catalogue entry, and unknown names are compared with all of them.
MAX_STATEMENTS = 2_000

#: Brackets within brackets. Nobody reads more.
MAX_NESTING = 64

#: Expressions are walked by recursion after parsing; this keeps every walk far from Python's limit of 1,000 frames.
MAX_DEPTH = 100

#: A goal takes two symbol bits (matched, accepted) of a 64-bit word, and two bits are kept back.
MAX_GOALS = 31

#: Names become columns, folders and state keys; file systems stop at 255 bytes.
MAX_NAME = 128

#: Strings are values, paths and polygons in text form.
MAX_STRING = 64 * 1024

#: Digits and all: a double needs 17 digits and an exponent, and long digit runs are slow to convert.
MAX_NUMBER = 40

#: Integers are 64-bit columns in Spark.
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**63 - 1

#: Times are microseconds in 64 bits, which is about this many seconds.
MAX_SECONDS = 9_000_000_000_000

#: `v*n` stands for n variables; more than this many events in one configuration is beyond any join.
MAX_COUNT = 256

#: A list after IN repeats its operand for each item; this bounds the product.
MAX_CONDITION_NODES = 10_000

#: Reporting more helps nobody, and each finding costs a search for the nearest name.
MAX_FINDINGS = 100
