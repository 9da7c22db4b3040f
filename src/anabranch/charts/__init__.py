"""Tables, charts and pictures of answers and plans, from Arrow tables.

The command line, notebooks and web pages use the same functions. Nothing here needs Spark.
"""

from anabranch.charts.delays import Panel, draw_delays
from anabranch.charts.evaluation import print_evaluation
from anabranch.charts.graph import draw_graph
from anabranch.charts.html_table import answers_html
from anabranch.charts.map import draw_map
from anabranch.charts.reliability import draw_reliability
from anabranch.charts.svg_chart import chart_svg
from anabranch.charts.table import answers_table, print_answers
from anabranch.charts.terminal_chart import chart, print_chart
from anabranch.charts.verdicts import print_verdicts, verdict_table

__all__ = [
    "Panel",
    "answers_html",
    "answers_table",
    "chart",
    "chart_svg",
    "draw_delays",
    "draw_graph",
    "draw_map",
    "draw_reliability",
    "print_answers",
    "print_chart",
    "print_evaluation",
    "print_verdicts",
    "verdict_table",
]
