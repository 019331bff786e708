"""A contestant on a GPU is profiled by the device's own records, against the fakes of the driver and of CUPTI.

Its empty call ends when the device is done.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import device_framework
import pytest
from contestant_on_fakes import OneContestant
from cuda_on_fakes import on_fakes
from fairlap.errors import InvalidRequest, NotAvailable
from fairlap.frameworks.contract import Contestant, Framework, Phase, Settings
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload
from fairlap.scenarios.calls import latency
from fairlap.scenarios.calls.latency_messages import Measure
from fairlap.scenarios.untimed.overhead import overhead_of_a_call_ns
from fairlap.scenarios.untimed.profile import _FEWEST_CALLS, serve
from fairlap.scenarios.untimed.profile_messages import Operator, Profile, ProfileCalls

COPY_NS, COPY_BYTES, HOST_TO_DEVICE = 3_000, 4096, 1


def profiled(contestant: OneContestant, trace: Path | None = None) -> Profile:
    contestant.answer()
    return serve(contestant.service.held, ProfileCalls(0.001, "" if trace is None else str(trace)))[0].profile


def operators(profile: Profile) -> dict[str, Operator]:
    return {each.name: each for each in profile.operators}


@on_fakes
def test_a_profile_on_a_device_has_its_kernels_by_name_with_their_exact_times() -> None:
    profile = profiled(OneContestant())
    assert profile.profiler == "CUPTI"
    assert profile.calls >= _FEWEST_CALLS
    [kernel] = profile.operators
    assert (kernel.name, kernel.kind, kernel.calls) == ("matmul", "matmul", 1.0)
    assert kernel.self_ns == device_framework.KERNEL_NS
    assert profile.call_ns >= device_framework.KERNEL_NS


@on_fakes
def test_kernels_of_every_stream_and_those_that_are_enqueued_late_are_in_the_profile() -> None:
    found = operators(profiled(OneContestant("two-streams")))
    assert found.keys() == {"matmul", "elsewhere"}
    assert found["elsewhere"].self_ns == device_framework.LATE_NS
    assert operators(profiled(OneContestant("late"))).keys() == {"matmul", "enqueued late"}


@on_fakes
def test_copies_are_in_the_profile_by_their_direction() -> None:
    contestant = OneContestant()
    copy = contestant.machine.cuda.fake_cuda_copy
    copy.argtypes = (ctypes.c_uint64, ctypes.c_int, ctypes.c_uint64, ctypes.c_int64)
    launch = contestant.machine.kernel

    def copy_and_launch(*arguments: object) -> int:
        copy(contestant.stream, HOST_TO_DEVICE, COPY_BYTES, COPY_NS)
        return int(launch(*arguments))  # type: ignore[arg-type]

    contestant.machine.kernel = copy_and_launch  # type: ignore[method-assign, assignment]
    found = operators(profiled(contestant))
    assert found["memcpy HtoD"].self_ns == COPY_NS
    assert found["memcpy HtoD"].kind == "copy"


@on_fakes
def test_calls_whose_records_were_lost_are_left_out() -> None:
    contestant = OneContestant()
    contestant.answer()
    contestant.machine.cupti.fake_cupti_drop_records(3)
    profile = serve(contestant.service.held, ProfileCalls(0.001))[0].profile
    assert operators(profile)["matmul"].calls == 1.0


@on_fakes
def test_where_every_record_is_lost_or_cupti_is_taken_there_is_a_reason_and_no_profile() -> None:
    contestant = OneContestant()
    contestant.answer()
    contestant.machine.cupti.fake_cupti_drop_records(10**6)
    with pytest.raises(NotAvailable, match="lost"):
        serve(contestant.service.held, ProfileCalls(0.001))
    contestant.machine.cupti.fake_cupti_set_held_by_another(1)
    with pytest.raises(NotAvailable, match="CUPTI"):
        serve(contestant.service.held, ProfileCalls(0.001))


@on_fakes
def test_nothing_is_timed_in_a_process_that_was_profiled_and_cupti_is_free_again() -> None:
    contestant = OneContestant()
    profiled(contestant)
    assert contestant.machine.cupti.fake_cupti_outstanding(b"subscribers") == 0
    with pytest.raises(InvalidRequest):
        latency.serve(contestant.service.held, Measure(samples=5))


@on_fakes
def test_a_trace_has_every_call_and_every_kernel_on_its_stream() -> None:
    contestant = OneContestant("two-streams")
    file = contestant.folder / "trace.json"
    calls = profiled(contestant, file).calls
    events = [each for each in json.loads(file.read_bytes())["traceEvents"] if each["ph"] == "X"]
    by_name: dict[str, list[dict[str, float]]] = {}
    for each in events:
        by_name.setdefault(each["name"], []).append(each)
    assert {name: len(of) for name, of in by_name.items()} == dict.fromkeys(
        ("fairlap.call", "matmul", "elsewhere"), calls + 2
    )
    assert by_name["matmul"][0]["dur"] == pytest.approx(device_framework.KERNEL_NS / 1e3)
    assert by_name["matmul"][0]["tid"] != by_name["elsewhere"][0]["tid"]


class PlusOne(Framework):
    """Its work is a kernel on the fake device, for which its calls do not wait."""

    name = "plus-one"
    packages = ("plus-one",)
    module = "device_framework"

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        def bind(inputs: Arrays) -> Callable[[], Any]:
            [x] = inputs.values()

            def call() -> Any:
                device_framework.machine.kernel(device_framework.KERNEL_NS, "plus one", device_framework.stream)
                return x + 1

            return call

        return Contestant(bind, None, lambda result: {"y": result}, dict, {})

    def version(self) -> str:
        return "1"


@on_fakes
def test_an_empty_call_on_a_device_ends_when_the_device_is_done() -> None:
    contestant = OneContestant()
    wait = b"cuCtxSynchronize"
    before = contestant.machine.cuda.fake_cuda_call_count(wait)
    assert overhead_of_a_call_ns(PlusOne(), Settings(1, "", "cuda:1", {}), "fp32") > 0
    assert contestant.machine.cuda.fake_cuda_call_count(wait) > before
    assert contestant.pending() == 0
