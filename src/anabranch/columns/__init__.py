"""Arrow and NumPy columns: times, dictionaries, conditions and numbers."""
