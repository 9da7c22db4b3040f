"""RELATE: which temporal relations hold between the segments of two intervals, some of whose events are lost."""
