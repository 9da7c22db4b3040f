"""MONITOR as in *A Query Processor for Prediction-Based Monitoring of Data Streams*: section 6, with figures 5 to 7.

Vehicles in a square report their positions and speeds. The query: which two vehicles are within 400 m of each other, in
x and in y, at instants at most 3 s apart? The live operator is stepped once per second in this process.

The *answer at an instant* t is the set of pairs with an answer that is current at t (reported, and not invalidated) and
whose validity interval contains t. That interval is the range of the later of the two matching instants, over a region
without holes: so one vehicle at t matches the other at an instant within the window before t, which is what the paper's
validator checks. The *ideal answer* is the set of pairs that are near each other by their last GPS measurements, both
at the same instant, as in the paper. The window of the query allows more, so a second score is against the pairs of
which one is near a position of the other measured within the window. Precision, recall and F-measure are means over all
seconds.

Times are processor times (`time.process_time`). Without --quick the charts in docs/images are drawn again.
"""

from benchmarks.monitor.accuracy import delays, functions, objects, policies
from benchmarks.monitor.chains import probabilities_of_chains
from benchmarks.monitor.growth import growth
from benchmarks.monitor.throughput import several_names, throughput_by_vehicles, value_constraints

PARTS = {
    "objects": objects,
    "functions": functions,
    "policies": policies,
    "delays": delays,
    "throughput": throughput_by_vehicles,
    "values": value_constraints,
    "growth": growth,
    "chains": probabilities_of_chains,
    "names": several_names,
}
