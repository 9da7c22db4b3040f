"""METHOD, and how soon exact methods are given up."""

from __future__ import annotations

import pytest
from tests.local import local_job
from tests.pattern.local import LocalRun
from tests.pattern.test_sampling import THINGS, WORKBOOK, people, things

from anabranch.errors import TooLarge
from anabranch.pattern import archive, joint
from anabranch.pattern.machine import SetMachine


def answers(workbook: str, rows: dict[str, list[dict]]) -> list[dict]:
    run = LocalRun(local_job(workbook, "q"), 1)
    run.step(rows, end=True)
    return [row for outcome in run.outcomes for row in outcome.answers.to_pylist()]


def test_method_sampling_samples_what_could_be_exact() -> None:
    exact = answers(WORKBOOK.format(options=""), people(2, 4))
    sampled = answers(WORKBOOK.format(options="METHOD SAMPLING"), people(2, 4))
    assert {row["method"] for row in exact} == {"exact"}
    assert {row["method"] for row in sampled} == {"sampling"}
    by_time = {row["t"]: row["probability"] for row in exact}
    assert all(row["lower"] <= by_time[row["t"]] <= row["upper"] for row in sampled)


def test_method_sampling_of_bindings() -> None:
    rows = people(3, 3)
    pattern = "at(p, l) THEN at(q, l) WHERE p <> q GROUP BY p, q"
    workbook = WORKBOOK[: WORKBOOK.index("CREATE QUERY")] + f"CREATE QUERY q AS PATTERN {pattern} {{}};"
    exact = {(row["t"], row["p"], row["q"]): row["probability"] for row in answers(workbook.format(""), rows)}
    sampled = answers(workbook.format("METHOD SAMPLING"), rows)
    assert {(row["t"], row["p"], row["q"]) for row in sampled} == exact.keys()
    for row in sampled:
        assert row["method"] == "sampling"
        assert abs(row["probability"] - exact[row["t"], row["p"], row["q"]]) < 0.03


def test_method_sampling_of_a_group_without_matching_rows() -> None:
    text = WORKBOOK[: WORKBOOK.index("CREATE QUERY")] + "CREATE QUERY q AS PATTERN at(p, 'nowhere') GROUP BY p {};"
    assert answers(text.format("METHOD SAMPLING"), people(2, 4)) == answers(text.format(""), people(2, 4)) == []


def test_method_exact_fails_instead_of_sampling() -> None:
    rows = {"has": things("bob", 14, seed=2)}
    with pytest.raises(TooLarge, match="METHOD EXACT excludes sampling"):
        answers(THINGS.format(group="METHOD EXACT"), rows)
    few = answers(THINGS.format(group="METHOD EXACT"), {"has": things("bob", 2, seed=2)})
    assert {row["method"] for row in few} == {"exact"}


def test_method_exact_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_WORK", 1_000)
    monkeypatch.setattr(joint, "MOST_WORK", 1_000)
    monkeypatch.setattr(joint, "WORK_PER_INSTANT", 0)
    assert {row["method"] for row in answers(WORKBOOK.format(options=""), people(2, 3))} == {"sampling"}
    assert {row["method"] for row in answers(WORKBOOK.format(options="METHOD EXACT"), people(2, 3))} == {"exact"}


def test_a_joint_state_that_keys_make_too_large_is_given_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = []
    step = SetMachine.step
    monkeypatch.setattr(SetMachine, "step", lambda *arguments: steps.append(1) or step(*arguments))
    rows = [row for person in range(5) for row in things(f"p{person}", 14, seed=person)]
    found = answers(THINGS.format(group="GROUP BY p ACCURACY 0.1 CONFIDENCE 0.8"), {"has": rows})
    assert {row["method"] for row in found} == {"sampling"}
    assert len(steps) < 500
