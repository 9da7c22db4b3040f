"""What the SEQUENCE benchmarks run over: events of several kinds and keys, and queries about them.

Events come one a millisecond, each of a kind and a key of chance: the data on which other engines were measured. A
query asks for one kind after the other, with equal keys, within a window that is told as the number of events of a
key that it holds on average.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import inf
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from anabranch.columns.times import END
from anabranch.compiled import compiled
from anabranch.events.batch import Batch
from anabranch.sequence.job import SequenceJob
from anabranch.sequence.kernel.lists import make_lists
from anabranch.sequence.kernel.search import Found
from anabranch.sequence.kernel.search import search as find
from anabranch.sequence.matching import Matcher, Matches
from anabranch.sequence.programs import matrix_of
from anabranch.transport.operator import Outcome
from anabranch.transport.routing import route
from benchmarks.engines import make_job
from benchmarks.harness import interleaved

KINDS = "ABCDEFGH"

ROLES: Mapping[str, type] = {"variable": np.int64, "old": np.bool_}
"""The columns of roles that the operator of SEQUENCE keeps."""

MISS = 0.1
"""The chance that an event is lost, where events are."""

Rows = np.ndarray
"""Of each match the events of its positive components, -1 where one is missing."""


# ------------------------------------------------------------ events


@dataclass(frozen=True, slots=True)
class Load:
    """Events, one a millisecond, of keys and kinds of chance.

    Attributes
    ----------
    rare : the share of the first kind; None where all kinds are as frequent
    """

    events: int = 1_000_000
    keys: int = 1_000
    kinds: int = 4
    rare: float | None = None

    def table(self, seed: int) -> pa.Table:
        """The events: id, kind, t."""
        rng = np.random.default_rng(seed)
        ids = rng.integers(0, self.keys, self.events)
        numbers = rng.integers(0, self.kinds, self.events)
        if self.rare is not None:
            numbers = np.where(rng.random(self.events) < self.rare, 0, rng.integers(1, self.kinds, self.events))
        codes = pa.array(numbers, pa.int32())
        kinds = pa.DictionaryArray.from_arrays(codes, list(KINDS[: self.kinds])).cast(pa.string())
        return pa.table({"id": ids, "kind": kinds, "t": np.arange(self.events)})

    def window(self, of_key: float) -> int:
        """The milliseconds that hold so many events of a key on average."""
        return round(of_key * self.keys)

    def __str__(self) -> str:
        rare = "" if self.rare is None else f", {self.rare:.0%} of them A"
        return f"{self.events:,} events of {self.keys:,} keys and {self.kinds} kinds{rare}"


def write_csv(table: pa.Table, path: Path, header: bool = True) -> None:
    """The events as text, nothing of it in quotes."""
    with path.open("wb") as file:
        if header:
            file.write((",".join(table.column_names) + "\n").encode())
        pyarrow.csv.write_csv(table, file, pyarrow.csv.WriteOptions(include_header=False, quoting_style="none"))


# ------------------------------------------------------------ queries


@dataclass(frozen=True, slots=True)
class QueryShape:
    """One kind after the other, A, B, C and so on.

    Attributes
    ----------
    components : how many
    within : the window in milliseconds
    negative : whether the second must not happen
    threshold : the least score of what may be lost; None where nothing is
    hashed : whether keys are asked to be equal; else the same is asked so that no key is seen in it
    """

    components: int
    within: int
    negative: bool = False
    threshold: float | None = None
    hashed: bool = True

    def workbook(self, source: str = "") -> str:
        """The query, under the name `asked`."""
        names = [f"c{number}" for number in range(self.components)]
        signs = ["!" if self.negative and number == 1 else "" for number in range(self.components)]
        wanted = [f"{name}.kind = '{kind}'" for name, kind in zip(names, KINDS, strict=False)]
        # Equal keys are equal throughout; what is not seen to be an equality is asked of every two.
        pairs = zip(names, names[1:], strict=False) if self.hashed else combinations(names, 2)
        wanted += [self._alike(one, other) for one, other in pairs]
        return f"""
            CREATE STREAM events KEY (id INTEGER) VALUE (kind STRING) TIME t INTEGER{source};
            CREATE QUERY asked AS
              SEQUENCE ({", ".join(sign + name for sign, name in zip(signs, names, strict=True))}) FROM events
              WHERE {" AND ".join(wanted)} {self._chances(names[:-1])} WITHIN {self.within};
            """

    def _alike(self, one: str, other: str) -> str:
        return f"{one}.id = {other}.id" if self.hashed else f"({one}.id <= {other}.id AND {one}.id >= {other}.id)"

    def _chances(self, names: list[str]) -> str:
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
    """One query over one table of events: what a worker does, stage by stage."""

    def __init__(self, query: QueryShape, table: pa.Table) -> None:
        self.query, self.table = query, table
        self.job: SequenceJob = make_job(query.workbook(), "asked", {})
        self.analysis, (self.search,) = self.job.analyses[0], self.job.searches[0]
        self.packets = self.route()
        self.batch = Batch.from_packet(0, self.packets[0][1], self.job.layouts, ROLES)

    def route(self) -> list[tuple[int, bytes]]:
        """From rows to packets, of which there is one."""
        return route(self.table, 0, self.job, 1).packets

    def step(self) -> Outcome:
        """From packets to answers."""
        return self.job.operator().step(self.packets, END, ended=True)

    def matches(self, bounded: bool = True) -> Matches:
        """From events with roles to matches: groups by keys, lists, and the search."""
        matcher = Matcher(self.batch, {}, inf)
        alive = np.zeros(len(matcher.roles), np.bool_)
        return matcher.matches(self.analysis, self.search, np.arange(len(matcher.roles)), 0, alive, bounded)

    def kernel(self, bounded: bool = True) -> Found:
        """The kernel alone: lists, and the search."""
        component, event, group, n_groups, t, fresh, demands, keyed = self._arrays
        lists = make_lists(component, event, group, np.arange(len(event)), keyed, n_groups)
        return find(self.search.scores, demands, lists, t, fresh, bounded, False, False)

    @cached_property
    def _arrays(self) -> tuple:
        """What the kernel is given."""
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
            fresh,
            self.search.demands._replace(matrix=matrix),
            keyed,
        )


def seconds_of(contestants: Mapping[str, object], rounds: int) -> dict[str, float]:
    """Processor seconds of each; they take turns, and the median counts. The first turn of all is not counted."""
    for run in contestants.values():
        run()
    return interleaved(contestants, rounds, time.process_time)


# ------------------------------------------------------------ other ways to the same answers


def in_order(events: Rows) -> Rows:
    """Matches in an order of their own."""
    return events[np.lexsort(events.T)] if len(events) else events


def count_matches(table: pa.Table, query: QueryShape) -> int:
    """How many matches there are where nothing is lost, counted by looking at every choice of events."""
    ids, kinds, t = _sorted(table)
    return int(_count(ids, kinds, t, query.components, query.within, query.negative))


def count_next(table: pa.Table, within: int) -> dict[str, int]:
    """How many matches MATCH_RECOGNIZE has: for each A the B and the C that come next, in less than the window.

    `strict`: nothing of the same key lies between; `skip`: other kinds may; `negated`: C, and no B before it.
    """
    ids, kinds, t = _sorted(table)
    size = len(ids)
    padded = np.append(ids, [-1, -1, -1])
    times = np.append(t, [0, 0, 0])

    def following(kind: int) -> np.ndarray:
        """The place of the next event of a kind, from each place on."""
        place = np.where(kinds == kind, np.arange(size), size)
        return np.append(np.minimum.accumulate(place[::-1])[::-1], [size, size])

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
    """Keys, kinds as numbers, and times, by key and then by time."""
    ids, t = table["id"].to_numpy(), table["t"].to_numpy()
    kinds = np.asarray(table["kind"].combine_chunks().cast(pa.binary())).astype("S1").view(np.uint8) - ord("A")
    order = np.lexsort((t, ids))
    return ids[order], kinds[order].astype(np.int64), t[order]


@compiled
def _count(ids: np.ndarray, kinds: np.ndarray, t: np.ndarray, n: int, within: int, negative: bool) -> int:
    """From every event of the first kind on, how many ways there are to each event of the following kinds."""
    total = 0
    for first in range(len(ids)):
        if kinds[first] != 0:
            continue
        ways = np.zeros(n, np.int64)
        ways[0] = 1
        place = first + 1
        while place < len(ids) and ids[place] == ids[first] and t[place] - t[first] <= within:
            kind = kinds[place]
            if negative and kind == 1:
                break
            if kind == n - 1:
                total += ways[0] if negative else ways[kind - 1]
            elif 0 < kind < n - 1:
                ways[kind] += ways[kind - 1]
            place += 1
    return total


# ------------------------------------------------------------ a shop, and a longer way


READS = "CREATE STREAM reads KEY (tag STRING) VALUE (reader STRING) TIME t TIMESTAMP;"

LONG_WAY = """
    CREATE QUERY way AS
      SEQUENCE (x, y, w, z) FROM reads
      WHERE x.reader = 'shelf' AND y.reader = 'scales' AND w.reader = 'checkout' AND z.reader = 'exit'
        AND x.tag = y.tag AND y.tag = w.tag AND w.tag = z.tag
      MISS y {scales}, w {checkout}
      DELAY y EXPONENTIAL({weighed} MINUTES), w EXPONENTIAL({paid} MINUTES)
      WITHIN {longest} MINUTES
      SCORING POSTERIOR
      THRESHOLD 0.5;
    """


@dataclass(frozen=True, slots=True)
class Scored:
    """Answers about items: who they are about, what is claimed, and whether each event was read (a column each)."""

    tags: np.ndarray
    probability: np.ndarray
    is_read: np.ndarray


def ask_shop(reads: pa.Table, workbook: str, query: str) -> Scored:
    """The answers of a query about a shop; its workbook may name files, which are not looked at."""
    text = re.sub(r"CREATE STREAM reads.*?;", READS, workbook, count=1, flags=re.DOTALL)
    job: SequenceJob = make_job(text, query, {})
    answers = job.operator().step(route(reads, 0, job, 1).packets, END, ended=True).answers
    events = answers["events_0"].combine_chunks()
    wide = len(job.analyses[0].positives)
    is_read = events.flatten().is_valid().to_numpy(zero_copy_only=False).reshape(-1, wide)
    tags = pc.struct_field(pc.list_element(events, wide - 1), "tag")  # the last is never missing
    return Scored(tags.to_numpy(zero_copy_only=False), answers["probability"].to_numpy(), is_read)


def at_threshold(workbook: str, threshold: float) -> str:
    """The same queries with another threshold."""
    return re.sub(r"THRESHOLD [0-9.e-]+", f"THRESHOLD {threshold:g}", workbook)


def scored_jointly(workbook: str) -> str:
    """The same queries with the paper's score."""
    return workbook.replace("SCORING POSTERIOR", "SCORING JOINT")


def deterministic(workbook: str) -> str:
    """The same queries to an engine that believes that everything is read."""
    return re.sub(r"^ *(MISS|DELAY|SCORING|THRESHOLD 0\.5(?=;)).*?$", _nothing, workbook, flags=re.MULTILINE)


def _nothing(line: re.Match[str]) -> str:
    return ";" if line.group().endswith(";") else ""


@dataclass(frozen=True, slots=True)
class LongWay:
    """Items that are weighed and then paid for, if they do not leave before: two things that may not be read.

    Attributes
    ----------
    weighed, paid : the mean delays in minutes, each after what goes before
    scales, checkout : the chances that a reading is lost
    """

    items: int
    weighed: float = 10.0
    paid: float = 20.0
    longest: float = 90.0
    scales: float = 0.3
    checkout: float = 0.5

    def draw(self, seed: int) -> tuple[pa.Table, np.ndarray]:
        """What was read, and of each item (tags are their numbers) whether it was paid for."""
        rng = np.random.default_rng(seed)
        stay = rng.uniform(0, self.longest, self.items)
        weighed = rng.exponential(self.weighed, self.items)
        paid = weighed + rng.exponential(self.paid, self.items)
        taken = np.sort(rng.uniform(0, 60.0 * 24, self.items))
        times = taken[:, None] + np.stack([np.zeros_like(stay), weighed, paid, stay], axis=1)
        is_read = np.stack([stay >= 0, weighed < stay, paid < stay, stay >= 0], axis=1)
        is_read &= rng.random(is_read.shape) >= (0, self.scales, self.checkout, 0)
        item, what = np.nonzero(is_read)
        t = (60e6 * times[item, what]).astype(np.int64)
        order = np.argsort(t, kind="stable")
        readers = pa.DictionaryArray.from_arrays(pa.array(what[order]), ["shelf", "scales", "checkout", "exit"])
        columns = {
            "tag": pa.array(item[order]).cast(pa.string()),
            "reader": readers.cast(pa.string()),
            "t": pa.array(t[order]).cast(pa.timestamp("us", "UTC")),
        }
        return pa.table(columns), paid < stay

    def workbook(self) -> str:
        """The query whether an item was weighed and paid for."""
        return READS + LONG_WAY.format(**{name: getattr(self, name) for name in self.__slots__})
