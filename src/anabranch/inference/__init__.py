"""Makes streams from raw sensor data: inferred from readings (HMM), or predicted from measurements."""
