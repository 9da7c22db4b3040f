"""CSV lines that are not plain: quotes within cells, escapes, too few or too many cells; and headers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

QUOTE = '"'


@dataclass(frozen=True, slots=True)
class Dialect:
    """How cells are separated, and how a quote is written within a quoted cell."""

    separator: str = ","
    escape: str = QUOTE

    def cells(self, line: str) -> list[str]:
        """The cells of a line.

        A quote within a quoted cell that is neither escaped nor the last character makes the cell one without quotes:
        it is taken as it is written, up to the next separator.

        >>> Dialect().cells('a,"b, c",')
        ['a', 'b, c', '']
        >>> Dialect().cells('"a "b" c",d'), Dialect().cells('"a ""b"" c",d')
        (['"a "b" c"', 'd'], ['a "b" c', 'd'])
        """
        found: list[str] = []
        at = 0
        while True:
            cell, at = self._quoted(line, at) if line.startswith(QUOTE, at) else self._unquoted(line, at)
            found.append(cell)
            if at >= len(line):
                return found
            at += 1

    def _unquoted(self, line: str, at: int) -> tuple[str, int]:
        stop = line.find(self.separator, at)
        stop = len(line) if stop < 0 else stop
        return line[at:stop], stop

    def _quoted(self, line: str, start: int) -> tuple[str, int]:
        """The text of a quoted cell, and the index of the separator after it.

        A line may end within a cell. It then loses an escape without a character, but a lone quote is kept.
        """
        text: list[str] = []
        at = start + 1
        if at == len(line):
            return QUOTE, at
        while at < len(line):
            pair = line[at : at + 2]
            if pair == self.escape != QUOTE:
                at += 1
            elif pair in (self.escape + QUOTE, self.escape + self.escape):
                text.append(pair[1])
                at += 2
            elif pair[0] == QUOTE:
                after = self._after_quote(line, at + 1)
                if after is not None:
                    return "".join(text), after
                if pair[1:] != QUOTE:
                    rest, stop = self._unquoted(line, at)
                    return QUOTE + "".join(text) + rest, stop
                text.append(QUOTE)
                at += 1
            else:
                text.append(pair[0])
                at += 1
        return "".join(text), at

    def _after_quote(self, line: str, at: int) -> int | None:
        """The index of the separator or line end that follows a closing quote, perhaps after spaces."""
        while at < len(line) and line[at] <= " " and line[at] != self.separator:
            at += 1
        return at if at >= len(line) or line[at] == self.separator else None


def column_names(header: Sequence[str]) -> list[str]:
    """The names of columns, as Spark gives them: a cell that is empty, or occurs twice, gets its number.

    >>> column_names(["", "a", "b", "A"])
    ['_c0', 'a1', 'b', 'A3']
    """
    lower = [name.lower() for name in header]
    return [
        f"_c{number}" if not name else f"{name}{number}" if lower.count(name.lower()) > 1 else name
        for number, name in enumerate(header)
    ]
