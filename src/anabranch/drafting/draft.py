"""A workbook from the columns of a file: one stream, and a first query of the chosen kind."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from anabranch.drafting.constants import Constants
from anabranch.drafting.roles import Roles, assign_roles
from anabranch.drafting.sample import Column, Sample, read_sample
from anabranch.errors import AnabranchError
from anabranch.language.names import quoted
from anabranch.language.unparse import string

#: A stream is declared with at most this many values.
_MAX_VALUES = 12

_AND = "\n    AND "


@dataclass(frozen=True, slots=True)
class Draft:
    """The text of a workbook, and what was guessed."""

    text: str
    guesses: tuple[str, ...]


def draft(
    kind: str,
    path: str,
    folder: str = ".",
    *,
    time: str | None = None,
    keys: Iterable[str] = (),
    values: Iterable[str] = (),
) -> Draft:
    """Draft a workbook that will be in `folder`.

    Parameters
    ----------
    kind : PATTERN, SEQUENCE, RELATE, MONITOR or CONSTRAIN
    path : a CSV, JSON lines or Parquet file, a folder of them, or a glob
    time, keys, values : the columns, where the user knows them; the others are guessed

    Raises
    ------
    AnabranchError
        If the file cannot be read, or its columns do not suit the kind.
    """
    sample = read_sample(path)
    roles = assign_roles(sample, time, keys, values)
    writer = _Writer(sample, roles, _source(path, folder), has_durations=kind.upper() in ("RELATE", "CONSTRAIN"))
    blocks = _KINDS[kind.upper()](writer)
    return Draft("\n\n".join([writer.introduction(kind.upper()), *blocks]) + "\n", tuple(roles.guesses))


def _source(path: str, folder: str) -> str:
    """The path as it is written in the workbook: relative to its folder if the data are near it."""
    relative = os.path.relpath(path, folder)
    return os.path.abspath(path) if relative.startswith(os.path.join("..", "..")) else relative


class _Writer:
    """Writes the statements of one file."""

    def __init__(self, sample: Sample, roles: Roles, source: str, has_durations: bool) -> None:
        self.has_durations = has_durations
        self.sample, self.roles, self.source = sample, roles, source
        self.constants = Constants(roles)
        stem = re.sub(r"\W+", "_", os.path.basename(os.path.normpath(source)).split(".")[0]).strip("_*").lower()
        self.name = quoted(stem if re.match(r"[^\W\d]", stem) else "events")
        self.key = quoted(roles.keys[0].name)

    def introduction(self, kind: str) -> str:
        """The comment at the top."""
        guesses = "\n".join(f"--   {guess}" for guess in self.roles.guesses)
        return f"-- A draft: {kind} over {self.source}. Guessed from the first {self.sample.n_rows:,} rows:\n{guesses}"

    def stream(self, values: list[Column], *clauses: str, space: bool = False, comment: str = "") -> str:
        """CREATE STREAM for the file."""
        roles = self.roles
        listed = ", ".join(self._declared(column) for column in values[:_MAX_VALUES])
        lines = [
            f"CREATE STREAM {self.name}",
            f"  KEY ({', '.join(map(self._declared, roles.keys))})",
            *([f"  VALUE ({listed})"] if listed else []),
            f"  TIME {self._time()}",
        ]
        if space and roles.space:
            x, y = (quoted(column.name) for column in roles.space)
            lines.append(f"  SPACE ({x}, {y})" + (" GEODESIC" if roles.geodesic else ""))
        lines += [f"  {clause}" for clause in clauses]
        options = ", ".join(f"{name} = {string(value)}" for name, value in self.sample.options.items())
        lines.append(f"  FROM {string(self.source)}" + (f" OPTIONS ({options})" if options else "") + ";")
        return "\n".join([*(f"-- {line}" for line in comment.splitlines()), *lines])

    def uncertain(self) -> list[str]:
        """MODEL, if the rows have a probability."""
        column = self.roles.probability
        if column is None:
            return []
        model = "INDEPENDENT" if self.roles.previous is None else "MARKOV"
        return [f"MODEL {model}" + ("" if column.name == "p" else f" PROBABILITY {quoted(column.name)}")]

    def _time(self) -> str:
        time, end = self.roles.time, self.roles.end
        if end is not None and self.has_durations:
            return f"({quoted(time.name)}, {quoted(end.name)}) {time.type.value}"
        if time.pattern is not None:
            return f"{quoted(time.name)} FORMAT {string(time.pattern)}"
        return f"{quoted(time.name)} {time.type.value}"

    def _declared(self, column: Column) -> str:
        return f"{quoted(column.name)} {column.type.value}" if column.pattern is None else quoted(column.name)


def _pattern(writer: _Writer) -> list[str]:
    category = _category(writer, "PATTERN needs a value that is a name, such as a room")
    first, then = writer.constants.frequent_change(category)
    if writer.roles.probability is None:
        comment = (
            "The rows have no probability, so they are certain. If they are readings of sensors, `anabranch fit hmm`\n"
            "learns a model of the true values, and INFERRED FROM makes a stream with probabilities."
        )
    else:
        comment = "One row per value that may be true at an instant, with its probability."
    variables = ", ".join(f"k{number}" for number, _ in enumerate(writer.roles.keys))
    query = (
        f"-- From one value to the next, for each key.\n"
        f"CREATE QUERY moved AS\n"
        f"  PATTERN {writer.name}({variables}, {first}) THEN {writer.name}({variables}, {then})\n"
        f"  GROUP BY {variables}\n"
        f"  THRESHOLD 0.5;"
    )
    return [writer.stream([category], *writer.uncertain(), comment=comment), query]


def _sequence(writer: _Writer) -> list[str]:
    category = _category(writer, "SEQUENCE needs a value that is a name, such as a reader or an activity")
    x, y, z = writer.constants.frequent_triple(category)
    name, delay = quoted(category.name), writer.constants.typical_gap()
    same = " AND ".join(
        f"x.{key} = y.{key} AND y.{key} = z.{key}" for key in (quoted(column.name) for column in writer.roles.keys)
    )
    query = (
        f"-- Three events of a key in this order, where the reading of the second may be missing. MISS is the chance\n"
        f"-- that a reading is lost, DELAY the time since the event before: `anabranch fit delays` learns both.\n"
        f"CREATE QUERY in_order AS\n"
        f"  SEQUENCE (x, y, z) FROM {writer.name}\n"
        f"  WHERE x.{name} = {x} AND y.{name} = {y} AND z.{name} = {z}\n"
        f"    AND {same}\n"
        f"  MISS y 0.1\n"
        f"  DELAY x EXPONENTIAL({delay}), y EXPONENTIAL({delay})\n"
        f"  WITHIN {writer.constants.typical_gap(10)}\n"
        f"  EMIT BEST\n"
        f"  THRESHOLD 0.1;"
    )
    return [writer.stream([category], *writer.uncertain(), comment="Events that happened; some may be missing."), query]


def _relate(writer: _Writer) -> list[str]:
    roles, key = writer.roles, writer.key
    if roles.end is not None or roles.order is not None:
        order = [f"ORDER {quoted(roles.order.name)}"] if roles.order is not None else []
        horizon = writer.constants.horizon()
        comment = (
            "One row per segment; NULL is a lost end." if roles.end is not None
            else "Odd events of a key open a segment, even ones close it; NULL is a lost time."
        )  # fmt: skip
        intervals = writer.name
        blocks = [writer.stream([], "MODEL INTERVALS", *order, f"HORIZON {horizon}", comment=comment)]
    else:
        value, condition = writer.constants.state()
        intervals = quoted("stays")
        blocks = [
            writer.stream([value], comment="Measurements of each key."),
            f"-- A segment lasts while the condition holds. After a longer silence its end is not known.\n"
            f"CREATE STREAM {intervals}\n"
            f"  KEY ({', '.join(quoted(column.name) for column in roles.keys)}) TIME {quoted(roles.time.name)}\n"
            f"  INTERVALS FROM {writer.name} WHILE {condition} SILENCE {writer.constants.typical_gap(10)};",
        ]
    query = (
        f"-- Pairs of keys that had a segment at the same time.\n"
        f"CREATE QUERY together AS\n"
        f"  RELATE SOME a INTERSECTS SOME b FROM {intervals} AS a, {intervals} AS b\n"
        f"  WHERE a.{key} < b.{key}\n"
        f"  THRESHOLD 0.5;"
    )
    return [*blocks, query]


def _monitor(writer: _Writer) -> list[str]:
    roles, key = writer.roles, writer.key
    located = list(roles.space or ())
    measured = located or roles.numbers[:1]
    if not measured:
        raise AnabranchError("MONITOR needs a column of numbers, such as a position or a temperature")
    names = [quoted(column.name) for column in measured]
    errors = ", ".join(f"{quoted(column.name)} = {writer.constants.spread(column)}" for column in measured)
    period = writer.constants.typical_gap(3)
    predicted = (
        f"-- From its last report on, a value is predicted by its rate. ERROR is how far the truth may be from it:\n"
        f"-- `anabranch fit errors` learns it from the data. PERIOD is the longest silence of a sensor.\n"
        f"CREATE STREAM predicted\n"
        f"  KEY ({', '.join(quoted(column.name) for column in roles.keys)}) VALUE ({', '.join(names)})"
        f" TIME {quoted(roles.time.name)}\n"
        f"  PREDICTED FROM {writer.name} ERROR ({errors}) PERIOD {period};"
    )
    if located:
        near = _AND.join(
            f"ABS(a.{name} - b.{name}) <= {writer.constants.spread(column, 4)}"
            for name, column in zip(names, measured, strict=True)
        )
        query = (
            f"-- Pairs that may be near each other.\n"
            f"CREATE QUERY near AS\n"
            f"  MONITOR a, b FROM predicted AS a, predicted AS b\n"
            f"  WHERE {near}\n    AND a.{key} < b.{key}\n"
            f"  SEMANTICS MAY\n"
            f"  THRESHOLD 0.5;"
        )
    else:
        query = (
            f"-- When a value may be high.\n"
            f"CREATE QUERY high AS\n"
            f"  MONITOR a FROM predicted AS a\n"
            f"  WHERE a.{names[0]} > {writer.constants.high(measured[0])}\n"
            f"  SEMANTICS MAY\n"
            f"  THRESHOLD 0.5;"
        )
    return [writer.stream(measured, comment="Measurements of each key."), predicted, query]


def _constrain(writer: _Writer) -> list[str]:
    roles, key = writer.roles, writer.key
    conditions = [f"u.{key} < v.{key}", f"SPAN(u, v) <= {writer.constants.typical_gap()}"]
    if roles.space is not None:
        conditions.insert(1, f"DISTANCE(u, v) <= {writer.constants.near(roles.space)}")
    elif roles.numbers:
        name = quoted(roles.numbers[0].name)
        high = writer.constants.high(roles.numbers[0])
        conditions = [f"u.{name} > {high} AND v.{name} > {high}", *conditions]
    query = (
        f"-- Events of two keys, near each other in {'space and ' if roles.space else ''}time.\n"
        f"CREATE QUERY together AS\n"
        f"  CONSTRAIN u, v FROM {writer.name}\n"
        f"  WHERE {_AND.join(conditions)};"
    )
    return [writer.stream(roles.values, *writer.uncertain(), space=True, comment="Events in space and time."), query]


def _category(writer: _Writer, needed: str) -> Column:
    """The value of the query: the first one that changes from row to row of a key."""
    categories = writer.roles.categories
    if not categories:
        raise AnabranchError(f"{needed}; no column has 2 to 200 different names: choose one with --value")
    chosen = next((column for column in categories if writer.constants.changes(column)), None)
    if chosen is None:
        chosen = categories[0]
        writer.roles.guesses.append(f"no {chosen.name} changes within a key, so try another --key or --value")
    writer.roles.guesses.append(f"{chosen.name} is the value" + _others([c for c in categories if c is not chosen]))
    return chosen


def _others(columns: list[Column]) -> str:
    return f" (others: {', '.join(column.name for column in columns)})" if columns else ""


_KINDS: dict[str, Callable[[_Writer], list[str]]] = {
    "PATTERN": _pattern,
    "SEQUENCE": _sequence,
    "RELATE": _relate,
    "MONITOR": _monitor,
    "CONSTRAIN": _constrain,
}
