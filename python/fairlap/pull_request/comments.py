"""One comment on a pull request, posted once and updated from then on. It is found again by a hidden first line."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from typing import Any

import msgspec

from fairlap.errors import FairlapError, reason_of, shortened
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.pull_request.event import PullRequest

_TIMEOUT_S = 20.0  # of one answer
_LIMIT_S = 90.0  # of all pages of comments together
_A_PAGE = 100
_MOST_PAGES = 100
_MOST_BYTES = 32 * 2**20


class CannotComment(FairlapError):
    """The service refused, did not answer, or answered with something else. The message never has the token."""

    code = "E_COMMENT"


class Comments:
    """The comments of one pull request.

    ``author`` is whose comments are updated; without one, those of any bot: a stranger could post the hidden line too.
    """

    def __init__(
        self, api: str, pull_request: PullRequest, token: str, *, author: str = "", timeout_s: float = _TIMEOUT_S
    ) -> None:
        self._repository = f"{api}/repos/{pull_request.repository}"
        self._number, self._token, self._author, self._timeout_s = pull_request.number, token, author, timeout_s
        self._opener = urllib.request.build_opener(_NoRedirect)

    def put(self, body: str, marker: str) -> str:
        """Post the comment, or update the one that begins with the marker. Returns its address."""
        found = self._find(marker)
        if found is None:
            answer = self._ask("POST", f"/issues/{self._number}/comments", {"body": body})
        else:
            answer = self._ask("PATCH", f"/issues/comments/{found}", {"body": body})
        if not isinstance(answer, dict):
            raise CannotComment("cannot comment: the answer describes no comment")
        return str(answer.get("html_url", ""))

    def _find(self, marker: str) -> int | None:
        ends_s = time.monotonic() + _LIMIT_S
        for page in range(1, _MOST_PAGES + 1):
            listed = self._ask("GET", f"/issues/{self._number}/comments?per_page={_A_PAGE}&page={page}")
            if not isinstance(listed, list):
                raise CannotComment("cannot read the comments: the answer is not a list")
            for each in listed:
                if self._is_ours(each, marker):
                    return int(each["id"])
            if len(listed) < _A_PAGE:
                return None
            if time.monotonic() > ends_s:
                raise CannotComment(f"cannot read the comments: no end after {page} pages and {_LIMIT_S:g} s")
        raise CannotComment(f"cannot read the comments: there are more than {_A_PAGE * _MOST_PAGES:,}")

    def _is_ours(self, comment: Any, marker: str) -> bool:
        if not isinstance(comment, dict) or not isinstance(comment.get("id"), int):
            return False
        body, user = comment.get("body"), comment.get("user")
        if not isinstance(body, str) or not body.startswith(marker) or not isinstance(user, dict):
            return False
        return user.get("login") == self._author if self._author else user.get("type") == "Bot"

    def _ask(self, method: str, path: str, content: dict[str, str] | None = None) -> Any:
        what = "read the comments" if method == "GET" else "comment"
        request = urllib.request.Request(
            f"{self._repository}{path}",
            data=None if content is None else msgspec.json.encode(content),
            method=method,
            headers={
                "Accept": "application/vnd.github+json",
                "Authorization": f"Bearer {self._token}",
                "Content-Type": "application/json",
                "User-Agent": "fairlap",
                "X-GitHub-Api-Version": "2022-11-28",
            },
        )
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                text = answer.read(_MOST_BYTES)
        except urllib.error.HTTPError as error:
            error.close()
            raise CannotComment(f"cannot {what}: status {error.code}{_HINTS.get(error.code, '')}") from None
        except TimeoutError:
            raise CannotComment(f"cannot {what}: no answer within {self._timeout_s:g} s") from None
        except urllib.error.URLError as error:
            raise CannotComment(f"cannot {what}: {self._without_token(_why(error.reason))}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = self._without_token(_why(error))
            raise CannotComment(f"cannot {what}: {reason}") from None
        try:
            return msgspec.json.decode(text)
        except NOT_THE_DOCUMENT:
            raise CannotComment(f"cannot {what}: the answer is not JSON") from None

    def _without_token(self, text: str) -> str:
        return shortened(text.replace(self._token, "***") if self._token else text)


_HINTS = {
    401: "; the token is not valid",
    403: "; the token may not write comments, so give the job `permissions: pull-requests: write`",
    404: "; the repository has no such pull request, or the token may not see it",
}


def _why(error: str | BaseException) -> str:
    """Take the text of an error, or its type where it has none."""
    return error if isinstance(error, str) else reason_of(error) or type(error).__name__


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """urllib would send the token along, to any host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None
