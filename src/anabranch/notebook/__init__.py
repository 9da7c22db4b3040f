"""Anabranch in notebooks: `%load_ext anabranch` adds the magics `%anabranch` and `%%anabranch`."""
