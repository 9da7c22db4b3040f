"""MONITOR: when predicted values satisfy constraints, and with which probability."""
