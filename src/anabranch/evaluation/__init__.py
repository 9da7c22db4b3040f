"""Compares answers with ground truth: precision and recall, calibration, and a verdict for each event.

`evaluate` does all of it for the answers of any query; the other functions are its parts.

All functions take Arrow tables. Nothing here draws or needs Spark.
"""

from anabranch.evaluation.evaluate import Evaluation, evaluate
from anabranch.evaluation.event_verdicts import verdicts
from anabranch.evaluation.quality import Quality, qualities
from anabranch.evaluation.reliability import Bin, bins_of, calibration, expected_error
from anabranch.evaluation.scores import Scores, scores

__all__ = [
    "Bin",
    "Evaluation",
    "Quality",
    "Scores",
    "bins_of",
    "calibration",
    "evaluate",
    "expected_error",
    "qualities",
    "scores",
    "verdicts",
]
