"""PATTERN: the kernels alone, a run in one process, Spark over an archive, Spark as a stream, and growth.

There are two queries: *three goals* is a sequence of rooms; *coffee* has a Kleene plus, and conditions that look up key
and value in relations. Every measurement is checked first: its answers must equal those of another way to compute them.
"""

from benchmarks.pattern.kernels import growth, kernel
from benchmarks.pattern.spark import batch, streaming

PARTS = {"kernel": kernel, "batch": batch, "streaming": streaming, "growth": growth}
