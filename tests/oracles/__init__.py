"""Plain references that the engine is held against: definitions applied literally, one world at a time."""
