"""Polars: lazy frames over the file."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
from protocol import answer

KIND, T, ID = pl.col("kind"), pl.col("t"), pl.col("id")


def following(kind: str, value: pl.Expr) -> pl.Expr:
    """Return the value of the next event of a kind, of the same id."""
    return pl.when(KIND == kind).then(value).backward_fill().shift(-1).over("id")


def next_match(events: pl.LazyFrame, within: int) -> pl.LazyFrame:
    """Return for each A the next B, and the next C after it."""
    with_c = events.sort("id", "t").with_columns(c=following("C", T))
    with_b = with_c.with_columns(last_t=following("B", pl.col("c")))
    return with_b.filter((KIND == "A") & (pl.col("last_t") - T < within)).rename({"t": "first_t"})


def next_without(events: pl.LazyFrame, within: int) -> pl.LazyFrame:
    """Return for each A the next C, if there is no B before it."""
    both = events.sort("id", "t").with_columns(b=following("B", T), last_t=following("C", T))
    is_first = pl.col("b").is_null() | (pl.col("last_t") < pl.col("b"))
    return both.filter((KIND == "A") & is_first & (pl.col("last_t") - T < within)).rename({"t": "first_t"})


def all_matches(events: pl.LazyFrame, within: int) -> pl.LazyFrame:
    """Return every A, B and C in order."""
    a, b, c = (events.filter(KIND == kind).select("id", t=T) for kind in "ABC")
    pairs = a.rename({"t": "first_t"}).join(b.rename({"t": "b_t"}), on="id")
    pairs = pairs.filter((pl.col("b_t") > pl.col("first_t")) & (pl.col("b_t") - pl.col("first_t") <= within))
    triples = pairs.join(c.rename({"t": "last_t"}), on="id")
    return triples.filter(
        (pl.col("last_t") > pl.col("b_t")) & (pl.col("last_t") - pl.col("first_t") <= within)
    )  # fmt: skip


def sums(matches: pl.LazyFrame) -> pl.LazyFrame:
    """Return the count, and sums of the columns."""
    columns = (ID, pl.col("first_t"), pl.col("last_t"), ID * pl.col("last_t"))
    return matches.select(pl.len().alias("n"), *(value.sum().alias(f"s{n}") for n, value in enumerate(columns)))


def intersecting(events: pl.LazyFrame, at_least: int) -> pl.LazyFrame:
    """Return the pairs of which at least some segments of one intersect a segment of the other."""
    ordered = events.sort("pair", "side", "seq").with_columns(finish=T.shift(-1).over("pair", "side"))
    segments = ordered.filter(pl.col("seq") % 2 == 1).select("pair", "side", "seq", "finish", start=T)
    one, other = (segments.filter(pl.col("side") == side) for side in "ab")
    both = one.join(other, on="pair", suffix="_b")
    overlapping = both.filter((pl.col("start") < pl.col("finish_b")) & (pl.col("start_b") < pl.col("finish")))
    counts = overlapping.group_by("pair").agg(pl.col("seq").n_unique().alias("segments"))
    found = counts.filter(pl.col("segments") >= at_least)
    return found.select(pl.len().alias("n"), pl.col("pair").sum().alias("s"))


SOLUTIONS = {
    "next": lambda events, request: sums(next_match(events, request["within"])),
    "negated": lambda events, request: sums(next_without(events, request["within"])),
    "matches": lambda events, request: sums(all_matches(events, request["within"])),
    "intervals": lambda events, request: intersecting(events, request["at_least"]),
}


def make(request: dict) -> Callable[[], list[float]]:
    """Return a function that solves the task of a request."""

    def run() -> list[float]:
        scan = pl.scan_csv if request["path"].endswith(".csv") else pl.scan_parquet
        return list(SOLUTIONS[request["task"]](scan(request["path"]), request).collect().row(0))

    return run


answer(make)
