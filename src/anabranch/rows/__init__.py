"""How rows travel: checked, packed into blobs, decoded to numbers, held back until the watermark has passed them."""
