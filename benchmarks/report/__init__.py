"""The report of the benchmarks as one page."""
