"""Benchmarks: one file a family, on shared workloads; `python -m benchmarks` runs them."""
