"""Who may use the page: requests without the token, of other hosts, of other pages, and of other kinds are refused."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from anabranch.cli.serve.guard import MOST_BYTES, Guard

TOKEN = "a-secret-token"  # noqa: S105
HOST = "127.0.0.1:8765"


async def _echo(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"{request.method} {request.url.path}")


@pytest.fixture
def client() -> TestClient:
    app = Starlette(routes=[Route("/", _echo), Route("/api/run", _echo, methods=["POST"])])
    return TestClient(Guard(app, 8765, TOKEN), base_url=f"http://{HOST}", follow_redirects=False)


@pytest.fixture
def known(client: TestClient) -> TestClient:
    """A browser that has opened the address with the token."""
    client.get("/", params={"token": TOKEN})
    return client


def test_the_token_becomes_a_cookie_and_leaves_the_address(client: TestClient) -> None:
    response = client.get("/", params={"token": TOKEN})
    assert response.status_code == 303
    assert response.headers["location"] == "/"
    cookie = response.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert client.get("/").text == "GET /"


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=wrong", "/api/run"])
def test_nothing_is_answered_without_the_token(client: TestClient, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 403
    assert "token" in response.text


def test_a_wrong_cookie_is_refused(client: TestClient) -> None:
    assert client.get("/", headers={"cookie": "anabranch-8765=wrong"}).status_code == 403
    assert client.get("/", headers={"cookie": f"anabranch-1={TOKEN}"}).status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1", "127.0.0.1:80", ""])
def test_a_name_that_points_here_is_refused(known: TestClient, host: str) -> None:
    assert known.get("/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999", f"https://{HOST}"])
def test_other_pages_are_refused(known: TestClient, origin: str) -> None:
    response = known.post("/api/run", json={}, headers={"origin": origin})
    assert response.status_code == 403
    assert "access-control-allow-origin" not in response.headers


def test_the_page_itself_may_call(known: TestClient) -> None:
    assert known.post("/api/run", json={}, headers={"origin": f"http://{HOST}"}).text == "POST /api/run"


def test_forms_long_texts_and_other_methods_are_refused(known: TestClient) -> None:
    assert known.post("/api/run", data={"a": "b"}).status_code == 415
    assert known.post("/api/run", content=b"[" * (MOST_BYTES + 1), headers=_json()).status_code == 413
    assert known.post("/api/run", content=iter([b"{}"]), headers=_json()).status_code == 411
    assert known.put("/", json={}).status_code == 405
    assert known.options("/").status_code == 405


def test_answers_restrict_the_browser(known: TestClient) -> None:
    for response in (known.get("/"), known.get("/", headers={"host": "evil.example"})):
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["cache-control"] == "no-store"


def _json() -> dict[str, str]:
    return {"content-type": "application/json"}
