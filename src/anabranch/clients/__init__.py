"""Connections to other systems. Each needs an extra of this package, which is imported when it is used."""
