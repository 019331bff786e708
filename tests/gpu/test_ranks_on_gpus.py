"""Ranks train over NCCL as one process does: a world of one on one card, and two ranks where there are two cards."""

from __future__ import annotations

import importlib.util

import pytest
from fairlap.engine import _native
from one_block import run_of_one_block

pytest.importorskip("msgspec", reason="races need msgspec")
pytest.importorskip("scipy", reason="verdicts need SciPy")

from fairlap.request.fields.scale import Scale
from fairlap.request.fields.training import Sgd, Training
from fairlap.request.work import Work
from fairlap.results.results import results_of

pytestmark = pytest.mark.usefixtures("frameworks")

TRAINING = Training(Sgd(lr=0.01, momentum=0.9))
OVER = {
    "torch": "DistributedDataParallel, nccl",
    "torch:fsdp": "fully_shard",
    "jax": "shard_map, nccl",
    "tensorflow:graph": "MultiWorkerMirroredStrategy, nccl",
}


def trained(name: str, ranks: int) -> None:
    if importlib.util.find_spec(name.partition(":")[0]) is None:
        pytest.skip(f"{name} is not here")
    devices = tuple(f"cuda:{number}" for number in range(ranks))
    scale = Scale(1, ranks, hosts=() if ranks > 1 else ("localhost",))
    work = Work("mlp", 8, "train", training=TRAINING, scale=scale)
    run = run_of_one_block(name, work, seconds=0.2, device=devices[0], devices=devices if ranks > 1 else ())
    [process], [row] = run.processes, results_of(run, "r").rows
    if process.outcome == "unsupported" and "CUDA" in process.message:
        pytest.skip(process.message)  # a build without CUDA
    assert process.outcome == "finished", process.message
    assert all(error.right for error in process.errors)
    assert OVER[name] in process.in_force["ranks"]
    assert "nccl" in process.in_force["ranks"]
    uuids = {each.rpartition(": ")[2] for each in process.in_force["gpu"].split("; ")}
    assert len(uuids) == ranks
    assert row.device == ",".join(devices)
    if ranks > 1:
        assert {key.partition(" ")[0] for key in row.gpu_memory_bytes} == set(devices)
        assert process.ranks is not None
        assert all(memory.bytes["driver"] > 2**20 for memory in process.ranks.memory)


@pytest.mark.parametrize("name", OVER)
def test_a_world_of_one_trains_over_nccl(name: str) -> None:
    trained(name, 1)


@pytest.mark.parametrize("name", OVER)
def test_two_ranks_train_over_nccl_each_on_its_own_gpu(name: str) -> None:
    if len({address for address, _ in _native.cuda_device_identities()}) < 2:
        pytest.skip("needs two GPUs")
    trained(name, 2)
