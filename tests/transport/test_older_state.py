"""State of formats 3 and 4 is read: the stream goes on with the same answers, and its state has the current format.

State of a RELATE that equates no keys has all entities in one bucket, and is refused.

`tests/fixtures/state` has the state of one bucket, and its pages, as a version with this format saved them after the
rows before the update.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.local import LocalRun, local_job
from tests.pattern.local import LocalRun as PatternRun
from tests.relate.local import RelateRun

from anabranch.errors import StateError
from anabranch.transport.state import FORMAT

FIXTURES = Path(__file__).parents[1] / "fixtures" / "state"

PATTERN = """
CREATE STREAM r KEY (k INTEGER) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT;
CREATE QUERY q AS PATTERN r(k, 'a') THEN r(k, 'b') GROUP BY k;
"""
RELATE = """
CREATE STREAM r KEY (k STRING) TIME t INTEGER ORDER n LENGTH l MODEL INTERVALS;
CREATE QUERY q AS RELATE SOME a INTERSECTS SOME b FROM r AS a, r AS b WHERE a.k < b.k;
"""


def reading(key: int, value: str, t: int) -> dict:
    return {"k": key, "v": value, "t": t, "p": 0.5}


def event(key: str, number: int, t: int, length: int) -> dict:
    return {"k": key, "n": number, "t": t, "l": length}


#: The rows before and after the update; x has ended before it, y and z have not.
ROWS = {
    "pattern": (
        PATTERN,
        [reading(key, "a", 1) for key in range(3)] + [reading(3, "c", 2)],
        [reading(1, "b", 3), reading(4, "a", 3)],
    ),
    "relate": (
        RELATE,
        [event("x", 1, 0, 2), event("x", 2, 4, 2), event("y", 1, 2, 4), event("y", 2, 5, 4), event("z", 1, 6, 2)],
        [event("y", 3, 7, 4), event("y", 4, 9, 4), event("z", 2, 8, 2)],
    ),
}
RUNS: dict[str, type[LocalRun]] = {"pattern": PatternRun, "relate": RelateRun}


def resumed(kind: str, version: int) -> LocalRun:
    """A run whose next step finds the state that a version with some format has saved."""
    run = RUNS[kind](local_job(ROWS[kind][0], "q", live=True), 1)
    run.step({"r": ROWS[kind][1]})
    run.states = [(FIXTURES / f"format-{version}-{kind}.bin").read_bytes()]
    run.pages[0].clear()
    for page in FIXTURES.glob(f"format-{version}-{kind}-*.bin"):
        run.pages[0][int(page.stem.rpartition("-")[2])] = page.read_bytes()
    return run


@pytest.mark.parametrize("version", [3, 4])
def test_a_stream_goes_on_with_state_of_an_older_format(version: int) -> None:
    workbook, before, after = ROWS["pattern"]
    whole, other = PatternRun(local_job(workbook, "q", live=True), 1), resumed("pattern", version)
    whole.step({"r": before})
    for run in (whole, other):
        run.step({"r": after})
        run.step({}, end=True)
    assert [outcome.answers.to_pylist() for outcome in other.outcomes] == [
        outcome.answers.to_pylist() for outcome in whole.outcomes
    ]
    assert any(outcome.answers.num_rows for outcome in whole.outcomes[1:])
    assert other.states[0][4] == FORMAT


@pytest.mark.parametrize("version", [3, 4])
def test_state_with_all_entities_in_one_bucket_is_refused(version: int) -> None:
    with pytest.raises(StateError, match="all entities in one bucket; start with a new checkpoint folder"):
        resumed("relate", version).step({"r": ROWS["relate"][2]})
