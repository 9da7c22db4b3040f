"""Draw the answers of 1997 and 1998 on maps: where five buoys were warm together, and how warmth travelled."""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
from prepare import FOLDER, read_readings, weeks_of
from run import ask
from shared import options

from anabranch.charts import draw_map
from anabranch.drawing.svg import Svg

BEGIN = pd.Timestamp("1996-10-01", tz="UTC")
"""No answer of 1997 begins earlier."""

WAVES = 40


def draw_warm(answers: pa.Table, weeks: pd.DataFrame) -> Svg:
    """Draw a region for each month: around all buoys in one of its answers."""
    events = pd.DataFrame(answers["v"].combine_chunks().flatten().to_pylist())
    month = events["t"].dt.tz_localize(None).dt.to_period("M").dt.start_time
    buoys = events.assign(month=month).drop_duplicates(["month", "buoy"]).sort_values(["month", "buoy"])
    by_month = buoys.groupby("month")[["lon", "lat"]].apply(lambda rows: rows.to_dict("records"))
    event = pa.struct([("lon", pa.float64()), ("lat", pa.float64())])
    regions = pa.table({"t": pa.array(by_month.index), "v": pa.array(by_month.tolist(), pa.list_(event))})
    return draw_map(regions, title="Where five buoys were warm together, month by month", **_all_buoys(weeks))


def draw_waves(answers: pa.Table, weeks: pd.DataFrame) -> Svg:
    """Draw the most frequent waves."""
    title = "Wind from the west, then warmth that travels east"
    return draw_map(answers, title=title, colour="number", limit=WAVES, **_all_buoys(weeks))


def _all_buoys(weeks: pd.DataFrame) -> dict[str, pa.Table | str]:
    locations = weeks.groupby("buoy")[["lon", "lat"]].first()
    return {"background": pa.Table.from_pandas(locations, preserve_index=False), "background_name": "another buoy"}


def main() -> None:
    """Write the pictures."""
    parser = options("Draw where the water was warm, and how warmth travelled.", FOLDER)
    parser.add_argument("--output", type=Path, default=Path(), help="the folder for buoys.svg and buoys-waves.svg")
    arguments = parser.parse_args()
    weeks = weeks_of(read_readings(arguments.data))
    weeks = weeks[weeks["t"] >= BEGIN]
    warm, wave = ask(weeks, "warm", "wave")
    arguments.output.mkdir(parents=True, exist_ok=True)
    pictures = {"buoys.svg": (draw_warm(warm, weeks), warm), "buoys-waves.svg": (draw_waves(wave, weeks), wave)}
    for name, (picture, answers) in pictures.items():
        Path(arguments.output, name).write_text(picture + "\n", encoding="utf-8")
        print(f"{name}: {answers.num_rows:,} answers")


if __name__ == "__main__":
    main()
