"""What tinygrad's adapter can say without tinygrad."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairlap.frameworks.contract import Unsupported
from fairlap.frameworks.tinygrad import _compiler, _threads


def test_without_clang_it_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(Unsupported, match="clang"):
        _compiler()


def test_one_thread_of_two_is_reported_in_words_and_passes_for_no_number() -> None:
    assert _threads(1, 1) == "1"
    assert _threads(2, 1).startswith("1 of 2: ")
    assert _threads(2, 0) == "cannot be read"
