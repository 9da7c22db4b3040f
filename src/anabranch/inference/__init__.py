"""From raw readings to probabilistic streams, ahead of every query."""
