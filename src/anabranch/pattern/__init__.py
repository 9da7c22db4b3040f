"""PATTERN: what did a hidden state go through? (Lahar)."""
