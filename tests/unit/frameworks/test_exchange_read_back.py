"""A rank of the real frameworks that does not exchange as its device asks for is refused.

World size 1, on the CPU: each framework is asked over what it really exchanges.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from fairlap.frameworks.adapter_parts.ranks import jax_ranks, tensorflow_ranks, torch_ranks
from fairlap.frameworks.contract import Settings, Unsupported
from fairlap.request.fields.scale import Rank
from machine_marks import needs_package

ON_CPU, ON_GPU = Settings(1), Settings(1, device="cuda:0")


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Join a world of one, as torchrun names it, over gloo."""
    dist = pytest.importorskip("torch.distributed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    numbers = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": "0", "WORLD_SIZE": "1"}
    for name, value in numbers.items():
        monkeypatch.setenv(name, value)
    torch_ranks.join(ON_CPU)
    yield dist
    dist.destroy_process_group()


@pytest.mark.slow
@needs_package("torch")
def test_torch_is_refused_that_fell_back_to_gloo_or_to_the_processor(group: Any) -> None:
    import torch

    model = torch.nn.Linear(2, 2)
    assert torch_ranks.shared(model, ON_CPU)[1] == "DistributedDataParallel, gloo, 1 ranks"
    with pytest.raises(Unsupported, match=r"nccl; this one has gloo"):
        torch_ranks.shared(model, ON_GPU)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group, "get_backend", lambda: "nccl")
        with pytest.raises(Unsupported, match="on cpu"):
            torch_ranks.exchange_in_force(model.parameters(), ON_GPU)
        on_gpu = [SimpleNamespace(device=SimpleNamespace(type="cuda"))]
        assert torch_ranks.exchange_in_force(on_gpu, ON_GPU) == "nccl, 1 ranks"


@needs_package("torch")
def test_a_build_of_torch_without_nccl_is_refused_before_it_waits_for_other_ranks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dist = pytest.importorskip("torch.distributed")
    monkeypatch.setattr(dist, "is_nccl_available", lambda: False)
    monkeypatch.setattr(dist, "init_process_group", lambda *_, **__: pytest.fail("it waits"))
    with pytest.raises(Unsupported, match="no nccl"):
        torch_ranks.join(ON_GPU)


@needs_package("torch")
def test_torch_is_bound_to_its_gpu_and_nothing_is_left_to_its_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that PyTorch's own signature takes (2.13, torch/distributed/distributed_c10d.py)."""
    import inspect

    import torch

    dist = pytest.importorskip("torch.distributed")
    signature, joined = inspect.signature(dist.init_process_group), []
    monkeypatch.setattr(dist, "is_backend_available", lambda name: name == "nccl")
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: joined.append(("device", device)))
    monkeypatch.setattr(dist, "init_process_group", lambda *a, **k: joined.append(("group", signature.bind(*a, **k))))
    torch_ranks.join(ON_GPU)
    (_, device), (_, bound) = joined
    assert device == bound.arguments["device_id"] == torch.device("cuda", 0)
    assert bound.arguments["backend"] == "nccl"
    assert bound.arguments["timeout"].total_seconds() == 1800


@pytest.mark.slow
@needs_package("jax")
def test_jax_is_refused_where_a_rank_has_no_such_device(monkeypatch: pytest.MonkeyPatch) -> None:
    import jax

    own = jax.devices("cpu")[0]
    assert jax_ranks.RankMesh(own).in_force.endswith("1 ranks")
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(Unsupported, match=r"of 2 ranks, \[1\]"):
        jax_ranks.RankMesh(own)


@pytest.mark.slow
@needs_package("jax")
def test_a_rank_of_jax_shows_the_device_that_it_sees_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """By jax 0.10.2, whose ``initialize`` keeps these devices visible alone (jax/_src/distributed.py)."""
    import inspect

    import jax

    signature, asked = inspect.signature(jax.distributed.initialize), []
    monkeypatch.setattr(jax.distributed, "is_initialized", lambda: False)
    monkeypatch.setattr(jax.distributed, "initialize", lambda *a, **k: asked.append(signature.bind(*a, **k).arguments))
    jax_ranks.join(Rank(1, 2, "127.0.0.1:1"), "cuda:0")
    assert (asked[0]["local_device_ids"], asked[0]["num_processes"], asked[0]["process_id"]) == ([0], 2, 1)


@needs_package("jax")
def test_the_service_of_jax_is_reached_from_other_hosts_and_else_from_this_one_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Debian writes a host's name as 127.0.1.1 into its /etc/hosts (Debian Reference, 5.1.1)."""
    import jax

    bound = []
    monkeypatch.setattr(jax.distributed, "is_initialized", lambda: False)
    monkeypatch.setattr(
        jax.distributed, "initialize", lambda *_, coordinator_bind_address, **__: bound.append(coordinator_bind_address)
    )
    for coordinator in ("127.0.0.1:7", "node1:8"):
        jax_ranks.join(Rank(0, 2, coordinator), "cuda:0")
    assert bound == ["127.0.0.1:7", "[::]:8"]


def strategy_with(*devices: str) -> Any:
    return SimpleNamespace(extended=SimpleNamespace(worker_devices=devices))


@pytest.mark.slow
@needs_package("tensorflow")
def test_tensorflow_is_refused_where_it_would_only_warn(monkeypatch: pytest.MonkeyPatch) -> None:
    import tensorflow as tf

    on_cpu = "/job:worker/replica:0/task:0/device:CPU:0"
    on_gpu = "/job:worker/replica:0/task:0/device:GPU:0"
    there = {"CPU": [on_cpu], "GPU": [on_gpu]}
    monkeypatch.setattr(
        tf.config, "list_logical_devices", lambda kind: [SimpleNamespace(name=name) for name in there[kind]]
    )
    tensorflow_ranks.require_devices(strategy_with(on_cpu), "cpu")
    monkeypatch.setattr(tf.test, "is_built_with_cuda", lambda: True)
    tensorflow_ranks.require_devices(strategy_with(on_gpu), "cuda")
    for devices in ((on_cpu,), (on_gpu, on_gpu.replace("GPU:0", "GPU:1")), ()):
        with pytest.raises(Unsupported, match="NCCL"):
            tensorflow_ranks.require_devices(strategy_with(*devices), "cuda")
    there["GPU"] = []  # of which the strategy does not know
    with pytest.raises(Unsupported, match="NCCL"):
        tensorflow_ranks.require_devices(strategy_with(on_gpu), "cuda")
    there["GPU"] = [on_gpu]
    monkeypatch.setattr(tf.test, "is_built_with_cuda", lambda: False)
    with pytest.raises(Unsupported):
        tensorflow_ranks.require_devices(strategy_with(on_gpu), "cuda")


@pytest.mark.slow
@needs_package("tensorflow")
def test_a_real_strategy_that_finds_no_gpu_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(Unsupported, match="TensorFlow has none"):
        tensorflow_ranks.strategy_of(Rank(0, 1, address, (address,)), "cuda:0")
