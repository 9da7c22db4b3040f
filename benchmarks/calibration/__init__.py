"""Calibration on real data: how often answers of each probability are true, with parts of the data held out.

The modules of `collecting.TASKS` remove events or ends of real data, ask for them, and yield the probabilities of
several methods with the truth. A regression on the same history is the ceiling that a model can be compared with. One
table shows the means over the seeds, and a chart per task is drawn into docs/images. `live.py` has a table of its own:
the methods for live answers.
"""

from benchmarks.calibration import live
from benchmarks.calibration.output import measure

PARTS = {"table": measure, "live": live.measure}
