"""Plays an archive as a live stream, by event time."""
