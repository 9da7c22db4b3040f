"""Compiled loops over the bytes of CSV and JSON lines: where the cells are, and what they hold.

A loop decides what is plain. It leaves everything else to Python, which is slow and exact: the line is odd, or the cell
undecided.
"""
