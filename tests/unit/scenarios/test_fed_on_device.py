"""Batches that a contestant takes on a device are proven there, against the fake driver."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from cuda_on_fakes import Machine, on_fakes
from fairlap.data.native_pipeline import NativePipeline
from fairlap.data.pipeline import NUMBERS, WAITED, Job
from fairlap.data.pipeline_choice import Choice
from fairlap.data.timed_copies import TimedCopies
from fairlap.frameworks.contract import Contestant, Fed, Unsupported
from fairlap.race.equal_work.fed_check import require_each_once
from fairlap.scenarios.calls.fed_latency import WRONG_SAMPLES, FedCalls
from fairlap.scenarios.calls.latency_messages import Feed, Measure

SAMPLES, BATCH = 22, 4


def lying_there(batch: Any) -> Any:
    """Read what is on the fake device, which is memory."""
    batch.wait()
    return np.frombuffer(ctypes.string_at(batch.pointer, batch.nbytes), np.float32).reshape(batch.shape)


def doubling(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {"y": 2 * lying_there(inputs["x"])}


def overwriting(inputs: Mapping[str, Any]) -> dict[str, Any]:
    answer = doubling(inputs)
    ctypes.memset(inputs["x"].pointer, 1, 4)
    return answer


def files(folder: str) -> dict[str, str]:
    np.save(f"{folder}/x.npy", np.random.default_rng(1).standard_normal((SAMPLES, 3)).astype(np.float32))
    return {"x": f"{folder}/x.npy"}


def proof(run: Any) -> Mapping[str, Any]:
    fed = Fed(lambda batch: batch, run, "cuda:0", lying_there)
    contestant = Contestant(lambda _: lambda: None, None, lambda result: result, dict, {}, fed=fed)
    with tempfile.TemporaryDirectory() as folder:
        request = Feed(files(folder), SAMPLES, 5, "", whole_batches=True)
        return FedCalls(contestant, fed, Choice(), request, BATCH).proof()


@on_fakes
def test_every_sample_arrives_once_and_answers_belong_to_what_went_in() -> None:
    machine = Machine()
    found = proof(doubling)
    require_each_once(found, SAMPLES, BATCH)
    assert len(found[NUMBERS]) == SAMPLES // BATCH * BATCH
    assert found["0/seen/x"].any()
    np.testing.assert_array_equal(found["0/got/y"], 2 * found["0/seen/x"])
    assert machine.outstanding() == 0


@on_fakes
def test_a_batch_that_changes_on_the_device_while_it_is_worked_on_is_found() -> None:
    machine = Machine()
    assert proof(overwriting)[WRONG_SAMPLES][0] == 2  # of the first row of each batch that is called on
    assert machine.outstanding() == 0


def timed_copies(fed: Fed, done: Any) -> TimedCopies | None:
    contestant = Contestant(lambda _: lambda: None, done, lambda result: result, dict, {}, fed=fed)
    with tempfile.TemporaryDirectory() as folder:
        calls = FedCalls(contestant, fed, Choice(), Feed(files(folder), SAMPLES, 5, ""), BATCH)
        calls.open()
        calls.measure(Measure(seconds=0.01))
        assert calls.feeding is not None
        timed = calls.feeding
        calls.time_copies()
        calls.close()
        assert msgspec.structs.replace(calls.feeding, copies=None) == timed  # of other calls than those
        return calls.feeding.copies


@on_fakes
def test_copies_to_a_device_are_timed_over_further_calls() -> None:
    machine = Machine()

    def on_stream(batch: Any) -> Any:
        batch.__dlpack__(stream=machine.stream)
        return batch

    found = timed_copies(Fed(on_stream, lambda _: machine.kernel(100_000), "cuda:0"), lambda _: machine.synchronize())
    assert found is not None
    assert (found.absent, found.copies >= 4) == ("", True)
    assert found.hidden_share is not None
    assert 0 <= found.hidden_share <= 1
    assert machine.outstanding() == 0


@on_fakes
def test_where_no_stream_is_named_copies_are_absent_with_the_reason() -> None:
    machine = Machine()
    found = timed_copies(Fed(lambda batch: batch, doubling, "cuda:0", lying_there), None)
    assert found is not None
    assert (found.copies, found.hidden_share) == (0, None)
    assert "stream" in found.absent
    assert machine.outstanding() == 0


def test_on_a_cpu_no_copies_are_timed_and_the_reason_is_that_there_are_none() -> None:
    found = timed_copies(Fed(np.from_dlpack, lambda inputs: {"y": 2 * inputs["x"]}), None)
    assert found is not None
    assert (found.copies, found.hidden_share) == (0, None)
    assert "host memory" in found.absent


def test_the_way_to_the_device_is_part_of_staging_and_of_the_wait() -> None:
    pipeline = NativePipeline(Job({}, SAMPLES, BATCH, 5), Fed(lying_there, doubling, "cuda:0"))
    stalls: Any = SimpleNamespace(source_ns=1, staging_ns=20, no_slot_ns=300, link_ns=4000)
    pipeline._feeders["x"] = SimpleNamespace(stalls=stalls, close=lambda: None)  # type: ignore[assignment]
    assert pipeline.waits_ns() == {WAITED: 4321, "source_ns": 1, "staging_ns": 4020, "no_slot_ns": 300}


def test_pipelines_of_frameworks_hand_over_host_memory_only() -> None:
    with pytest.raises(Unsupported, match="feed=dataloader"):
        Choice("dataloader").opened(Job({}, SAMPLES, BATCH, 1), Fed(lying_there, doubling, "cuda:0"))
