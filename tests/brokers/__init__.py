"""Brokers of messages for tests: processes of their own, which are reached over TCP."""
