"""The arithmetic of CONSTRAIN: arrays in, arrays out.

`tables.py` has queries and events as numbers, `checks.py` asks two events whether they agree, `store.py` keeps the
events that may still be needed and finds those that a new one could meet, `search.py` puts whole solutions together,
`arrivals.py` lets events come one by one, and `run.py` is the door to it all. `compiled.py` says how it is compiled.
"""
