"""Calibration of SEQUENCE and CONSTRAIN over events with probabilities (`INDEPENDENT` streams).

The events are the activities that a person in `rfid_batteryless` may have in each second with a reading. Their
probabilities come from models that are fitted to the other trials:

- *one reading*: Bayes' rule on the reading of the second alone.
- *FILTER*: given the readings so far.
- *most probable activity*: the first one, as if it were certain.

An answer is true if all its events happened, and if no event happened that excludes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I64
from anabranch.inference.labels import truth_indexes
from anabranch.transport.finishing import finish_table
from benchmarks.calibration.inference import Learned, learned_tags, probabilities_of
from benchmarks.calibration.results import Result
from benchmarks.engines import make_job, packets_of, step_to_end

WORKBOOK = """
CREATE STREAM guess KEY (trial INTEGER) VALUE (activity STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE QUERY q AS {query};
"""

#: The codes of the activities.
ON_BED, LYING, WALKING = "1", "3", "4"

#: The true activity of each trial and second.
Truth = Mapping[tuple[int, int], str]
#: Whether an answer is true.
IsTrue = Callable[[Mapping[str, dict], Truth], bool]


@dataclass(frozen=True)
class Question:
    """A query over the events, and when its answers are true."""

    name: str
    query: str
    is_true: IsTrue


def _happened(event: Mapping[str, Any], truth: Truth) -> bool:
    return truth[event["trial"], event["t"]] == event["activity"]


def _between(first: Mapping[str, int], last: Mapping[str, int], truth: Truth) -> set[str]:
    """The true activities in the seconds with a reading strictly between two events."""
    seconds = ((first["trial"], t) for t in range(first["t"] + 1, last["t"]))
    return {truth[second] for second in seconds if second in truth}


_SAME = "x.trial = y.trial AND y.trial = z.trial"
QUESTIONS = (
    Question(
        "SEQUENCE: lay, then sat on the bed",
        f"SEQUENCE (x, z) FROM guess WHERE x.activity = '{LYING}' AND z.activity = '{ON_BED}' AND x.trial = z.trial "
        "WITHIN 5",
        lambda row, truth: _happened(row["x"], truth) and _happened(row["z"], truth),
    ),
    Question(
        "SEQUENCE: sat on the bed twice, and did not lie in between",
        f"SEQUENCE (x, !y, z) FROM guess WHERE x.activity = '{ON_BED}' AND y.activity = '{LYING}' "
        f"AND z.activity = '{ON_BED}' AND {_SAME} WITHIN 5",
        lambda row, truth: (
            _happened(row["x"], truth)
            and _happened(row["z"], truth)
            and LYING not in _between(row["x"], row["z"], truth)
        ),
    ),
    Question(
        "SEQUENCE: lay, sat on the bed (a run), walked",
        f"SEQUENCE (x, y+, z) FROM guess WHERE x.activity = '{LYING}' AND y.activity = '{ON_BED}' "
        f"AND z.activity = '{WALKING}' AND {_SAME} WITHIN 15",
        lambda row, truth: (
            _happened(row["x"], truth) and _happened(row["z"], truth) and ON_BED in _between(row["x"], row["z"], truth)
        ),
    ),
    Question(
        "CONSTRAIN: walked at most 5 seconds before or after sitting on the bed",
        f"CONSTRAIN x, z FROM guess WHERE x.activity = '{ON_BED}' AND z.activity = '{WALKING}' "
        "AND x.trial = z.trial AND z.t - x.t IN [-5, 5]",
        lambda row, truth: _happened(row["x"], truth) and _happened(row["z"], truth),
    ),
)


def results(seeds: Sequence[int]) -> Iterator[Result]:
    """The probabilities of all questions by all models."""
    for learned in learned_tags(seeds):
        known = truth_indexes(learned.truth, learned.readings)
        locations = learned.hmm.locations
        seconds = zip(learned.readings.key.tolist(), learned.readings.step.tolist(), strict=True)
        truth = {second: locations[code] for second, code in zip(seconds, learned.truth.code[known], strict=True)}
        one = one_reading(learned)
        filtered = probabilities_of(learned.hmm, "FILTER", learned.truth, learned.readings)[known]
        guess = np.eye(len(locations))[one.argmax(axis=1)]
        for question in QUESTIONS:
            asked = answers(question.query, learned, one)
            true = np.array([question.is_true(row, truth) for row in asked], np.bool_)
            for method, events in (("most probable activity", guess), ("one reading", one), ("FILTER", filtered)):
                found = {_identity(row): row["probability"] for row in answers(question.query, learned, events)}
                p = np.array([found.get(_identity(row), 0.0) for row in asked])
                yield Result(learned.data, question.name, method, learned.seed, p, true)


def one_reading(learned: Learned) -> F64:
    """(readings, activities): the probability of each activity, given the reading of this second only."""
    hmm = learned.hmm
    of_reader = np.zeros((len(hmm.readers), len(hmm.locations)))
    reader: I64 = np.repeat(np.arange(len(hmm.readers)), np.diff(hmm.reader_starts))
    of_reader[reader, hmm.reader_locations] = hmm.reader_p
    joint = hmm.initial * of_reader
    share: F64 = joint / joint.sum(axis=1, keepdims=True)
    return share[learned.readings.code]


def _identity(row: Mapping[str, dict]) -> tuple[int, ...]:
    """The trial of an answer, and the times of its single events."""
    return row["x"]["trial"], row["x"]["t"], row["z"]["t"]


def answers(query: str, learned: Learned, p: F64) -> list[dict]:
    """The answers of a query over the events of held-out trials, in this process."""
    reading, activity = np.nonzero(p)
    events = pa.table({
        "trial": learned.readings.key[reading].astype(np.int64),
        "activity": np.array(learned.hmm.locations)[activity],
        "t": learned.readings.step[reading].astype(np.int64),
        "p": p[reading, activity],
    })  # fmt: skip
    job = make_job(WORKBOOK.format(query=query), "q")
    found = step_to_end(job, packets_of(job, events)).answers
    rows: list[dict] = finish_table(job.rules(0), found).to_pylist()
    return rows
