"""CONSTRAIN as in *Continuous Constraint Query Evaluation for Spatiotemporal Streams*: section 5, with figures 5 to 7.

The data are real measurements of buoys (`data.py`), the queries are random (`queries.py`, `tuning.py`). The three
strategies run over the same events, and their alerts must be the same. A rate is the number of events divided by the
processor time for each of them: to find the variables that it can be, to fill the store, and to find alerts. "Kept" is
the maximum number of events that were kept at any time, as a share of all events.

Two parts compare with other implementations: the search for matching events (`index.py`), and joins of Spark SQL
(`joins.py`). Without --quick the charts in docs/images are drawn again.
"""

from benchmarks.constrain.figures import (
    constraints,
    index_search,
    length,
    queries_by_count,
    spark_joins,
    variables,
    verbosity,
)
from benchmarks.constrain.growth import growth

PARTS = {
    "verbosity": verbosity,
    "queries": queries_by_count,
    "length": length,
    "variables": variables,
    "constraints": constraints,
    "growth": growth,
    "index": index_search,
    "spark": spark_joins,
}
