"""The language server in a process of its own, driven by a client over stdio."""

import asyncio
import sys

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from anabranch.editing.workbooks import check_text
from anabranch.errors import WorkbookError

WORKBOOK = """\
CREATE STREAM at KEY (person STRING) VALUE (place STRING) TIME t INTEGER;
CREATE RELATION rooms (place STRING, `floor no` INTEGER) FROM 'rooms.csv';
-- 😋 a query
CREATE QUERY coffee AS PATTERN at(x, 'hall') THEN at(x, 'coffee') GROUP BY x;
"""
WRONG = WORKBOOK + "CREATE QUERY '😋' AS PATTERN at(x, 'a');\nCREATE QUERY r AS PATTERN at(x 'a');\n"
UNKNOWN = WORKBOOK + "CREATE QUERY late AS PATTERN att(x, '😋') THEN nowhere(x, 'b');\n"
#: A text in the middle of typing: its last statement is not finished.
TYPING = WORKBOOK + "CREATE QUERY q AS SEQUENCE (a, b) FROM at AS a WHERE a."
MISSING_MAP = WORKBOOK.replace("GROUP BY x;", "GROUP BY x CALIBRATED BY 'none.csv';")


class Editor:
    """A client with one open workbook, which keeps what the server publishes about it."""

    def __init__(self, uri):
        self.uri = uri
        self.client = LanguageClient("editor", "1")
        self.published = asyncio.Queue()
        self.version = 0

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def keep(params):
            self.published.put_nowait(params)

    async def open(self, text):
        await self.client.start_io(sys.executable, "-m", "anabranch", "language-server")
        result = await self.client.initialize_async(types.InitializeParams(types.ClientCapabilities()))
        self.client.initialized(types.InitializedParams())
        document = types.TextDocumentItem(self.uri, "anabranch", self.version, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(document))
        return result.capabilities, await self.diagnostics()

    def type(self, text):
        self.version += 1
        document = types.VersionedTextDocumentIdentifier(self.version, self.uri)
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    async def diagnostics(self):
        return await asyncio.wait_for(self.published.get(), 60)

    async def complete(self, line, character):
        document = types.TextDocumentIdentifier(self.uri)
        return await self.client.text_document_completion_async(
            types.CompletionParams(document, types.Position(line, character))
        )

    async def hover(self, line, character):
        document = types.TextDocumentIdentifier(self.uri)
        return await self.client.text_document_hover_async(types.HoverParams(document, types.Position(line, character)))

    async def close(self):
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(self.uri)))
        assert not (await self.diagnostics()).diagnostics
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()


def findings(text, path):
    with pytest.raises(WorkbookError) as error:
        check_text(text, str(path))
    return error.value.findings


def test_an_editor_gets_diagnostics_completions_and_plans(tmp_path):
    path = tmp_path / "office.abq"

    async def edit():
        editor = Editor(path.as_uri())
        capabilities, published = await editor.open(WORKBOOK)
        assert capabilities.text_document_sync.change is types.TextDocumentSyncKind.Full
        assert not published.diagnostics
        await _check_diagnostics(editor, path)
        await _check_completions(editor)
        await _check_hover(editor)
        await editor.close()

    asyncio.run(edit())


async def _check_diagnostics(editor, path):
    # Only the last of several quick changes is checked.
    for text in ("CREATE", "CREATE QUERY", WRONG):
        editor.type(text)
    published = await editor.diagnostics()
    assert published.version == editor.version
    expected = findings(WRONG, path)
    assert [d.code for d in published.diagnostics] == [finding.code for finding in expected]
    assert len(expected) == 2, "both statements are reported"
    assert [d.range.start.line for d in published.diagnostics] == [4, 5]
    assert published.diagnostics[1].message == f"{expected[1].message}" + (
        f"; {expected[1].hint}" if expected[1].hint else ""
    )
    editor.type(UNKNOWN)
    published = await editor.diagnostics()
    assert {d.severity for d in published.diagnostics} == {types.DiagnosticSeverity.Error}
    first, second = (d.range for d in published.diagnostics)
    line = UNKNOWN.splitlines()[4]
    assert (first.start.character, first.end.character) == (line.index("att"), line.index(" THEN") + 1)
    # The positions of the protocol count UTF-16 units: the emoji before this one is two.
    assert second.start.character == line.index("nowhere") + 1
    editor.type(MISSING_MAP)
    (published,) = (await editor.diagnostics()).diagnostics
    assert "none.csv" in published.message, "files of the workbook are looked for in its folder"


async def _check_completions(editor):
    editor.type(TYPING)
    line = TYPING.splitlines()[4]
    columns = await editor.complete(4, len(line))
    assert [item.label for item in columns] == ["person", "place", "t", "`floor no`"]
    assert {item.kind for item in columns} == {types.CompletionItemKind.Field}
    assert columns[1].detail == "column of at, rooms"
    (keyword,) = await editor.complete(4, len("CREATE QU"))
    assert (keyword.label, keyword.text_edit.range.start.character) == ("QUERY", len("CREATE "))
    streams = await editor.complete(3, len("CREATE QUERY coffee AS PATTERN "))
    assert ("at", "stream CERTAIN (person, place, t)") in [(item.label, item.detail) for item in streams]
    assert not await editor.complete(3, WORKBOOK.splitlines()[3].index("hall") + 2), "inside a string"
    assert not await editor.complete(2, 6), "inside a comment"
    await editor.diagnostics()


async def _check_hover(editor):
    query = WORKBOOK.splitlines()[3]
    plan = (await editor.hover(3, query.index("coffee"))).contents.value
    assert "coffee: PATTERN" in plan
    assert "extended regular" in plan
    assert (await editor.hover(3, query.index("PATTERN") + 3)).contents.value == plan, "the last statement is broken"
    assert "CREATE STREAM at" in (await editor.hover(3, query.index("at(x"))).contents.value
    assert await editor.hover(2, 5) is None
