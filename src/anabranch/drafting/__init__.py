"""Drafts of workbooks: `draft` writes one from the columns of a file, and says what it guessed."""

from anabranch.drafting.draft import Draft, draft

__all__ = ["Draft", "draft"]
