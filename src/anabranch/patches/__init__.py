"""Every use of another library's internals: one file for each, with its reason and its fallback.

A patch checks that the library still has what it changes. Where it has not, nothing is changed, and Anabranch gives
the same answers, only slower or with a less exact message. `docs/decisions/patched-internals.md` has the list.
"""
