"""Which column is the time, the key, the probability, the location and the values: guessed from names and values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from anabranch.drafting.sample import Column, Sample
from anabranch.errors import AnabranchError
from anabranch.language.types import Type

_TIME_NAMES = ("t", "time", "timestamp", "datetime", "date_time", "event_time", "ts", "date", "when", "epoch", "second",
               "seconds")  # fmt: skip
_END_NAMES = ("t_to", "end", "end_time", "ended", "stop", "finish", "until", "to", "over")
_BEGIN_NAMES = ("t_from", "start", "start_time", "begin", "begun", "from", "since")
_PROBABILITY_NAMES = ("p", "prob", "probability", "confidence", "likelihood")
_KEY_NAME = re.compile(
    r"(^|_)(id|key|tag|name|user|person|device|sensor|vehicle|car|bus|van|truck|vessel|ship|mmsi|imo|aircraft|icao\d*|"
    r"callsign|buoy|station|case|customer|order|patient|machine|object|entity|asset|epc|serial|badge|sector)s?($|_)|\wid$",
    re.IGNORECASE,
)
#: Words at the end of a name that say how its values are written.
_UNITS = ("s", "ms", "us", "sec", "utc", "local", "deg", "m")

_COORDINATES = (("lon", "lat", True), ("lng", "lat", True), ("longitude", "latitude", True), ("x", "y", False))

#: A column of names has at most this many different ones; one of numbers that stand for names has fewer.
_MAX_CATEGORIES = 200
_MAX_NUMBERED = 20


@dataclass(slots=True)
class Roles:
    """The role of each column, and the sentences that say what was guessed."""

    time: Column
    keys: list[Column]
    values: list[Column]
    end: Column | None = None
    probability: Column | None = None
    order: Column | None = None
    previous: Column | None = None
    space: tuple[Column, Column] | None = None
    geodesic: bool = False
    guesses: list[str] = field(default_factory=list)

    @property
    def categories(self) -> list[Column]:
        """The values that are names, or numbers that may stand for names; names come first."""
        most = {Type.STRING: _MAX_CATEGORIES, Type.BOOLEAN: 2, Type.INTEGER: _MAX_NUMBERED}
        usable = [column for column in self.values if 2 <= column.n_distinct <= most.get(column.type, 0)]
        return sorted(usable, key=lambda column: column.type is Type.INTEGER)

    @property
    def numbers(self) -> list[Column]:
        """The values that are measurements; decimals come first."""
        numeric = [column for column in self.values if column.type in (Type.INTEGER, Type.DOUBLE)]
        return sorted((c for c in numeric if c.n_distinct > 2), key=lambda column: column.type is Type.INTEGER)


def assign_roles(
    sample: Sample, time: str | None = None, keys: Iterable[str] = (), values: Iterable[str] = ()
) -> Roles:
    """The roles of the columns; `time`, `keys` and `values` are those that the user has named.

    Raises
    ------
    AnabranchError
        If there is no column for the time or the key, or no column of a given name.
    """
    rest = dict(sample.columns)
    named_keys, named_values = [_named(rest, name) for name in keys], [_named(rest, name) for name in values]
    for column in (*named_keys, *named_values):
        rest.pop(column.name, None)
    begin, end = _times(rest, time)
    roles = Roles(begin, named_keys, named_values, end)
    roles.guesses.append(f"{begin.name} is the time" + (f", until {end.name}" if end else ""))
    if begin.is_ambiguous:
        roles.guesses.append(f"{begin.name} has days before months; the values leave it open")
    _take_probability(roles, rest)
    _take_space(roles, rest)
    roles.order = _take(rest, "seq")
    if not roles.keys:
        roles.keys = [_key(rest)]
        roles.guesses.append(f"{roles.keys[0].name} is the key")
    _take_previous(roles, rest)
    roles.values = roles.values or list(rest.values())
    return roles


def _named(columns: Mapping[str, Column], name: str) -> Column:
    spelled = {column.lower(): column for column in columns}
    if name.lower() not in spelled:
        raise AnabranchError(f"there is no column {name}; the columns are {', '.join(columns)}")
    return columns[spelled[name.lower()]]


def _last_word(name: str) -> str:
    """The word of a name that says what it is.

    >>> [_last_word(name) for name in ("t_s", "vehicle.position.latitude", "Event Time")]
    ['t', 'latitude', 'time']
    """
    words = [word for word in re.split(r"[\W_]+", name.lower()) if word]
    if len(words) > 1 and words[-1] in _UNITS:
        words.pop()
    return words[-1] if words else ""


def _take(columns: dict[str, Column], *names: str) -> Column | None:
    spelled = {column.lower(): column for column in columns}
    found = next((spelled[name] for name in names if name in spelled), None)
    return columns.pop(found) if found else None


def _times(columns: dict[str, Column], name: str | None) -> tuple[Column, Column | None]:
    """The time, or the beginning and the end of what has a duration."""
    if name is not None:
        return columns.pop(_named(columns, name).name), None
    begin, end = _take(columns, *_BEGIN_NAMES), _take(columns, *_END_NAMES)
    if begin and end and begin.type is end.type and begin.type is not Type.STRING:
        return begin, end
    columns.update({column.name: column for column in (begin, end) if column})
    candidates = _time_candidates(columns)
    if not candidates:
        raise _no_time(columns)
    return columns.pop(candidates[0].name), None


def _time_candidates(columns: Mapping[str, Column]) -> list[Column]:
    """The columns that are times by their type, or else by their name."""
    typed = [column for column in columns.values() if column.type is Type.TIMESTAMP]
    known = [column for column in columns.values() if _last_word(column.name) in _TIME_NAMES and column.type.is_numeric]
    known.sort(key=lambda column: _TIME_NAMES.index(_last_word(column.name)))
    return typed or known


def _no_time(columns: Mapping[str, Column]) -> AnabranchError:
    return AnabranchError(f"no column looks like a time; name it with --time (the columns are {', '.join(columns)})")


def time_of(sample: Sample, name: str | None = None) -> Column:
    """The column with the time of a row: the named one, or the only one that looks like a time.

    A row with a duration happens at its end.

    Raises
    ------
    AnabranchError
        If there is no such column, or if several look like a time.
    """
    if name is not None:
        return _named(sample.columns, name)
    rest = dict(sample.columns)
    begin, end = _take(rest, *_BEGIN_NAMES), _take(rest, *_END_NAMES)
    if begin and end and begin.type is end.type and begin.type is not Type.STRING:
        return end
    candidates = _time_candidates(sample.columns)
    if not candidates:
        raise _no_time(sample.columns)
    if len(candidates) > 1:
        names = ", ".join(column.name for column in candidates)
        raise AnabranchError(f"several columns look like a time ({names}); name one with --time")
    return candidates[0]


def _take_probability(roles: Roles, columns: dict[str, Column]) -> None:
    column = _take(columns, *_PROBABILITY_NAMES)
    if column is None:
        return
    if column.type.is_numeric and column.values.dropna().between(0, 1).all():
        roles.probability = column
        roles.guesses.append(f"{column.name} is the probability of a row")
    else:
        columns[column.name] = column


def _take_previous(roles: Roles, columns: dict[str, Column]) -> None:
    """The value of a Markov stream, which also has a column `prev_<value>`."""
    for name in list(columns):
        previous = _take(columns, f"prev_{name.lower()}") if roles.probability is not None else None
        if previous is not None:
            roles.previous, roles.values = previous, [columns[name]]
            roles.guesses.append(f"{name} is a value, and {previous.name} the value before")
            return


def _take_space(roles: Roles, columns: dict[str, Column]) -> None:
    spelled = {_last_word(name): column for name, column in columns.items() if column.type.is_numeric}
    for x, y, geodesic in _COORDINATES:
        if x in spelled and y in spelled:
            roles.space, roles.geodesic = (spelled[x], spelled[y]), geodesic
            for column in roles.space:
                del columns[column.name]
            roles.guesses.append(f"{spelled[x].name}, {spelled[y].name} is the location")
            return


def _key(columns: dict[str, Column]) -> Column:
    """The column that says who or what a row is about: by its name, or the first one whose values repeat."""
    named = [column for column in columns.values() if _KEY_NAME.search(column.name)]
    repeated = [column for column in columns.values() if column.type in (Type.STRING, Type.INTEGER)]
    repeated = [column for column in repeated if 1 < column.n_distinct < len(column.values)] or repeated
    if not named and not repeated:
        raise AnabranchError(f"no column looks like a key; name it with --key (the columns are {', '.join(columns)})")
    return columns.pop((named or repeated)[0].name)
