"""Text to bound statements."""
