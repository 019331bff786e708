"""Which pull request this job is about, from the variables and the event that GitHub gives to a job."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fairlap.errors import InvalidRequest
from fairlap.json_errors import NOT_THE_DOCUMENT

CODE = "E_PULL_REQUEST"
TOKEN = "GITHUB_TOKEN"
SUMMARY = "GITHUB_STEP_SUMMARY"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_MOST_EVENT_BYTES = 32 * 2**20


@dataclass(frozen=True)
class PullRequest:
    repository: str  # that it is to be merged into, OWNER/NAME
    number: int
    base_commit: str = ""
    from_fork: bool = False


@dataclass(frozen=True)
class Job:
    """What the variables of a job say; every part may be missing outside of GitHub Actions."""

    pull_request: PullRequest | None
    api: str = "https://api.github.com"
    summary: Path | None = None  # the file whose Markdown is shown on the job's page
    page: str = ""  # the address of the job's page
    may_comment: bool = True  # a token of a job for a fork's change can only read

    def why_no_comment(self, token: str) -> str:
        """Empty where one can be tried."""
        if self.pull_request is None:
            return "this job is not for a pull request"
        if not self.may_comment:
            return "the change comes from a fork, whose jobs may not comment"
        if not token:
            return f"{TOKEN} is not set"
        return ""


def job_in(variables: Mapping[str, str], number: int | None = None) -> Job:
    """Read the job; ``number`` names the pull request where there is no event, as in other CI systems."""
    event = _event(variables.get("GITHUB_EVENT_PATH", ""))
    found = _pull_request(event, variables.get("GITHUB_REPOSITORY", ""), number)
    api = variables.get("GITHUB_API_URL") or Job.api
    parts = urlsplit(api)
    if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
        raise InvalidRequest(f"GITHUB_API_URL must begin with https:// (got {api})", code=CODE)
    summary = variables.get(SUMMARY)
    server, repository, run = (variables.get(f"GITHUB_{name}", "") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    page = f"{server}/{repository}/actions/runs/{run}" if server and repository and run else ""
    reads_only = bool(found and found.from_fork) and variables.get("GITHUB_EVENT_NAME") != "pull_request_target"
    return Job(found, api.rstrip("/"), Path(summary) if summary else None, page, not reads_only)


def token_taken_from(variables: os._Environ[str]) -> str:
    """Take the token out, which the programs that race must not inherit."""
    return variables.pop(TOKEN, "").strip()


def _event(path: str) -> dict[str, Any]:
    import msgspec

    if not path:
        return {}
    try:
        if Path(path).stat().st_size > _MOST_EVENT_BYTES:
            raise InvalidRequest(f"the event {path} is too large", code=CODE)
        event = msgspec.json.decode(Path(path).read_bytes())
    except OSError as error:
        raise InvalidRequest(f"the event {path} cannot be read: {error.strerror}", code=CODE) from None
    except NOT_THE_DOCUMENT as error:
        raise InvalidRequest(f"the event {path} is not valid JSON: {error}", code=CODE) from None
    return event if isinstance(event, dict) else {}


def _pull_request(event: dict[str, Any], repository: str, number: int | None) -> PullRequest | None:
    described = event.get("pull_request")
    if not isinstance(described, dict):
        return PullRequest(repository, number) if number is not None and repository else None
    base, change = _part(described, "base"), _part(described, "head")
    into = _name(base) or repository
    found = number if number is not None else described.get("number", event.get("number"))
    if not into or not isinstance(found, int):
        return None
    return PullRequest(into, found, _text(base, "sha"), from_fork=_name(change) != into)


def _part(described: dict[str, Any], key: str) -> dict[str, Any]:
    part = described.get(key)
    return part if isinstance(part, dict) else {}


def _name(side: dict[str, Any]) -> str:
    """Of its repository; empty for a fork that was deleted."""
    return _text(_part(side, "repo"), "full_name")


def _text(described: dict[str, Any], key: str) -> str:
    value = described.get(key)
    return value if isinstance(value, str) else ""
