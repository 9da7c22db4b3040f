"""The arithmetic of CONSTRAIN: arrays in, arrays out.

`tables.py` defines the arrays of queries and events. `checks.py` decides whether two events agree. `store.py` keeps the
events that may still be needed and finds those that agree with a new one. `search.py` completes solutions.
`arrivals.py` processes events one by one. `run.py` is the entry point.
"""
