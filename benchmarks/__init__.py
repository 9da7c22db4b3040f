"""Benchmarks, one package per family, on shared workloads; `python -m benchmarks` runs them."""
