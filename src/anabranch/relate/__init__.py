"""RELATE: how two intervals in segments lie to each other, where some of their events are lost."""
