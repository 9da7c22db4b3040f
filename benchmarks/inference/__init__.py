"""Inference: steps per second of each method compared with dense NumPy and hmmlearn, and growth with the input.

Every measurement is checked first: the methods must agree with the dense implementations.
"""

from benchmarks.inference.speed import growth, kernel

PARTS = {"kernel": kernel, "growth": growth}
