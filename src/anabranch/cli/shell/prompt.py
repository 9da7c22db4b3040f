"""The prompt: multi-line editing, history and completion, with prompt_toolkit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from anabranch.cli.shell.completion import ShellCompleter
from anabranch.cli.shell.statements import is_complete

if TYPE_CHECKING:
    from anabranch.cli.shell.shell import Shell

PROMPT = "anabranch> "
CONTINUATION = "      ...> "


def run_prompt(shell: Shell) -> None:
    """Read and execute until Ctrl-D or .quit; Ctrl-C discards what is typed."""
    prompt: PromptSession[str] = PromptSession(
        PROMPT,
        multiline=True,
        prompt_continuation=CONTINUATION,
        history=open_history(),
        completer=ShellCompleter(shell.session.catalog),
        complete_while_typing=False,
        key_bindings=_key_bindings(),
    )
    shell.background.start_spark()
    while True:
        try:
            text = prompt.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if not shell.handle(text):
            return


def open_history() -> History:
    """The history of earlier shells; only of this one, if the file cannot be written."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    path = Path(state).expanduser() / "anabranch" / "history"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.open("a").close()
    except (OSError, RuntimeError):
        return InMemoryHistory()
    return FileHistory(path)


def _key_bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def _(event: KeyPressEvent) -> None:
        """Execute complete statements; otherwise begin a new line."""
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings
