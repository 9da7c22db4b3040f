"""Answers for people to look at: tables, charts and pictures, from plain Arrow tables.

Used by the command line, by notebooks and by the web page alike. Nothing here knows Spark.
"""

from anabranch.show.chart import chart, print_chart
from anabranch.show.graph import draw_graph
from anabranch.show.map import draw_map
from anabranch.show.svg import chart_svg
from anabranch.show.table import answers_table, print_answers
from anabranch.show.verdicts import print_verdicts, verdict_table, verdicts

__all__ = [
    "answers_table",
    "chart",
    "chart_svg",
    "draw_graph",
    "draw_map",
    "print_answers",
    "print_chart",
    "print_verdicts",
    "verdict_table",
    "verdicts",
]
