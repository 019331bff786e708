"""PyTorch's ranks train as one process does, and what their exchange costs is found."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.request.fields.scale import Scale
from fairlap.request.fields.training import AdamW, Schedule, Sgd, Training
from fairlap.request.work import Mode, Work
from fairlap.scenarios.process_result import ProcessResult
from machine_marks import needs_proc
from one_block import processes_of_one_block

pytestmark = [needs_proc, pytest.mark.timeout(900), pytest.mark.slow]

TRAININGS = {
    "sgd": Training(Sgd(lr=0.01, momentum=0.9, decay=0.0005)),
    "adamw": Training(AdamW(lr=0.001), Schedule("cosine", warmup=2, steps=100)),
}


def raced(
    names: str, model: str, *, training: str = "sgd", mode: Mode = "train", ranks: int = 2, batch: int = 8
) -> dict[str, ProcessResult]:
    if not is_importable(framework_named("torch")):
        pytest.skip("torch is not installed")
    how = TRAININGS[training] if mode == "train" else None
    work = Work(model, batch, mode, training=how, scale=Scale(1, ranks))
    return processes_of_one_block(names, work, seconds=0.3)


@pytest.mark.parametrize("model", ["digits", "characters"])
@pytest.mark.parametrize("training", TRAININGS)
def test_ranks_train_as_one_process_does(model: str, training: str) -> None:
    found = raced("torch,torch:fsdp", model, training=training)
    for name, how in (("torch", "DistributedDataParallel, gloo, 2 ranks"), ("torch:fsdp", "fully_shard")):
        result = found[name]
        assert (result.outcome, result.message) == ("finished", "")
        assert {error.when for error in result.errors} == {"before", "changed inputs", "after", "timed call"}
        assert how in result.in_force["ranks"]
        assert result.in_force["threads"] == "1"
        assert result.ranks is not None
        assert len(result.ranks.memory) == 2
        assert all(memory.bytes["peak"] > 0 for memory in result.ranks.memory)


def test_what_the_exchange_adds_is_known_by_turn() -> None:
    ranks = raced("torch", "digits")["torch"].ranks
    assert ranks is not None
    stepped = ranks.stepped
    assert not stepped.why
    assert len(stepped.together_ns) == 10
    assert [len(rank) for rank in stepped.alone_ns] == [10, 10]
    assert np.median(stepped.together_ns) > np.median(stepped.alone_ns[0])


def test_ranks_answer_their_parts_of_a_batch() -> None:
    result = raced("torch", "mlp", mode="infer", ranks=2)["torch"]
    assert (result.outcome, result.message) == ("finished", "")
    assert "2 ranks" in result.in_force["ranks"]
    assert all(error.right for error in result.errors)
    assert result.headline.samples > 0


def test_weights_are_divided_by_fsdp_alone() -> None:
    found = raced("torch,torch:fsdp", "characters", training="adamw")
    held = {}
    for name, result in found.items():
        assert result.ranks is not None
        held[name] = [memory.bytes["weights"] + memory.bytes["optimizer_state"] for memory in result.ranks.memory]
    assert held["torch"][0] == held["torch"][1]
    assert sum(held["torch:fsdp"]) < 1.2 * held["torch"][0]


def test_one_process_of_fsdp_says_that_nothing_is_divided() -> None:
    found = raced("torch,torch:fsdp", "digits", ranks=1)
    assert [notice.code for notice in found["torch:fsdp"].warnings if notice.code == "W_NOT_DIVIDED"]
    assert "one process" in found["torch:fsdp"].in_force["ranks"]
    assert "ranks" not in found["torch"].in_force
    assert "W_NOT_DIVIDED" not in {notice.code for notice in found["torch"].warnings}


def test_models_that_normalise_by_the_batch_are_refused() -> None:
    result = raced("torch", "mnist")["torch"]
    assert (result.outcome, result.code) == ("unsupported", "E_UNSUPPORTED")
