"""CONSTRAIN: which events form a configuration in space and time."""
