"""Explains an answer: which pieces of evidence moved its probability, and the most likely histories.

A piece of evidence is left out, and the same job is run again in this process; the difference is its effect. So an
explanation cannot disagree with a run. Nothing here needs Spark: the session collects the rows.
"""
