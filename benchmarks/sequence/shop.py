"""Simulated shops for the SEQUENCE benchmark: how their queries are run, and items that are weighed and paid for."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.sequence.job import SequenceJob
from benchmarks.engines import make_job, packets_of, step_to_end

READS = "CREATE STREAM reads KEY (tag STRING) VALUE (reader STRING) TIME t TIMESTAMP;"

WEIGHED_AND_PAID = """
    CREATE QUERY weighed_and_paid AS
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
class ShopAnswers:
    """Answers about items: their tags, their probabilities, and whether each event was read (one column per event)."""

    tags: np.ndarray
    probability: np.ndarray
    is_read: np.ndarray


def run_shop_query(reads: pa.Table, workbook: str, query: str) -> ShopAnswers:
    """Return the answers of a query about a shop; the files that its workbook names are not read."""
    text = re.sub(r"CREATE STREAM reads.*?;", READS, workbook, count=1, flags=re.DOTALL)
    job: SequenceJob = make_job(text, query)
    answers = step_to_end(job, packets_of(job, reads)).answers
    events = answers["events_0"].combine_chunks()
    width = len(job.spec.analyses[0].positives)
    is_read = events.flatten().is_valid().to_numpy(zero_copy_only=False).reshape(-1, width)
    tags = pc.struct_field(pc.list_element(events, width - 1), "tag")  # the last event is never missing
    return ShopAnswers(tags.to_numpy(zero_copy_only=False), answers["probability"].to_numpy(), is_read)


def at_threshold(workbook: str, threshold: float) -> str:
    """Return the same queries with another threshold."""
    return re.sub(r"THRESHOLD [0-9.e-]+", f"THRESHOLD {threshold:g}", workbook)


def scored_jointly(workbook: str) -> str:
    """Return the same queries with the score of the paper."""
    return workbook.replace("SCORING POSTERIOR", "SCORING JOINT")


def deterministic(workbook: str) -> str:
    """Return the same queries for an engine that assumes that everything is read."""
    return re.sub(r"^ *(MISS|DELAY|SCORING|THRESHOLD 0\.5(?=;)).*?$", _remove_line, workbook, flags=re.MULTILINE)


def _remove_line(line: re.Match[str]) -> str:
    return ";" if line.group().endswith(";") else ""


@dataclass(frozen=True, slots=True)
class WeighedItems:
    """Items that are weighed and then paid for, unless they leave before: two events that may not be read.

    Attributes
    ----------
    weighed, paid : the mean delays in minutes, each after the previous event
    scales, checkout : the probabilities that a reading is lost
    """

    items: int
    weighed: float = 10.0
    paid: float = 20.0
    longest: float = 90.0
    scales: float = 0.3
    checkout: float = 0.5

    def draw(self, seed: int) -> tuple[pa.Table, np.ndarray]:
        """Return the readings, and for each item whether it was paid for (tags are the numbers of the items)."""
        rng = np.random.default_rng(seed)
        stay = rng.uniform(0, self.longest, self.items)
        weighed = rng.exponential(self.weighed, self.items)
        paid = weighed + rng.exponential(self.paid, self.items)
        taken = np.sort(rng.uniform(0, 60.0 * 24, self.items))
        times = taken[:, None] + np.stack([np.zeros_like(stay), weighed, paid, stay], axis=1)
        is_read = np.stack([stay >= 0, weighed < stay, paid < stay, stay >= 0], axis=1)
        is_read &= rng.random(is_read.shape) >= (0, self.scales, self.checkout, 0)
        item, reader = np.nonzero(is_read)
        t = (60e6 * times[item, reader]).astype(np.int64)
        order = np.argsort(t, kind="stable")
        readers = pa.DictionaryArray.from_arrays(pa.array(reader[order]), ["shelf", "scales", "checkout", "exit"])
        columns = {
            "tag": pa.array(item[order]).cast(pa.string()),
            "reader": readers.cast(pa.string()),
            "t": pa.array(t[order]).cast(pa.timestamp("us", "UTC")),
        }
        return pa.table(columns), paid < stay

    def workbook(self) -> str:
        """Return the query whether an item was weighed and paid for."""
        return READS + WEIGHED_AND_PAID.format(**{name: getattr(self, name) for name in self.__slots__})
