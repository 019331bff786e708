"""A cold cache is really cold, and a replayed graph is really the call."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from fairlap.engine import time_calls
from fairlap.engine.cuda.cold_cache import ColdCache
from fairlap.engine.cuda.device_completion import device_completion
from fairlap.engine.cuda.request import Rotate
from fairlap.engine.cuda.stream_calls import time_on_stream
from fairlap.engine.measurement import CallableRaised
from fairlap.errors import InvalidRequest, NotAvailable


@pytest.fixture
def small(torch: Any) -> tuple[Any, Any]:
    """Two tensors that together fit into the cache of any recent device."""
    return torch.ones(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")


def test_after_a_flush_the_same_copy_takes_longer(stream: Any, small: tuple[Any, Any]) -> None:
    source, target = small
    warm = time_on_stream(lambda: target.copy_(source), stream=stream, samples=200, calls_per_sample=1)
    cold = time_on_stream(lambda: target.copy_(source), stream=stream, samples=200, cache="flush")
    assert "flushed" in cold.settings["cache"]
    assert cold.calls_per_sample == 1
    assert cold.median_ns > warm.median_ns, f"{warm}\n{cold}"


def test_calls_that_the_host_times_take_longer_with_a_cold_cache(torch: Any) -> None:
    source, target = torch.ones(1 << 21, device="cuda"), torch.empty(1 << 21, device="cuda")
    target.copy_(source)
    done, cold = device_completion(0), ColdCache(0)
    given: dict[str, Any] = {"done": done, "samples": 2000, "calls_per_sample": 1}
    warm_ns = time_calls(lambda: target.copy_(source), **given).median_ns
    cold_ns = time_calls(lambda: target.copy_(source), before_each=cold.make_cold, **given).median_ns
    assert cold_ns > warm_ns
    assert cold_ns < warm_ns + 50e3, "the flush is timed too"


def test_rotated_arguments_are_cold_too(torch: Any, stream: Any, small: tuple[Any, Any]) -> None:
    source, target = small
    cache_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    count = max(2, 4 * cache_bytes // (2 * source.nbytes) + 1)
    sets = [(torch.empty_like(target), torch.ones_like(source)) for _ in range(count)]
    warm = time_on_stream(lambda: target.copy_(source), stream=stream, samples=300, calls_per_sample=8)
    cold = time_on_stream(
        lambda to, of: to.copy_(of), stream=stream, samples=300, calls_per_sample=8, cache=Rotate(sets), warmup=count
    )
    assert "W_ROTATION_SMALL" not in {notice.code for notice in cold.warnings}
    assert cold.median_ns > warm.median_ns, f"{warm}\n{cold}"


def test_rotated_arguments_that_fit_into_the_cache_are_refused(stream: Any, small: tuple[Any, Any]) -> None:
    source, target = small
    with pytest.raises(InvalidRequest) as caught:
        time_on_stream(lambda to, of: to.copy_(of), stream=stream, samples=10, cache=Rotate([small, (target, source)]))
    assert caught.value.code == "E_ROTATION"


def test_a_chain_of_launches_becomes_one_graph_of_as_many_nodes(torch: Any, stream: Any) -> None:
    tensor = torch.zeros(64, device="cuda")

    def work() -> None:
        for _ in range(50):
            tensor.add_(1)

    replayed = time_on_stream(work, stream=stream, samples=50, graph=True, calls_per_sample=1)
    called = time_on_stream(work, stream=stream, samples=50, gate="none", calls_per_sample=1)
    assert replayed.settings["graph"] == "50 nodes"
    assert not np.isnan(replayed.device_span_ns).any(), str(replayed)
    assert replayed.median_ns < called.median_ns
    assert np.median(replayed.host_issue_ns) < np.median(called.host_issue_ns)


def test_a_replay_does_the_work(torch: Any, stream: Any) -> None:
    tensor = torch.zeros(1, device="cuda")
    result = time_on_stream(lambda: tensor.add_(1), stream=stream, samples=10, warmup=3, calls_per_sample=1, graph=True)
    stream.synchronize()
    # Capturing runs nothing; the first three calls are real ones.
    assert tensor.item() == result.warm_up.calls + result.samples


def test_a_call_that_cannot_be_captured_leaves_the_stream_usable(torch: Any, stream: Any) -> None:
    tensor = torch.ones(10, device="cuda")
    with pytest.raises((NotAvailable, CallableRaised)):
        time_on_stream(lambda: tensor.sum().item(), stream=stream, samples=10, graph=True)
    assert tensor.sum().item() == 10
    assert time_on_stream(lambda: tensor.add_(1), stream=stream, samples=10, graph=True).samples == 10


def test_the_default_stream_cannot_be_captured(torch: Any) -> None:
    tensor = torch.ones(10, device="cuda")
    with pytest.raises(NotAvailable, match="default stream"):
        time_on_stream(lambda: tensor.add_(1), stream=torch.cuda.default_stream(), samples=10, graph=True)


def test_replays_write_no_memory_that_torch_gave_to_others_meanwhile(torch: Any, stream: Any) -> None:
    """Replay a graph while others get memory that a captured call freed.

    Found on an H100: PyTorch's allocator gives such memory to the next who asks, and replays then write it. Its own
    captures allocate from a pool of their own, as ours do since.
    """
    source = torch.ones(1 << 20, device="cuda")

    def filled_meanwhile() -> list[Any]:
        time.sleep(0.5)  # until the capture is over, which would take part in it
        with torch.cuda.stream(stream):
            return [torch.full_like(source, 7) for _ in range(16)]

    with ThreadPoolExecutor(1) as pool:
        filling = pool.submit(filled_meanwhile)
        time_on_stream(lambda: (source + 1) * 2, stream=stream, seconds=2.0, calls_per_sample=1, graph=True)
        kept = filling.result()
    torch.cuda.synchronize()
    damaged = sum(not bool((each == 7).all()) for each in kept)
    assert damaged == 0, f"replays wrote to {damaged} of {len(kept)} tensors"


def test_replays_write_no_memory_that_cupy_gave_to_others_meanwhile(cupy: Any) -> None:
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        source = cupy.ones(1 << 20, dtype=cupy.float32)

        def filled_meanwhile() -> list[Any]:
            time.sleep(0.5)
            with stream:
                return [cupy.full_like(source, 7) for _ in range(16)]

        with ThreadPoolExecutor(1) as pool:
            filling = pool.submit(filled_meanwhile)
            time_on_stream(lambda: (source + 1) * 2, stream=stream, seconds=2.0, calls_per_sample=1, graph=True)
            kept = filling.result()
    stream.synchronize()
    damaged = sum(not bool((each == 7).all()) for each in kept)
    assert damaged == 0, f"replays wrote to {damaged} of {len(kept)} arrays"
