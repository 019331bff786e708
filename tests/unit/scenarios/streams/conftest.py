"""What races of servers that stream start from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from stream_races import file_of_prompts, without_client_floor


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    return file_of_prompts(tmp_path)


@pytest.fixture
def servers() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture(autouse=True)
def known_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not measure what the client adds, which has tests of its own: the servers here are as fast as the client."""
    without_client_floor(monkeypatch)
