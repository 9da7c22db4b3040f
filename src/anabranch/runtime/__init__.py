"""The home of pyspark: batch and streaming runs of the families' operators, sources and sinks."""
