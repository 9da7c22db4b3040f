"""How rows travel: layouts, row checks, packets, routing to buckets, watermarks, state and answers."""
