"""The arithmetic of MONITOR: arrays in, arrays out."""
