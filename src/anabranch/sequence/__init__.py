"""SEQUENCE: events in order, where readings may have been lost."""
