"""Make streams of the CAVIAR activities and of the true situations.

Videos of a hall in which people walk, meet, fight and leave objects behind. An activity was recognised for each person
and frame, with a probability; situations between people were labelled by hand. The data are Prob-EC's edition of
CAVIAR (EC Funded CAVIAR project/IST 2001 37540), a folder with caviar_lle.csv.gz, caviar_truth_groups.csv.gz and
caviar_truth_individuals.csv.gz.
"""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import itertools
import sys
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas as pd

# shared.py is in the folder of all examples.
sys.path.append(str(Path(__file__).resolve().parents[1]))
from shared import options

FOLDER = "caviar_probec"

NOISY, CLEAN = "smooth-noise", "clean"
"""Activities with probabilities; the same activities as labelled by hand, without probabilities."""

UNCLEAR = "unclear"
"""The activity of a person when none was recognised."""

SITUATIONS = {"meeting": "interacting", "moving": "moving", "fighting": "fighting"}
"""The label of each query about two people."""

FRAME = ["video", "time_ms", "entity"]


def read_activities(folder: Path, variant: str, videos: Collection[str] | None = None) -> pd.DataFrame:
    """Return the activity and position of each person in each frame: columns of `FRAME`, activity, p, x, y, faces."""
    facts = pd.read_csv(folder / "caviar_lle.csv.gz", dtype={"value": str})
    facts = facts[(facts["variant"] == variant) & (facts["video"].isin(videos) if videos else True)]
    by_attribute = {name: rows.set_index(FRAME) for name, rows in facts.groupby("attr")}
    people = by_attribute["event"][["value", "prob"]].rename(columns={"value": "activity", "prob": "p"})
    orientation = by_attribute["orientation"]["value"].astype(float).rename("faces")
    return people.join(by_attribute["coord"][["x", "y"]]).join(orientation).reset_index()


def streams_of(people: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the INDEPENDENT streams of the workbook, by name."""
    who = people["video"] + " " + people["entity"]
    does = pd.DataFrame({"who": who, "t": people["time_ms"], "activity": people["activity"], "p": people["p"]})
    # Bags and boxes have frames too. They are always inactive, and meet nobody.
    moving = people[who.isin(who[people["activity"] != "inactive"])]
    return {"does": does, "two": _pairs(moving)}


def _pairs(people: pd.DataFrame) -> pd.DataFrame:
    """Return each combination of activities of all pairs of people in a frame; the activities are independent."""
    unclear = people.assign(activity=UNCLEAR, p=1 - people["p"])
    states = pd.concat([people, unclear[unclear["p"] > 0]])
    both = states.merge(states, on=["video", "time_ms"], suffixes=("_a", "_b"))
    both = both[both["entity_a"] < both["entity_b"]]
    turn = (both["faces_a"] - both["faces_b"]).abs() % 360
    return pd.DataFrame(
        {
            "pair": both["video"] + " " + both["entity_a"] + "+" + both["entity_b"],
            "t": both["time_ms"],
            "a": both["activity_a"],
            "b": both["activity_b"],
            "gap": np.hypot(both["x_a"] - both["x_b"], both["y_a"] - both["y_b"]).round(1),
            "turn": np.minimum(turn, 360 - turn),
            "p": both["p_a"] * both["p_b"],
        }
    )


def most_likely(people: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the CERTAIN streams of the most probable activity in each frame, which may be none."""
    likely = people["p"] > 0.5
    streams = streams_of(people.assign(activity=people["activity"].where(likely, UNCLEAR), p=1.0))
    streams["does"] = streams["does"][likely]
    return {name: rows.drop(columns="p") for name, rows in streams.items()}


def read_truth(folder: Path, videos: Collection[str] | None = None) -> dict[str, pd.DataFrame]:
    """Return when each query of the workbook was true, by name: the column of the key, and t."""
    groups = pd.read_csv(folder / "caviar_truth_groups.csv.gz")
    people = pd.read_csv(folder / "caviar_truth_individuals.csv.gz")
    if videos:
        groups, people = (table[table["video"].isin(videos)] for table in (groups, people))
    groups, people = (table[table["level"] == "situation"] for table in (groups, people))
    truth = {name: _group_pairs(groups[groups["label"] == label]) for name, label in SITUATIONS.items()}
    return {"stopped": _stops(people), **truth}


def _group_pairs(labelled: pd.DataFrame) -> pd.DataFrame:
    """Return the frames of a label for all pairs of members of its group."""
    rows = [
        (f"{row.video} {a}+{b}", row.time_ms)
        for row in labelled.itertuples()
        for a, b in itertools.combinations(sorted(row.members.split("+")), 2)
    ]
    return pd.DataFrame(rows, columns=["pair", "t"])


def _stops(labelled: pd.DataFrame) -> pd.DataFrame:
    """Return the frames at which people stop moving."""
    labelled = labelled.sort_values(FRAME)
    before = labelled.groupby(["video", "entity"])["label"].shift()
    stops = labelled[(before == "moving") & labelled["label"].isin(["inactive", "browsing"])]
    return pd.DataFrame({"who": stops["video"] + " " + stops["entity"], "t": stops["time_ms"]})


def write_streams(streams: dict[str, pd.DataFrame], output: Path) -> None:
    """Write each stream to a Parquet file with its name."""
    output.mkdir(parents=True, exist_ok=True)
    for name, rows in streams.items():
        rows.to_parquet(output / f"{name}.parquet", index=False)


def main() -> None:
    """Write the streams with probabilities, and the true situations."""
    parser = options("Make streams of the CAVIAR activities and of the true situations.", FOLDER)
    parser.add_argument("--output", type=Path, default=Path("caviar"), help="the folder to write")
    arguments = parser.parse_args()
    folder = arguments.data
    streams, truth = streams_of(read_activities(folder, NOISY)), read_truth(folder)
    write_streams(streams, arguments.output)
    write_streams(truth, arguments.output / "truth")
    for name, rows in [*streams.items(), *((f"truth/{name}", rows) for name, rows in truth.items())]:
        print(f"{name + '.parquet':<24}{len(rows):>9,} rows")


if __name__ == "__main__":
    main()
