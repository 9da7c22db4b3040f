"""`anabranch language-server`: diagnostics, completion and explanations for editors."""

from __future__ import annotations

from anabranch.errors import AnabranchError


def command() -> None:
    """Tell editors what is wrong with workbooks, complete words, and explain queries (LSP on stdio)."""
    try:
        from anabranch.editing.server import make_server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("lsprotocol", "pygls"):
            raise
        raise AnabranchError("the language server needs pygls; pip install 'anabranch[editor]'") from None
    make_server().start_io()
