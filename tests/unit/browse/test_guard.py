"""Who may read the store in a browser: this machine, and who has the token."""

from __future__ import annotations

import re
from http.cookies import SimpleCookie
from pathlib import Path

import pytest
from asgi_client import HOST, request

pytest.importorskip("fastapi", reason="needs the extra serve; `make test` installs it and runs this")

from fairlap.browse.application import application
from fairlap.machine.serving.guard import Door

TOKEN = "a-token-of-a-test"


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "none.sqlite"))


@pytest.mark.parametrize(
    "host", [HOST, "localhost", "LOCALHOST.:80", "[::1]:8321", "[::1]", "10.0.0.5:9", "Lab.example:1"]
)
def test_a_host_that_is_an_address_or_a_known_name_is_served(host: str) -> None:
    assert request(application(["lab.example"]), "/", hosts=[host]).status == 200


@pytest.mark.parametrize(
    "hosts", [["evil.example"], ["evil.example:8321"], ["localhost.evil.example"], ["127.0.0.1.evil.example"], [""], []]
)
def test_another_name_is_refused_as_it_would_be_after_dns_rebinding(hosts: list[str]) -> None:
    answer = request(application(), "/api/runs", hosts=hosts)
    assert (answer.status, answer.json["error"]["code"]) == (421, "E_SERVE_HOST")


def test_two_hosts_are_refused() -> None:
    assert request(application(), "/", hosts=[HOST, "evil.example"]).status == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_only_get_and_head_are_served(method: str) -> None:
    answer = request(application(), "/", method=method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("url", ["/", "/no/such/page", "/api/runs", "/?limit=0", "/?token=x", "/docs", "/openapi.json"])
@pytest.mark.parametrize("door", [None, Door(TOKEN, 8321)])
def test_every_answer_has_the_strict_headers(url: str, door: Door | None) -> None:
    headers = request(application(door=door), url).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:;")
    assert "frame-ancestors 'none'" in policy
    assert "script-src" not in policy


def test_without_the_token_there_is_nothing() -> None:
    guarded = application(door=Door(TOKEN, 8321))
    for url in ("/", "/api/runs", "/runs/last", "/no/such/page", "/?token=", "/?token=wrong", f"/?token={TOKEN}x"):
        answer = request(guarded, url)
        assert answer.status == 401
        assert "E_SERVE_TOKEN" in answer.text
        assert TOKEN not in answer.text
    for given in ("", "Bearer", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", "Bearer \xff\xfe"):
        assert request(guarded, "/", authorization=given).status == 401
    for cookie in ("", "fairlap_8321", "fairlap_8321=", f"fairlap_8321={TOKEN}", f"fairlap_1={TOKEN}", "=;;=;"):
        assert request(guarded, "/", cookie=cookie).status == 401


def test_the_token_is_in_the_address_once_and_in_a_cookie_that_no_script_reads_then() -> None:
    guarded = application(door=Door(TOKEN, 8321))
    first = request(guarded, f"/?model=a%26b&token={TOKEN}")
    assert (first.status, first.headers["location"]) == (303, "/?model=a%26b")
    cookie = first.headers["set-cookie"]
    assert TOKEN not in cookie
    assert {part.strip() for part in cookie.split(";")[1:]} == {"Path=/", "HttpOnly", "SameSite=Strict"}
    [(name, morsel)] = SimpleCookie(cookie).items()
    assert request(guarded, "/", cookie=f"other=1; {name}={morsel.value}").status == 200
    assert request(application(door=Door(TOKEN + "2", 8321)), "/", cookie=f"{name}={morsel.value}").status == 401


def test_a_program_sends_the_token_as_a_bearer() -> None:
    assert request(application(door=Door(TOKEN, 8321)), "/api/runs", authorization=f"Bearer {TOKEN}").status == 200


@pytest.mark.parametrize(
    "path", ["//evil.example/", "/%5Cevil.example", "/%0d%0aset-cookie:x", "///evil.example/%2e%2e"]
)
def test_the_way_on_from_the_token_never_leads_elsewhere(path: str) -> None:
    location = request(application(door=Door(TOKEN, 8321)), f"{path}?token={TOKEN}").headers["location"]
    assert re.fullmatch(r"/(?![/\\])[\w%./-]*", location)
