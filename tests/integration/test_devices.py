"""A device that is not there is refused by every framework in words of its own, and nobody falls back to the CPU."""

from __future__ import annotations

import pytest
from fairlap.request.work import Work
from machine_marks import needs_proc
from one_block import processes_of_one_block

pytestmark = [pytest.mark.sanitized, needs_proc, pytest.mark.slow]

REFUSALS = {
    "torch": "torch sees ",
    "jax": "jax sees ",
    "tensorflow": "tensorflow sees ",
    "onnxruntime": "onnxruntime ",
    "openvino": "openvino runs on cpu",
}


def test_no_framework_falls_back_to_the_cpu() -> None:
    found = processes_of_one_block(",".join(REFUSALS), Work("mlp", 1), seconds=0.05, device="cuda:63")
    for process in found.values():
        assert process.outcome == "unsupported", process.details or process.outcome
        assert REFUSALS[process.contestant] in process.message
        assert len(process.message.splitlines()) == 1
        assert process.timings == {}
