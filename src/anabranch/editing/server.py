"""The language server: diagnostics, completion and hover for editors, by the Language Server Protocol."""

from __future__ import annotations

import asyncio
from importlib.metadata import version

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import ServerTextPosition, ServerTextRange, TextDocument

from anabranch.editing.completion import complete
from anabranch.editing.workbooks import check_text, declare_valid, describe
from anabranch.errors import Finding, WorkbookError, line_starts

#: A workbook is checked when nothing has been typed for this many seconds.
QUIET_SECONDS = 0.2

_ITEM_KINDS = {
    "keyword": types.CompletionItemKind.Keyword,
    "stream": types.CompletionItemKind.Class,
    "relation": types.CompletionItemKind.Struct,
    "query": types.CompletionItemKind.Function,
    "column": types.CompletionItemKind.Field,
}


def make_server() -> LanguageServer:
    """A server that is not started yet."""
    # The whole text is sent on each change: the lines of pygls end at more characters than those of the protocol.
    server = LanguageServer("anabranch", version("anabranch"), types.TextDocumentSyncKind.Full)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def open_workbook(params: types.DidOpenTextDocumentParams) -> None:
        _publish(server, params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def save_workbook(params: types.DidSaveTextDocumentParams) -> None:
        # A file that the workbook names may have changed, too.
        _publish(server, params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def change_workbook(params: types.DidChangeTextDocumentParams) -> None:
        document = params.text_document
        await asyncio.sleep(QUIET_SECONDS)
        if server.workspace.get_text_document(document.uri).version == document.version:
            _publish(server, document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def close_workbook(params: types.DidCloseTextDocumentParams) -> None:
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["."]))
    def complete_word(params: types.CompletionParams) -> list[types.CompletionItem]:
        return _completions(server.workspace.get_text_document(params.text_document.uri), params.position)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def explain_name(params: types.HoverParams) -> types.Hover | None:
        document = server.workspace.get_text_document(params.text_document.uri)
        text = describe(document.source, _offset(document, params.position))
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, _fenced(text))) if text else None

    return server


def _publish(server: LanguageServer, uri: str) -> None:
    """Send what is wrong with a workbook; an empty list removes what was sent before."""
    document = server.workspace.get_text_document(uri)
    diagnostics = [_diagnostic(document, finding) for finding in _findings(document)]
    server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics, document.version))


def _findings(document: TextDocument) -> list[Finding]:
    """What `anabranch check` reports about the text of a document."""
    try:
        check_text(document.source, document.path)
    except WorkbookError as error:
        return error.findings
    return []


def _diagnostic(document: TextDocument, finding: Finding) -> types.Diagnostic:
    span = finding.span
    start = ServerTextPosition(span.line - 1, span.column - 1) if span else ServerTextPosition(0, 0)
    end = ServerTextPosition(span.end_line - 1, span.end_column - 1) if span else ServerTextPosition(0, 1)
    return types.Diagnostic(
        document.position_codec.range_to_client_units(_lines(document), ServerTextRange(start, end)),
        f"{finding.message}; {finding.hint}" if finding.hint else finding.message,
        severity=types.DiagnosticSeverity.Error,
        code=finding.code,
        source="anabranch",
    )


def _completions(document: TextDocument, position: types.Position) -> list[types.CompletionItem]:
    text, offset = document.source, _offset(document, position)
    candidates, length = complete(text[:offset], declare_valid(text).catalog)
    typed = document.position_codec.client_num_units(text[offset - length : offset])
    replaced = types.Range(types.Position(position.line, position.character - typed), position)
    return [
        types.CompletionItem(
            candidate.text,
            kind=_ITEM_KINDS[candidate.what],
            detail=f"{candidate.what} {candidate.remark}".strip(),
            # Keeps the order: keywords, then names, then columns.
            sort_text=f"{number:04d}",
            text_edit=types.TextEdit(replaced, candidate.text),
        )
        for number, candidate in enumerate(candidates)
    ]


def _offset(document: TextDocument, position: types.Position) -> int:
    """The index of a position in the text."""
    lines = _lines(document)
    found = document.position_codec.position_from_client_units(lines, position)
    return sum(map(len, lines[: found.line])) + found.character


def _lines(document: TextDocument) -> list[str]:
    """The lines of a document with their ends, as the parser counts them."""
    text = document.source
    starts = line_starts(text)
    return [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]


def _fenced(text: str) -> str:
    """The text as a block of code in Markdown, which no text can end."""
    return "```text\n" + text.replace("```", "` ` `") + "\n```"
