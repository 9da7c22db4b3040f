"""MONITOR: which predicted values satisfy a constraint, when, and how probably."""
