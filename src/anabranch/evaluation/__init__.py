"""Compares answers with ground truth: precision and recall, calibration, and a verdict for each event.

All functions take Arrow tables. Nothing here draws or needs Spark.
"""

from anabranch.evaluation.event_verdicts import verdicts
from anabranch.evaluation.quality import Quality, qualities
from anabranch.evaluation.reliability import Bin, calibration, expected_error
from anabranch.evaluation.scores import Scores, scores

__all__ = ["Bin", "Quality", "Scores", "calibration", "expected_error", "qualities", "scores", "verdicts"]
