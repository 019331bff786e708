"""One comment on a pull request: posted once, updated from then on, and a failure is one line without the token."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from comment_server import TOKEN, CommentServer, comment_server
from fairlap.pull_request.comments import CannotComment, Comments
from fairlap.pull_request.event import PullRequest

MARKER = "<!-- fairlap pull request: benchmark -->"


@pytest.fixture
def server() -> Iterator[CommentServer]:
    with comment_server() as running:
        yield running


def comments(server: CommentServer, author: str = "", timeout_s: float = 5.0) -> Comments:
    return Comments(server.address, PullRequest("octo/parser", 42), TOKEN, author=author, timeout_s=timeout_s)


def test_the_first_comment_is_posted_and_further_ones_update_it(server: CommentServer) -> None:
    server.add("a person's comment")
    assert comments(server).put(f"{MARKER}\none", MARKER) == f"{server.address}/comment"
    comments(server).put(f"{MARKER}\ntwo", MARKER)
    assert [each["body"] for each in server.comments] == ["a person's comment", f"{MARKER}\ntwo"]
    assert [method for method, _, _ in server.requests] == ["GET", "POST", "GET", "PATCH"]
    assert {path.partition("?")[0] for _, path, _ in server.requests} == {
        "/repos/octo/parser/issues/42/comments",
        "/repos/octo/parser/issues/comments/1001",
    }
    assert {token for _, _, token in server.requests} == {f"Bearer {TOKEN}"}


@pytest.mark.parametrize("before", [0, 99, 100, 250])
def test_the_comment_is_found_on_any_page(server: CommentServer, before: int) -> None:
    for _ in range(before):
        server.add("something else")
    server.add(f"{MARKER}\nold")
    comments(server).put(f"{MARKER}\nnew", MARKER)
    assert server.comments[before]["body"] == f"{MARKER}\nnew"
    assert len(server.comments) == before + 1


def test_comments_of_several_names_do_not_disturb_each_other(server: CommentServer) -> None:
    for name in ("one", "two", "one"):
        marker = f"<!-- fairlap pull request: {name} -->"
        comments(server).put(f"{marker}\n{name}", marker)
    assert len(server.comments) == 2


def test_a_comment_of_a_stranger_that_holds_the_marker_is_not_updated(server: CommentServer) -> None:
    server.add(f"{MARKER}\nforged", {"login": "stranger", "type": "User"})
    server.add(f"quoting {MARKER}")
    comments(server).put(f"{MARKER}\nours", MARKER)
    assert [each["body"] for each in server.comments][::2] == [f"{MARKER}\nforged", f"{MARKER}\nours"]


def test_the_comments_of_a_named_author_are_updated(server: CommentServer) -> None:
    server.add(f"{MARKER}\nof a bot")
    server.add(f"{MARKER}\nours", {"login": "maintainer", "type": "User"})
    comments(server, author="maintainer").put(f"{MARKER}\nnew", MARKER)
    assert [each["body"] for each in server.comments] == [f"{MARKER}\nof a bot", f"{MARKER}\nnew"]


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("failure", "value"),
    [
        (401, "401"),
        (403, "pull-requests: write"),
        (404, "404"),
        (500, "500"),
        ("hang", "within 1 s"),
        ("rubbish", "not JSON"),
        ("other", "answer"),
        ("close", "cannot"),
    ],
)
def test_a_failure_is_one_line_without_the_token(
    server: CommentServer, method: str, failure: int | str, value: str
) -> None:
    server.fails[method] = failure
    with pytest.raises(CannotComment) as raised:
        comments(server, timeout_s=1.0 if failure == "hang" else 60.0).put(f"{MARKER}\nbody", MARKER)
    assert value in str(raised.value)
    assert raised.value.code == "E_COMMENT"
    assert len(str(raised.value).splitlines()) == 1
    assert TOKEN not in str(raised.value)


def test_the_token_is_not_sent_where_an_answer_redirects_to(server: CommentServer) -> None:
    with comment_server() as elsewhere:
        server.fails["GET"] = f"{elsewhere.address}/repos/octo/parser/issues/42/comments"
        with pytest.raises(CannotComment):
            comments(server).put(f"{MARKER}\nbody", MARKER)
        assert elsewhere.requests == []


def test_a_server_that_is_not_there_is_one_line() -> None:
    with comment_server() as gone:
        pass
    with pytest.raises(CannotComment):
        comments(gone).put(f"{MARKER}\nbody", MARKER)
