"""Phases as NVTX ranges, with a module that has the two functions of NVIDIA's package and their parameters.

``push_range(message, color, domain, category, payload)`` and ``pop_range(domain)`` are those of nvtx 0.2; a profiler
sets ``NVTX_INJECTION64_PATH`` for NVTX to find it (nvtxInit.h).
"""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from fairlap.worker.phases import Phases
from fairlap.worker.protocol import Begin, Phase


class Recorded:
    def __init__(self) -> None:
        self.open: list[str] = []
        self.lines: list[str] = []

    def push_range(
        self,
        message: str | None = None,
        color: str | None = None,
        domain: str | None = None,
        category: str | None = None,
        payload: object = None,
    ) -> None:
        self.open.append(str(message))
        self.lines.append("/".join(self.open))

    def pop_range(self, domain: str | None = None) -> None:
        self.open.pop()


@pytest.fixture
def nvtx(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    recorded = Recorded()
    module = SimpleNamespace(push_range=recorded.push_range, pop_range=recorded.pop_range)
    monkeypatch.setitem(sys.modules, "nvtx", module)
    return recorded


def run_phases() -> list[object]:
    sent: list[object] = []
    phase = Phases(sent.append)
    with phase("build"), phase("convert"):
        pass
    with phase("compile"):
        pass
    return sent


def test_each_phase_is_a_range_under_a_profiler(nvtx: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVTX_INJECTION64_PATH", "/opt/profiler.so")
    sent = run_phases()
    assert nvtx.lines == ["fairlap: build", "fairlap: build/fairlap: convert", "fairlap: compile"]
    assert nvtx.open == []
    assert [type(each) for each in sent] == [Begin, Begin, Phase, Phase, Begin, Phase]


def test_there_are_none_without_a_profiler_or_without_the_package(
    nvtx: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NVTX_INJECTION64_PATH", raising=False)
    run_phases()
    monkeypatch.setenv("NVTX_INJECTION64_PATH", "/opt/profiler.so")
    monkeypatch.setitem(sys.modules, "nvtx", None)
    run_phases()
    assert nvtx.lines == []
