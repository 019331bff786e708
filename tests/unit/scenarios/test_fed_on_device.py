"""Batches that a contestant takes on a device are proven there, against the fake driver."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cuda_on_fakes import Machine, on_fakes
from fairlap.data.native_pipeline import NativePipeline
from fairlap.data.pipeline import NUMBERS, WAITED, Job
from fairlap.data.pipeline_choice import Choice
from fairlap.frameworks.contract import Contestant, Fed, Unsupported
from fairlap.race.equal_work.fed_check import require_each_once
from fairlap.scenarios.calls.fed_latency import WRONG_SAMPLES, FedCalls
from fairlap.scenarios.calls.latency_messages import Feed

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


def test_the_way_to_the_device_is_part_of_staging_and_of_the_wait() -> None:
    pipeline = NativePipeline(Job({}, SAMPLES, BATCH, 5), Fed(lying_there, doubling, "cuda:0"))
    stalls: Any = SimpleNamespace(source_ns=1, staging_ns=20, no_slot_ns=300, link_ns=4000)
    pipeline._feeders["x"] = SimpleNamespace(stalls=stalls, close=lambda: None)  # type: ignore[assignment]
    assert pipeline.waits_ns() == {WAITED: 4321, "source_ns": 1, "staging_ns": 4020, "no_slot_ns": 300}


def test_pipelines_of_frameworks_hand_over_host_memory_only() -> None:
    with pytest.raises(Unsupported, match="feed=dataloader"):
        Choice("dataloader").opened(Job({}, SAMPLES, BATCH, 1), Fed(lying_there, doubling, "cuda:0"))
