"""Files that the workers read themselves: Parquet, CSV and JSON lines."""
