"""Servers of other systems, on loopback ports, for tests. A test is skipped where its server is not installed."""
