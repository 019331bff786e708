"""The process that computes the gradients of a user's model is ended where it does not answer in time."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fairlap.launch import own_slopes
from fairlap.models.training.reference import NotComputed


@pytest.mark.parametrize(("program", "code"), [("import time; time.sleep(60)", "E_TIMEOUT"), ("", "E_SOURCE")])
def test_an_answer_that_does_not_come_is_an_error_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, program: str, code: str
) -> None:
    bundle = SimpleNamespace(spec=SimpleNamespace(weights=[]), source=SimpleNamespace(text="mine.py:net"), files=())

    def started(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    monkeypatch.setattr(own_slopes, "bundle_in", lambda folder: bundle)
    monkeypatch.setattr(own_slopes, "process_of_source", started)
    monkeypatch.setattr(own_slopes, "Begin", lambda *parts: {})
    monkeypatch.setattr(own_slopes, "LIMIT_S", 0.5)
    asked: Any = own_slopes.SlopesOfSource(Path("folder"))
    began_s = time.monotonic()
    with pytest.raises(NotComputed) as failed:
        asked.outputs({}, {"x": np.zeros((2, 3))}, 2)
    assert failed.value.code == code
    assert "mine.py:net" in str(failed.value)
    assert time.monotonic() - began_s < 30
    assert asked._process is None
