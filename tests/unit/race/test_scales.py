"""Several numbers of threads and ranks make works of one plan; what cannot be raced at them is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from fairlap.errors import InvalidRequest
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_file import load_plan, save_plan
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.request.fields.load import LoadRequest
from fairlap.request.fields.scale import Scale
from fairlap.request.names import Contestants, Devices
from fairlap.request.race_request import RaceRequest
from fairlap.request.units import Share

CORES = frozenset(range(8))


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(CORES))


def planned(*models: str, on: str = "torch,jax", **more: Any) -> Plan:
    return plan_of(RaceRequest(models=models or ("mlp",), contestants=Contestants(on), **{"blocks": 2, **more}))


def scales(plan: Plan) -> list[Scale | None]:
    return [work.scale for work in plan.works]


def refusal(*models: str, **more: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as raised:
        planned(*models, **more)
    return raised.value


@pytest.mark.parametrize("threads", [3, (3,)])
def test_one_number_of_threads_makes_the_plan_that_it_always_made(threads: int | tuple[int, ...]) -> None:
    plan = planned(threads=threads, seed=1)
    assert scales(plan) == [None]
    assert plan.threads == plan.threads_of(plan.works[0]) == 3
    assert "thread" not in plan.works[0].label
    assert {len(block.cores) for block in plan.blocks} == {3}


def test_several_numbers_of_threads_are_works_of_one_plan_each_on_as_many_cores() -> None:
    plan = planned("mlp", "convnet", threads=(4, 1), seed=1)
    assert scales(plan) == [Scale(1), Scale(4)] * 2
    assert plan.threads == 4
    assert plan.threads_of_works == (1, 4)
    assert len({work.label for work in plan.works}) == 4
    assert all(len(block.cores) == plan.threads_of(plan.works[block.work]) for block in plan.blocks)
    assert {work.batch for work in plan.works if work.model == "mlp"} == {planned("mlp").works[0].batch}


def test_ranks_share_the_batch_in_strong_scaling_and_each_has_one_in_weak_scaling() -> None:
    asked: dict[str, Any] = {"mode": "train", "batch": 64, "threads": 2, "processes": (1, 2, 4)}
    strong, weak = planned(**asked), planned(**asked, scaling="weak")
    assert [work.batch for work in strong.works] == [64, 64, 64]
    assert [work.batch for work in weak.works] == [64, 128, 256]
    assert {work.without_scale() for work in weak.works} == {work.without_scale() for work in strong.works}
    assert {(plan.works[block.work].scale, len(block.cores)) for plan in (strong,) for block in plan.blocks} == {
        (Scale(2, 1), 2),
        (Scale(2, 2), 4),
        (Scale(2, 4), 8),
    }


def test_threads_and_ranks_are_raced_in_every_combination() -> None:
    plan = planned(batch=8, threads=(1, 2), processes=(1, 2))
    assert scales(plan) == [Scale(1, 1), Scale(2, 1), Scale(1, 2), Scale(2, 2)]


def test_without_a_number_of_threads_the_ranks_of_a_machine_share_its_cores() -> None:
    assert scales(planned(batch=8, processes=(1, 4))) == [Scale(2, 1), Scale(2, 4)]


def test_ranks_go_to_hosts_in_turn_and_bind_no_cores_of_this_machine() -> None:
    plan = planned(batch=32, threads=4, processes=(1, 2, 4), hosts=("a", "b"))
    assert [work.scale.hosts for work in plan.works if work.scale] == [("a",), ("a", "b"), ("a", "b")]
    assert {block.cores for block in plan.blocks} == {tuple(sorted(CORES))}
    assert scales(planned(batch=8, threads=64, hosts=("a", "b"))) == [Scale(64, 2, "strong", ("a", "b"))]


@pytest.mark.parametrize(
    ("device", "processes", "hosts", "devices"),
    [
        ("cuda", (1, 4), None, ("cuda:0", "cuda:1", "cuda:2", "cuda:3")),
        ("cuda:2,cuda:0", (1, 2), None, ("cuda:2", "cuda:0")),
        ("cuda", (4,), ("a", "b"), ("cuda:0", "cuda:1")),
        ("cuda:1", (2,), ("a", "b"), ()),
        ("cuda", (1,), None, ()),
    ],
)
def test_each_rank_of_a_host_has_a_gpu(
    device: str, processes: tuple[int, ...], hosts: tuple[str, ...] | None, devices: tuple[str, ...]
) -> None:
    plan = planned(batch=8, mode="train", threads=1, processes=processes, hosts=hosts, device=Devices(device))
    first = device if device.startswith("cuda:1") else (devices or ("cuda:0",))[0]
    assert (plan.device, plan.devices, plan.all_devices) == (first, devices, ",".join(devices or (first,)))
    for work in plan.works:
        on_a_host = 1 if work.scale is None else -(-work.scale.ranks // len(hosts or ("here",)))
        assert plan.devices_of(work) == (devices[:on_a_host] or (first,))


@pytest.mark.parametrize(
    ("device", "processes", "hosts"),
    [
        ("cuda:0", (2,), None),
        ("cuda:0,cuda:1", (4,), None),
        ("cuda:0,cuda:1", (4,), ("a",)),
        ("cuda:0,cuda:1,cuda:2", (1, 2), None),
        ("cuda:0,cuda:1", None, None),
        ("cuda:0,cuda:1", (2,), ("a", "b")),
    ],
)
def test_as_many_gpus_are_named_as_ranks_of_a_host(
    device: str, processes: tuple[int, ...] | None, hosts: tuple[str, ...] | None
) -> None:
    error = refusal(mode="train", batch=8, threads=1, processes=processes, hosts=hosts, device=Devices(device))
    assert error.code == "E_SCALE"
    assert device in str(error)


def test_a_plan_of_several_scales_survives_being_saved(tmp_path: Path) -> None:
    plan = planned(batch=8, threads=(1, 2), processes=(1, 2), hosts=("a", "b"))
    save_plan(plan, tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json") == plan


def test_a_batch_that_ranks_cannot_share_names_those_that_would_do() -> None:
    error = refusal(mode="train", batch=10, threads=1, processes=(1, 4))
    assert error.code == "E_SCALE"
    assert "8 or 12" in str(error)
    assert scales(planned(mode="train", batch=10, threads=1, processes=(1, 4), scaling="weak"))


@pytest.mark.parametrize(("batch", "fitting"), [(8, (6, 12)), (3, (6,)), (7, (6, 12))])
def test_batches_that_would_do_are_those_that_all_numbers_of_ranks_can_share(
    batch: int, fitting: tuple[int, ...]
) -> None:
    error = refusal(mode="train", batch=batch, threads=1, processes=(1, 2, 3))
    assert error.code == "E_SCALE"
    assert f"--batch {' or '.join(map(str, fitting))}," in str(error)
    for each in fitting:
        assert scales(planned(mode="train", batch=each, threads=1, processes=(1, 2, 3)))


def test_more_cores_than_there_are_are_refused() -> None:
    assert refusal(batch=8, threads=4, processes=(1, 4)).code == "E_SCALE"
    assert refusal(threads=(1, 9)).code == "E_REQUEST"


RANKS: dict[str, Any] = {"threads": 1, "processes": (1, 2), "batch": 8}
TRAINING = {**RANKS, "mode": "train"}


@pytest.mark.parametrize(
    "more",
    [
        {**RANKS, "load": LoadRequest(p99=None)},
        {**TRAINING, "to_score": Share("90%")},
        {**RANKS, "data": "synthetic"},
        {**RANKS, "max_batch": 64},
        {**RANKS, "min_memory": True},
        {**RANKS, "profile": True},
        {**RANKS, "recompile": (4,)},
        {**RANKS, "commands": {"old": "true"}},
        {**RANKS, "mode": "grad"},
        {**RANKS, "mode": ("train", "grad")},
        {**RANKS, "on": "torch:best"},
        {"threads": (1, 2), "on": "torch:best"},
        {"threads": (1, 2), "on": "mxnet:threads=1"},
        {"scaling": "weak"},
        {"threads": (1, 2), "scaling": "weak"},
        {**RANKS, "hosts": ("a", "a")},
        {**RANKS, "hosts": ()},
        {"hosts": ()},
        {**RANKS, "hosts": ("a", "")},
        {**RANKS, "hosts": ("-oProxyCommand=true",)},
        {**RANKS, "on": "torch,onnxruntime"},
        {**RANKS, "on": "torch:over=http"},
        {"threads": 1, "hosts": ("a",), "batch": 8, "on": "onnxruntime"},
    ],
)
def test_what_has_no_meaning_at_several_scales_is_refused(more: dict[str, Any]) -> None:
    assert refusal(**more).code == "E_SCALE"


def test_ranks_do_not_share_a_gpu() -> None:
    error = refusal(mode="train", processes=(1, 2), device="cuda:0", batch=8)
    assert (error.code, len(str(error).splitlines())) == ("E_SCALE", 1)
    shared: dict[str, Any] = {"mode": "train", "batch": 8, "processes": 2}
    assert planned(**shared, device="cuda:0", hosts=("one", "other")).device == "cuda:0"


def test_contestants_without_ranks_are_named_alone() -> None:
    error = refusal(**RANKS, on="torch,onnxruntime,mpi,litert")
    assert str(error).startswith("onnxruntime, litert: ")
    assert len(planned(threads=(1, 2), on="torch,onnxruntime").works) == 2
    assert scales(planned(threads=1, processes=1, on="torch,onnxruntime", batch=8)) == [Scale(1)]


def test_a_variant_that_exists_for_training_alone_is_refused_in_other_modes() -> None:
    assert refusal(**RANKS, on="torch,torch:fsdp").code == "E_CONTESTANT"
    assert refusal(mode=("train", "infer"), on="torch:fsdp").code == "E_CONTESTANT"
    assert len(planned(**TRAINING, on="torch,torch:fsdp").works) == 2


def test_answers_token_by_token_have_no_ranks() -> None:
    assert refusal("characters_generate", **RANKS).code == "E_SCALE"


@pytest.mark.parametrize("model", ["gemm-m64-n1-k1216", "callable"])
def test_models_of_fixed_sizes_have_no_ranks(model: str) -> None:
    assert refusal(model, threads=1, processes=2).code == "E_SCALE"


def test_statistics_of_a_batch_have_no_ranks_in_training_and_have_them_in_inference() -> None:
    assert refusal("mnist", **TRAINING).code == "E_SCALE"
    assert len(planned("mnist", **RANKS).works) == 2


def test_a_count_below_one_is_refused() -> None:
    assert refusal(threads=(0, 1)).code == "E_REQUEST"
    assert refusal(batch=8, processes=(0, 1)).code == "E_REQUEST"
