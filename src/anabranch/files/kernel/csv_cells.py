"""The cells of CSV lines."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import I64, U8, Bools
from anabranch.compiled import compiled, compiled_inline
from anabranch.files.kernel.bytes import (
    BACKSLASH,
    CR,
    LF,
    NULL,
    QUOTE,
    SPACE,
    TEXT,
    first_of,
    is_blank,
    line_end,
    most_lines,
    next_line,
    set_of,
)


@compiled_inline
def _csv_cell(data: U8, at: int, ends: Bools, quoted_ends: Bools) -> tuple[int, int, int]:
    """The start and the end of a cell, and the index after it; an end of -1 if quotes or escapes need more care.

    `ends` are the bytes that end a cell, and `quoted_ends` those that end a quoted one or need more care.
    """
    if data[at] != QUOTE:
        stop = first_of(data, at, ends)
        return at, stop, stop
    stop = first_of(data, at + 1, quoted_ends)
    if data[stop] == QUOTE and ends[data[stop + 1]]:
        return at + 1, stop, stop + 1
    return at + 1, -1, stop


@compiled
def split_csv(data: U8, slots: I64, n_slots: int, separator: int, fixed: bool) -> tuple[int, I64, Bools, I64, I64, U8]:
    """Find the cells of all lines that are not blank; the last line must end with LF.

    Parameters
    ----------
    slots : for each column of the file, the index of the column to read, or -1
    fixed : whether each line must have all cells; otherwise, cells that a line lacks are NULL

    Returns
    -------
    n_lines : the number of lines; the arrays may be longer
    lines : the starts and the ends of the lines
    odd : whether the cells of a line are not known: quotes need more care, or there are too few or too many cells
    starts, ends : of each cell, by column and line
    kinds : TEXT, or NULL for an empty cell
    """
    most = most_lines(data)
    lines = np.empty((2, most), np.int64)
    odd = np.zeros(most, np.bool_)
    starts = np.zeros((n_slots, most), np.int64)
    ends = np.zeros((n_slots, most), np.int64)
    kinds = np.zeros((n_slots, most), np.uint8)
    cell_ends = set_of(separator, LF, CR)
    quoted_ends = set_of(QUOTE, BACKSLASH, LF, CR)
    line, at = 0, 0
    while at < len(data):
        first, column = at, 0
        while True:
            start, stop, at = _csv_cell(data, at, cell_ends, quoted_ends)
            if stop < 0:
                column = -1
                break
            if column < len(slots) and slots[column] >= 0:
                slot = slots[column]
                starts[slot, line] = start
                ends[slot, line] = stop
                kinds[slot, line] = TEXT if stop > start else NULL
            column += 1
            if data[at] != separator:
                break
            at += 1
        at = line_end(data, at)
        if at > first and (data[first] > SPACE or not is_blank(data, first, at)):
            lines[0, line] = first
            lines[1, line] = at
            odd[line] = column < 0 or (fixed and column != len(slots))
            for missing in range(max(column, 0), len(slots)):
                if slots[missing] >= 0:
                    kinds[slots[missing], line] = NULL
            line += 1
        at = next_line(data, at)
    return line, lines, odd, starts, ends, kinds
