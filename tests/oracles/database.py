"""CONSTRAIN asked of a database: SQLite, held against the oracle."""

from __future__ import annotations

import itertools
import math
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from anabranch.binding.typed import Constant, Member, Reference, Typed, walk
from anabranch.constrain.query import BoundConstrain
from anabranch.language.types import Type
from tests.cases import Case
from tests.oracles.constrain import RADIUS, geometry


class Database:
    """The same query as one SELECT: an alias for each event, and every condition written out for all it is asked of.

    Three-valued logic, comparisons and joins are SQLite's.
    """

    def __init__(self, query: BoundConstrain, case: Case) -> None:
        self.query = query
        self.case = case
        self.connection = sqlite3.connect(":memory:")
        self.connection.create_function("distance", 5, _distance)
        self.connection.create_function("within", 3, _within)
        self.aliases = {
            variable.name: [f"{variable.name}{number}" for number in range(variable.count)]
            for variable in query.variables
        }
        self.streams = {variable.name: variable.stream for variable in query.variables}
        for stream in query.streams:
            names = [column.name for column in stream.columns]
            # Without types, so that nothing is converted.
            self.connection.execute(f"CREATE TABLE {stream.name} ({', '.join(names)})")
            rows = {tuple(_plain(row[name]) for name in names) for row in case.rows[stream.name]}
            marks = ", ".join("?" * len(names))
            self.connection.executemany(f"INSERT INTO {stream.name} VALUES ({marks})", rows)
        for name, pairs_ in case.relations.items():
            self.connection.execute(f"CREATE TABLE {name} (a, b)")
            self.connection.executemany(f"INSERT INTO {name} VALUES (?, ?)", pairs_)

    def solutions(self) -> Counter[tuple[Any, ...]]:
        """For each solution and variable, the events as rows."""
        tables = [f"{self.streams[name].name} {alias}" for name, own in self.aliases.items() for alias in own]
        flat = [(name, alias) for name, own in self.aliases.items() for alias in own]
        wanted = ["1"]
        for (name, alias), (other, another) in itertools.combinations(flat, 2):
            if self.streams[name] is self.streams[other]:
                op = "<" if name == other else "<>"
                wanted.append(f"{alias}.rowid {op} {another}.rowid")
        for condition in self.query.conditions:
            wanted += [self.sql(condition, chosen) for chosen in self.instances(condition)]
        columns = [
            (name, f"{alias}.{column.name}") for name, alias in flat for column in self.streams[name].columns
        ]  # fmt: skip
        select = f"SELECT {', '.join(column for _, column in columns)} FROM {', '.join(tables)}"
        found: Counter[tuple[Any, ...]] = Counter()
        for row in self.connection.execute(f"{select} WHERE {' AND '.join(wanted)}"):
            values = iter(row)
            events = {
                name: frozenset(tuple(next(values) for _ in self.streams[name].columns) for _ in own)
                for name, own in self.aliases.items()
            }
            found[tuple(events.values())] += 1
        return found

    def instances(self, condition: Typed) -> Iterator[dict[tuple[str, int], str]]:
        """The aliases that the mentions of a condition stand for, in all ways."""
        places = {(node.owner, node.mention) for node in walk(condition) if isinstance(node, Reference)}
        owners = sorted({owner for owner, _ in places if owner is not None})
        # All choices for both mentions of everything, then those that are the same but for what is not mentioned.
        ways = [itertools.product(self.aliases[owner], repeat=2) for owner in owners]
        seen = set()
        for way in itertools.product(*ways):
            chosen = {
                (owner, mention): pair[mention - 1]
                for owner, pair in zip(owners, way, strict=True)
                for mention in (1, 2)
                if (owner, mention) in places
            }
            key = tuple(sorted(chosen.items()))
            if len(set(chosen.values())) == len(chosen) and key not in seen:
                seen.add(key)
                yield chosen

    def sql(self, tree: Typed, chosen: Mapping[tuple[str, int], str]) -> str:
        """A condition as text."""
        if isinstance(tree, Constant):
            return _literal(tree.value)
        if isinstance(tree, Reference):
            assert tree.owner is not None
            return f"{chosen[tree.owner, tree.mention]}.{tree.name}"
        if isinstance(tree, Member):
            a, b = (self.sql(argument, chosen) for argument in tree.arguments)
            found = f"EXISTS (SELECT 1 FROM {tree.relation.name} r WHERE r.a = {a} AND r.b = {b})"
            return f"CASE WHEN {a} IS NOT NULL AND {b} IS NOT NULL THEN {found} END"
        if tree.op in ("distance", "span", "within"):
            return self.function(tree.op, tree.arguments, chosen)
        parts = [self.sql(argument, chosen) for argument in tree.arguments]
        if tree.op == "is_null":
            return f"(({parts[0]}) IS NULL)"
        if len(parts) == 1:
            return f"({ {'not': 'NOT', 'negate': '-', 'abs': 'abs'}[tree.op] }({parts[0]}))"
        text = f" {tree.op.upper()} ".join(f"({part})" for part in parts)
        seconds = tree.op == "-" and tree.arguments[0].type is Type.TIMESTAMP
        return f"(({text}) / 1e6)" if seconds else f"({text})"

    def function(self, name: str, arguments: Sequence[Typed], chosen: Mapping[tuple[str, int], str]) -> str:
        """A function of one or two whole events."""
        whole = [each for each in arguments if isinstance(each, Reference)]
        streams = [self.streams[each.owner or ""] for each in whole]
        aliases = [chosen[each.owner or "", each.mention] for each in whole]
        if name == "span":
            difference = f"abs({aliases[0]}.t - {aliases[1]}.t)"
            return f"({difference} / 1e6)" if streams[0].time.type is Type.TIMESTAMP else difference
        axes = [
            f"{alias}.{axis}"
            for alias, stream in zip(aliases, streams, strict=True)
            for axis in stream.declaration.space or ()
        ]
        more = int(streams[0].declaration.geodesic) if name == "distance" else self.sql(arguments[1], chosen)
        return f"{name}({', '.join(axes)}, {more})"


def _distance(x: Any, y: Any, other_x: Any, other_y: Any, geodesic: int) -> float | None:
    """By Pythagoras; on the globe by the chord."""
    if None in (x, y, other_x, other_y):
        return None
    if not geodesic:
        return ((x - other_x) ** 2 + (y - other_y) ** 2) ** 0.5
    chord = math.dist(_on_sphere(x, y), _on_sphere(other_x, other_y))
    return 2 * RADIUS * math.asin(min(1, chord / 2))


def _on_sphere(lon: float, lat: float) -> tuple[float, float, float]:
    lon, lat = math.radians(lon), math.radians(lat)
    return math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)


def _within(x: Any, y: Any, text: str) -> bool | None:
    if x is None or y is None:
        return None
    area, point = geometry(text), geometry(f"POINT({x} {y})")
    assert area is not None
    assert point is not None
    return area.covers(point.points[0])


def _plain(value: Any) -> Any:
    """A value as SQLite has it: times are microseconds."""
    if not isinstance(value, datetime):
        return value
    return round((value - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)


def _literal(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    return f"'{value}'" if isinstance(value, str) else repr(value)


def as_rows(query: BoundConstrain, found: Sequence[Mapping[str, Any]]) -> Counter[tuple[Any, ...]]:
    """Solutions as the database gives them."""
    return Counter(
        tuple(
            frozenset(
                tuple(_plain(row[column.name]) for column in variable.stream.columns)
                for row in ((solution[variable.label],) if variable.count == 1 else solution[variable.label])
            )
            for variable in query.variables
        )
        for solution in found
    )
