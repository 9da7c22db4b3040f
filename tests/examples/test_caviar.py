"""The example `caviar`: streams by hand, and its queries on a few of the real videos."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.examples.scripts import real

EXAMPLE = "caviar"

VIDEOS = ("19-Meet_WalkTogether1", "20-Meet_WalkTogether2", "26-Fight_RunAway2")


@pytest.fixture
def people() -> pd.DataFrame:
    """Return a frame with Ana, Ben and a bag."""
    return pd.DataFrame(
        {
            "video": "v",
            "time_ms": 40,
            "entity": ["ana", "bag", "ben"],
            "activity": ["walking", "inactive", "active"],
            "p": [0.8, 0.9, 0.3],
            "x": [0.0, 1.0, 3.0],
            "y": [0.0, 1.0, 4.0],
            "faces": [350.0, 0.0, 10.0],
        }
    )


def test_the_activities_of_two_people_are_independent(prepare, people):
    streams = prepare.streams_of(people)
    two = streams["two"]
    assert set(two["pair"]) == {"v ana+ben"}, "the bag meets nobody"
    probabilities = {(row.a, row.b): round(row.p, 9) for row in two.itertuples()}
    assert probabilities == {
        ("walking", "active"): 0.24,
        ("walking", "unclear"): 0.56,
        ("unclear", "active"): 0.06,
        ("unclear", "unclear"): 0.14,
    }
    assert set(two["gap"]) == {5.0}
    assert set(two["turn"]) == {20.0}, "the smaller angle"


def test_the_most_likely_activity_may_be_none(prepare, people):
    streams = prepare.most_likely(people)
    assert streams["does"]["who"].tolist() == ["v ana", "v bag"]
    assert streams["two"][["pair", "a", "b"]].values.tolist() == [["v ana+ben", "walking", "unclear"]]
    assert all("p" not in rows for rows in streams.values())


def test_a_group_counts_as_all_its_pairs(prepare):
    labelled = pd.DataFrame({"video": ["v"], "time_ms": [40], "members": ["id2+id0+id1"]})
    assert prepare._group_pairs(labelled)["pair"].tolist() == ["v id0+id1", "v id0+id2", "v id1+id2"]


def test_real_activities_have_one_value_per_frame_which_noise_does_not_change(prepare):
    """As the page says, noise adds probabilities and never changes an activity."""
    folder = real("caviar_probec")
    clean, noisy = (prepare.read_activities(folder, variant, VIDEOS) for variant in (prepare.CLEAN, prepare.NOISY))
    assert not noisy.duplicated(prepare.FRAME).any()
    same = ["activity", "x", "y", "faces"]
    pd.testing.assert_frame_equal(clean[prepare.FRAME + same], noisy[prepare.FRAME + same])
    assert 0.2 < noisy["p"].mean() < 0.25
    assert prepare.streams_of(noisy)["two"].groupby(["pair", "t"])["p"].sum().sub(1).abs().max() < 1e-9


def test_probabilities_are_better_than_the_most_likely_activities(run, spark):
    """Measured, F1 of most likely and at the best threshold: moving 0.655 and 0.921, fighting 0.863 and 0.881."""
    folder = real("caviar_probec")
    truth = {name: rows for name, rows in run.read_truth(folder, VIDEOS).items() if name in ("moving", "fighting")}
    answers = run.ask_all(folder, truth, VIDEOS)
    best = {}
    for name, events in truth.items():
        (likely,) = run.judge(name, answers["most likely"][name], events, [0])
        judged = run.judge(name, answers["probabilities"][name], events, run.THRESHOLDS)
        best[name] = max(quality.f1 for quality in judged)
        assert best[name] >= likely.f1, name
    assert best["moving"] > 0.85
    assert best["fighting"] > 0.8
