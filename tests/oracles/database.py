"""CONSTRAIN queries in SQLite, to check the oracle."""

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
    """A query as one SELECT: one alias per event, and every condition written out for all events it applies to.

    Three-valued logic, comparisons and joins are those of SQLite.
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
            # Columns without types, so that no value is converted.
            self.connection.execute(f"CREATE TABLE {stream.name} ({', '.join(names)})")
            rows = {tuple(_plain(row[name]) for name in names) for row in case.rows[stream.name]}
            placeholders = ", ".join("?" * len(names))
            self.connection.executemany(f"INSERT INTO {stream.name} VALUES ({placeholders})", rows)
        for name, relation_rows in case.relations.items():
            self.connection.execute(f"CREATE TABLE {name} (a, b)")
            self.connection.executemany(f"INSERT INTO {name} VALUES (?, ?)", relation_rows)

    def solutions(self) -> Counter[tuple[Any, ...]]:
        """The solutions: for each variable, its events as rows; with the number of times each solution occurs."""
        flat = [(name, alias) for name, aliases in self.aliases.items() for alias in aliases]
        tables = [f"{self.streams[name].name} {alias}" for name, alias in flat]
        conditions = ["1"]
        for (name, alias), (other_name, other_alias) in itertools.combinations(flat, 2):
            if self.streams[name] is self.streams[other_name]:
                op = "<" if name == other_name else "<>"
                conditions.append(f"{alias}.rowid {op} {other_alias}.rowid")
        for condition in self.query.conditions:
            conditions += [self.sql(condition, chosen) for chosen in self.instances(condition)]
        columns = [
            (name, f"{alias}.{column.name}") for name, alias in flat for column in self.streams[name].columns
        ]  # fmt: skip
        select = f"SELECT {', '.join(column for _, column in columns)} FROM {', '.join(tables)}"
        solutions: Counter[tuple[Any, ...]] = Counter()
        for row in self.connection.execute(f"{select} WHERE {' AND '.join(conditions)}"):
            values = iter(row)
            events = {
                name: frozenset(tuple(next(values) for _ in self.streams[name].columns) for _ in aliases)
                for name, aliases in self.aliases.items()
            }
            solutions[tuple(events.values())] += 1
        return solutions

    def instances(self, condition: Typed) -> Iterator[dict[tuple[str, int], str]]:
        """All assignments of different aliases to the mentions of variables in a condition."""
        mentions = {(node.owner, node.mention) for node in walk(condition) if isinstance(node, Reference)}
        owners = sorted({owner for owner, _ in mentions if owner is not None})
        # All pairs of aliases for both mentions of each variable; mentions that do not occur are then dropped.
        pairs_of_owners = [itertools.product(self.aliases[owner], repeat=2) for owner in owners]
        seen = set()
        for pairs in itertools.product(*pairs_of_owners):
            chosen = {
                (owner, mention): pair[mention - 1]
                for owner, pair in zip(owners, pairs, strict=True)
                for mention in (1, 2)
                if (owner, mention) in mentions
            }
            key = tuple(sorted(chosen.items()))
            if len(set(chosen.values())) == len(chosen) and key not in seen:
                seen.add(key)
                yield chosen

    def sql(self, tree: Typed, chosen: Mapping[tuple[str, int], str]) -> str:
        """A condition as SQL, with the chosen aliases."""
        if isinstance(tree, Constant):
            return _literal(tree.value)
        if isinstance(tree, Reference):
            assert tree.owner is not None
            return f"{chosen[tree.owner, tree.mention]}.{tree.name}"
        if isinstance(tree, Member):
            a, b = (self.sql(argument, chosen) for argument in tree.arguments)
            exists = f"EXISTS (SELECT 1 FROM {tree.relation.name} r WHERE r.a = {a} AND r.b = {b})"
            return f"CASE WHEN {a} IS NOT NULL AND {b} IS NOT NULL THEN {exists} END"
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
        """A function of one or two events as SQL."""
        events = [argument for argument in arguments if isinstance(argument, Reference)]
        streams = [self.streams[event.owner or ""] for event in events]
        aliases = [chosen[event.owner or "", event.mention] for event in events]
        if name == "span":
            difference = f"abs({aliases[0]}.t - {aliases[1]}.t)"
            return f"({difference} / 1e6)" if streams[0].time.type is Type.TIMESTAMP else difference
        axes = [
            f"{alias}.{axis}"
            for alias, stream in zip(aliases, streams, strict=True)
            for axis in stream.declaration.space or ()
        ]
        last = int(streams[0].declaration.geodesic) if name == "distance" else self.sql(arguments[1], chosen)
        return f"{name}({', '.join(axes)}, {last})"


def _distance(x: Any, y: Any, other_x: Any, other_y: Any, geodesic: int) -> float | None:
    """The Euclidean distance, or on the globe the great-circle distance, from the chord."""
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
    """A value as SQLite stores it: timestamps are microseconds."""
    if not isinstance(value, datetime):
        return value
    return round((value - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)


def _literal(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    return f"'{value}'" if isinstance(value, str) else repr(value)


def as_rows(query: BoundConstrain, solutions: Sequence[Mapping[str, Any]]) -> Counter[tuple[Any, ...]]:
    """Solutions of the oracle in the form of `Database.solutions`."""
    return Counter(
        tuple(
            frozenset(
                tuple(_plain(row[column.name]) for column in variable.stream.columns)
                for row in ((solution[variable.label],) if variable.count == 1 else solution[variable.label])
            )
            for variable in query.variables
        )
        for solution in solutions
    )
