"""Quality over simulated RFID readings, as in section 4.2 of Lahar: probabilities against a deterministic path.

People walk through a building whose antennas miss many readings (`anabranch simulate rfid`). Four queries ask where
they were. In real time, filtered probabilities are compared with the most likely location at each instant (MLE). Over
the archive, smoothed probabilities are compared with the most likely path (VITERBI), with the correlations between
instants and without them (MARGINALS). Every query is run with each model of the simulator, by `Session.run`.

An answer above the threshold is a detection. It is right if an event of its tag is at most WITHIN away, and an event is
found if a detection is. "Runs as one" counts only the first of consecutive detections. Each round is another building
with other people; all rounds are measured together. Without --quick the charts in docs/images are drawn again.
"""

from benchmarks.quality.detections import archived, realtime
from benchmarks.quality.visit import visit

PARTS = {"realtime": realtime, "archived": archived, "visit": visit}
