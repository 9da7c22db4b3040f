"""Algorithms of the papers behind Anabranch, written from their text, for the benchmarks to compare with."""
