"""The arithmetic of SEQUENCE: arrays in, arrays out."""
