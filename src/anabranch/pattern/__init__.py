"""PATTERN: which states a hidden process went through."""
