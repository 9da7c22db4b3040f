"""The workloads of the SEQUENCE speed benchmarks: events of several kinds and keys, and queries over them.

There is one event per millisecond, with a random kind and key: other engines were measured on the same data. A query
is a sequence of kinds with equal keys, within a window whose size is given as the mean number of events of a key in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import inf
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from anabranch.compiled import compiled
from anabranch.events.batch import Batch
from anabranch.sequence.job import SequenceJob
from anabranch.sequence.kernel.lists import make_lists
from anabranch.sequence.kernel.search import SearchResult
from anabranch.sequence.kernel.search import search as find
from anabranch.sequence.matching import Matcher, Matches
from anabranch.sequence.programs import matrix_of
from anabranch.transport.limits import MAX_ANSWERS, AnswerLimit
from anabranch.transport.operator import Outcome
from benchmarks.engines import make_job, packets_of, step_to_end

KINDS = "ABCDEFGH"

QUERY = "in_order"
"""The name of the query of a `QueryShape`."""

ROLES: Mapping[str, type] = {"variable": np.int64, "old": np.bool_}
"""The columns of roles that the SEQUENCE operator keeps."""

MISS = 0.1
"""The probability that an event is lost, in the queries with losses."""

NOTHING_ANSWERED = np.zeros((0, 0), np.bool_)
"""The first events of earlier matches, for EMIT NEXT, which no query has."""

Rows = np.ndarray
"""The events of the positive components of each match, one row per match; -1 for a missing event."""


# ------------------------------------------------------------ events


@dataclass(frozen=True, slots=True)
class Load:
    """Events, one per millisecond, with random keys and kinds.

    Attributes
    ----------
    rare : the share of the first kind; None if all kinds are equally frequent
    """

    events: int = 1_000_000
    keys: int = 1_000
    kinds: int = 4
    rare: float | None = None

    def table(self, seed: int) -> pa.Table:
        """Return the events: id, kind, t."""
        rng = np.random.default_rng(seed)
        ids = rng.integers(0, self.keys, self.events)
        numbers = rng.integers(0, self.kinds, self.events)
        if self.rare is not None:
            numbers = np.where(rng.random(self.events) < self.rare, 0, rng.integers(1, self.kinds, self.events))
        codes = pa.array(numbers, pa.int32())
        kinds = pa.DictionaryArray.from_arrays(codes, list(KINDS[: self.kinds])).cast(pa.string())
        return pa.table({"id": ids, "kind": kinds, "t": np.arange(self.events)})

    def window(self, events_per_key: float) -> int:
        """Return the window in milliseconds in which a key has this mean number of events."""
        return round(events_per_key * self.keys)

    def __str__(self) -> str:
        rare = "" if self.rare is None else f", {self.rare:.0%} of them A"
        return f"{self.events:,} events of {self.keys:,} keys and {self.kinds} kinds{rare}"


def write_csv(table: pa.Table, path: Path, header: bool = True) -> None:
    """Write the events as CSV without quotes."""
    with path.open("wb") as file:
        if header:
            file.write((",".join(table.column_names) + "\n").encode())
        pyarrow.csv.write_csv(table, file, pyarrow.csv.WriteOptions(include_header=False, quoting_style="none"))


# ------------------------------------------------------------ queries


@dataclass(frozen=True, slots=True)
class QueryShape:
    """A query for one kind after the other: A, B, C and so on.

    Attributes
    ----------
    components : the number of kinds
    within : the window in milliseconds
    negative : whether the second kind must not occur
    threshold : the least score of matches with lost events; None if no event may be lost
    hashed : whether equal keys are written as equalities, which the planner uses; else as two inequalities
    """

    components: int
    within: int
    negative: bool = False
    threshold: float | None = None
    hashed: bool = True

    def workbook(self, source: str = "") -> str:
        """Return a workbook with the query."""
        names = [f"c{number}" for number in range(self.components)]
        signs = ["!" if self.negative and number == 1 else "" for number in range(self.components)]
        conditions = [f"{name}.kind = '{kind}'" for name, kind in zip(names, KINDS, strict=False)]
        # Equality is transitive, so adjacent pairs are enough; the inequalities are stated for every pair.
        pairs = zip(names, names[1:], strict=False) if self.hashed else combinations(names, 2)
        conditions += [self._equal_keys(one, other) for one, other in pairs]
        return f"""
            CREATE STREAM events KEY (id INTEGER) VALUE (kind STRING) TIME t INTEGER{source};
            CREATE QUERY {QUERY} AS
              SEQUENCE ({", ".join(sign + name for sign, name in zip(signs, names, strict=True))}) FROM events
              WHERE {" AND ".join(conditions)} {self._losses(names[:-1])} WITHIN {self.within};
            """

    def _equal_keys(self, one: str, other: str) -> str:
        return f"{one}.id = {other}.id" if self.hashed else f"({one}.id <= {other}.id AND {one}.id >= {other}.id)"

    def _losses(self, names: list[str]) -> str:
        if self.threshold is None:
            return ""
        miss = ", ".join(f"{name} {MISS}" for name in names)
        laws = [f"UNIFORM(0, {self.within})"] + [f"EXPONENTIAL({self.within / 5:g})"] * (len(names) - 1)
        delay = ", ".join(f"{name} {law}" for name, law in zip(names, laws, strict=True))
        return f"MISS {miss} DELAY {delay} THRESHOLD {self.threshold}"

    def __str__(self) -> str:
        kinds = [("!" if self.negative and n == 1 else "") + KINDS[n] for n in range(self.components)]
        return f"({', '.join(kinds)})"


# ------------------------------------------------------------ in this process


class InProcess:
    """One query over one table of events: the stages of a worker, each callable alone."""

    def __init__(self, query: QueryShape, table: pa.Table) -> None:
        self.query, self.table = query, table
        self.job: SequenceJob = make_job(query.workbook(), QUERY)
        self.analysis, (self.search,) = self.job.spec.analyses[0], self.job.spec.searches[0]
        self.packets = self.route()
        self.batch = Batch.from_packet(0, self.packets[0][1], self.job.layouts, ROLES)

    def route(self) -> list[tuple[int, bytes]]:
        """Return the one packet of the rows."""
        return packets_of(self.job, self.table)

    def step(self) -> Outcome:
        """Return the outcome of the operator over the packets."""
        return step_to_end(self.job, self.packets)

    def matches(self, bounded: bool = True) -> Matches:
        """Return the matches of events with roles: groups by key, lists, and the search."""
        matcher = Matcher(self.batch, {}, inf)
        alive = np.zeros(len(matcher.roles), np.bool_)
        roles = np.arange(len(matcher.roles))
        limit = AnswerLimit(QUERY, MAX_ANSWERS, "")
        return matcher.matches(self.analysis, self.search, roles, 0, alive, NOTHING_ANSWERED, limit, bounded)

    def kernel(self, bounded: bool = True) -> SearchResult:
        """Run the kernel alone: lists and the search."""
        component, event, group, n_groups, t, chances, fresh, conditions, keyed = self._arrays
        lists = make_lists(component, event, group, np.arange(len(event)), keyed, n_groups)
        return find(
            self.search.scores, conditions, lists, t, chances, fresh, NOTHING_ANSWERED, bounded, False, False,
            MAX_ANSWERS,
        )  # fmt: skip

    @cached_property
    def _arrays(self) -> tuple:
        """The input of the kernel."""
        matcher = Matcher(self.batch, {}, inf)
        component, event = matcher.roles.variable, matcher.roles.event
        group, n_groups = matcher._groups.of(self.analysis, component, event)
        matrix = matrix_of(self.batch, self.search.columns, {})
        keyed = np.full(self.query.components, self.query.hashed, np.bool_)
        fresh = np.ones(len(self.batch), np.bool_)
        return (
            component,
            event,
            group,
            n_groups,
            self.batch.t.copy(),
            matcher._chances,
            fresh,
            self.search.conditions._replace(matrix=matrix),
            keyed,
        )


# ------------------------------------------------------------ other ways to the same answers


def sorted_matches(events: Rows) -> Rows:
    """Return the matches in a canonical order."""
    return events[np.lexsort(events.T)] if len(events) else events


def count_matches(table: pa.Table, query: QueryShape) -> int:
    """Return the number of matches without losses, counted by brute force."""
    ids, kinds, t = _sorted(table)
    return int(_count(ids, kinds, t, query.components, query.within, query.negative))


def count_next(table: pa.Table, within: int) -> dict[str, int]:
    """Return the number of matches of MATCH_RECOGNIZE: for each A the next B and C, in less than the window.

    `strict`: no event of the same key is between them; `skip`: other kinds may be; `negated`: C without B before it.
    """
    ids, kinds, t = _sorted(table)
    size = len(ids)
    padded = np.append(ids, [-1, -1, -1])
    times = np.append(t, [0, 0, 0])

    def following(kind: int) -> np.ndarray:
        """Return, for each index, the index of the next event of a kind."""
        index = np.where(kinds == kind, np.arange(size), size)
        return np.append(np.minimum.accumulate(index[::-1])[::-1], [size, size])

    first = np.flatnonzero(kinds == 0)
    second, third = following(1), following(2)

    def within_window(last: np.ndarray) -> np.ndarray:
        return (padded[last] == ids[first]) & (times[last] - t[first] < within)

    b, c = second[first], third[first]
    after = third[np.minimum(b, size)]
    strict = (b == first + 1) & (after == first + 2) & (padded[first + 1] == ids[first])
    return {
        "strict": int((strict & within_window(after)).sum()),
        "skip": int(((padded[b] == ids[first]) & within_window(after)).sum()),
        "negated": int(((c < b) & within_window(c)).sum()),
    }


def _sorted(table: pa.Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return keys, kinds as numbers, and times, sorted by key and then by time."""
    ids, t = table["id"].to_numpy(), table["t"].to_numpy()
    kinds = np.asarray(table["kind"].combine_chunks().cast(pa.binary())).astype("S1").view(np.uint8) - ord("A")
    order = np.lexsort((t, ids))
    return ids[order], kinds[order].astype(np.int64), t[order]


@compiled
def _count(ids: np.ndarray, kinds: np.ndarray, t: np.ndarray, n: int, within: int, negative: bool) -> int:
    """Count, from every event of the first kind, the ways to reach each event of the following kinds."""
    total = 0
    for first in range(len(ids)):
        if kinds[first] != 0:
            continue
        ways = np.zeros(n, np.int64)
        ways[0] = 1
        i = first + 1
        while i < len(ids) and ids[i] == ids[first] and t[i] - t[first] <= within:
            kind = kinds[i]
            if negative and kind == 1:
                break
            if kind == n - 1:
                total += ways[0] if negative else ways[kind - 1]
            elif 0 < kind < n - 1:
                ways[kind] += ways[kind - 1]
            i += 1
    return total
