"""The command `language-server`; tests/editing runs the server."""

from __future__ import annotations

import sys

import pytest
from tests.cli.command import Command


def test_without_pygls_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch, anabranch: Command) -> None:
    monkeypatch.delitem(sys.modules, "anabranch.editing.server", raising=False)
    monkeypatch.setitem(sys.modules, "pygls.lsp.server", None)
    result = anabranch("language-server")
    assert result.status == 1
    assert result.err == "anabranch: the language server needs pygls; pip install 'anabranch[editor]'\n"
