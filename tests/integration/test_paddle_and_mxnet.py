"""Paddle and MXNet, which want packages of an age that the other frameworks do not, in environments of their own."""

from __future__ import annotations

import functools

import pytest
from fairlap.request.work import Mode, Work
from fairlap.scenarios.process_result import ProcessResult
from one_block import processes_of_one_block

pytestmark = [pytest.mark.heavy_environments, pytest.mark.sanitized, pytest.mark.timeout(1800)]

CONTESTANTS = ("paddle", "paddle:static", "mxnet", "mxnet:hybrid")
MODES: tuple[Mode, ...] = ("infer", "grad")


@functools.cache
def race(mode: Mode, threads: int) -> dict[str, ProcessResult]:
    return processes_of_one_block(",".join(CONTESTANTS), Work("mlp", 2, mode), threads=threads)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CONTESTANTS)
def test_it_answers_as_the_reference_does_with_the_settings_asked_for(name: str, mode: Mode) -> None:
    process = race(mode, 2)[name]
    assert process.outcome == "finished", process.message
    assert all(error.right and error.distance < 1e-4 for error in process.errors)
    assert process.in_force["threads"] == "2"
    assert process.in_force["precision"] == "fp32"
    assert {"import", "build"} <= process.phases_s.keys()
    assert ("compile" in process.phases_s) == (":" in name)


@pytest.mark.parametrize("name", CONTESTANTS)
def test_one_thread_is_one_thread(name: str) -> None:
    assert race("infer", 1)[name].in_force["threads"] == "1"
