"""The only package besides `session.py` that imports pyspark: batch and streaming runs, sources and sinks."""
