"""The arithmetic of CONSTRAIN: arrays in, arrays out.

`checks.py` asks two events whether they agree, `store.py` keeps the events that may still be needed and finds those
that a new one could meet, `search.py` puts whole solutions together, and `arrivals.py` lets events come one by one.
"""
