"""Batches that a feeder copies to a device arrive whole at PyTorch and CuPy, and no slot is written to too early."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from fairlap.engine import Feeder

SAMPLES = np.arange(4096 * 1024, dtype=np.float32).reshape(4096, 1024)
BATCH = 256
MATRIX = 4096  # a product of two of this size lasts longer than a batch's copy


def delivered(feeder: Feeder, take: Any) -> Any:
    out = []
    for batch in feeder:
        out.append(take(batch))
        batch.release()
    return out


@pytest.mark.parametrize("slots", [1, 2, 4])
@pytest.mark.parametrize("threads", [1, 3])
def test_torch_gets_every_batch_whole_while_its_stream_lags_behind(
    torch: Any, stream: Any, slots: int, threads: int
) -> None:
    heavy = torch.randn(MATRIX, MATRIX, device="cuda")

    def take(batch: Any) -> Any:
        tensor = torch.from_dlpack(batch)
        assert tensor.is_cuda
        torch.matmul(heavy, heavy)  # the copy below is enqueued long before it runs
        return tensor.clone()

    with Feeder(SAMPLES, batch=BATCH, slots=slots, threads=threads, device="cuda:0") as feeder:
        copies = delivered(feeder, take)
        stalls = feeder.stalls
    np.testing.assert_array_equal(torch.cat(copies).cpu().numpy(), SAMPLES)
    parts = stalls.consumer_ns + stalls.source_ns + stalls.staging_ns + (stalls.link_ns or 0) + stalls.no_slot_ns
    assert parts == pytest.approx(stalls.wall_ns, rel=0.01)


@pytest.mark.parametrize(("slots", "least", "most"), [(1, 0.0, 0.1), (4, 0.9, 1.0)])
def test_copies_are_hidden_behind_long_work_unless_each_waits_for_it(
    torch: Any, stream: Any, slots: int, least: float, most: float
) -> None:
    heavy = torch.randn(MATRIX, MATRIX, device="cuda")
    with Feeder(SAMPLES, batch=BATCH, slots=slots, epochs=4, device="cuda:0") as feeder:
        feeder.time_copies()
        for batch in feeder:
            tensor = torch.from_dlpack(batch)
            torch.matmul(heavy, heavy)
            tensor.sum()
            del tensor
            batch.release()
        torch.cuda.synchronize()
        times = feeder.copy_times
    assert times is not None
    assert times.copies >= 32
    assert least <= times.hidden_ns / times.copied_ns <= most


def test_a_second_stream_that_the_release_names_is_waited_for(torch: Any, stream: Any) -> None:
    side = torch.cuda.Stream()
    heavy = torch.randn(MATRIX, MATRIX, device="cuda")
    torch.cuda.synchronize()
    copies = []
    with Feeder(SAMPLES, batch=BATCH, slots=2, device="cuda:0") as feeder:
        for batch in feeder:
            tensor = torch.from_dlpack(batch)
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                torch.matmul(heavy, heavy)
                copies.append(tensor.clone())
            del tensor
            batch.release([side.cuda_stream])
    torch.cuda.synchronize()
    np.testing.assert_array_equal(torch.cat(copies).cpu().numpy(), SAMPLES)


def test_cupy_gets_every_batch_whole(cupy: Any) -> None:
    with cupy.cuda.Stream(non_blocking=True) as side:
        with Feeder(SAMPLES, batch=BATCH, slots=2, device="cuda:0") as feeder:
            copies = delivered(feeder, lambda batch: cupy.from_dlpack(batch).copy())
        side.synchronize()
        np.testing.assert_array_equal(cupy.asnumpy(cupy.concatenate(copies)), SAMPLES)


@pytest.mark.parametrize("slots", [1, 2])
def test_jax_gets_every_batch_whole_while_its_own_stream_lags_behind(jax: Any, slots: int) -> None:
    """Write to a slot early, to show whether it is kept until JAX's own stream has read it.

    JAX names a stream when it takes a batch, and computes on another. Whether a slot is kept until that one has read it
    is not known; a batch that was written to too early shows here.
    """
    numpy = jax.numpy
    device = next(each for each in jax.devices() if each.platform == "gpu")
    heavy = jax.device_put(np.random.default_rng(1).normal(size=(MATRIX, MATRIX)).astype(np.float32), device)
    lagging = jax.jit(lambda x, y: x + 0 * (y @ y)[0, 0])  # reads the batch after a long product
    lagging(numpy.zeros((BATCH, 1024)), heavy).block_until_ready()
    with Feeder(SAMPLES, batch=BATCH, slots=slots, device="cuda:0") as feeder:
        copies = delivered(feeder, lambda batch: lagging(jax.dlpack.from_dlpack(batch), heavy))
    np.testing.assert_array_equal(np.concatenate([np.asarray(each) for each in copies]), SAMPLES)


def test_a_consumer_without_streams_waits_first(torch: Any) -> None:
    with Feeder(SAMPLES, batch=BATCH, slots=2, device="cuda:0") as feeder:
        for number, batch in enumerate(feeder):
            batch.wait()
            tensor = torch.utils.dlpack.from_dlpack(batch.__dlpack__(stream=-1))
            torch.cuda.synchronize()
            assert float(tensor[0, 0]) == number * BATCH * 1024
            del tensor
            batch.release()


def test_a_device_that_nobody_has_used_is_not_started(torch: Any) -> None:
    code = (
        "import numpy as np\n"
        "from fairlap.engine import Feeder\n"
        "from fairlap.errors import InvalidRequest\n"
        "try:\n"
        "    Feeder(np.zeros((8, 8)), batch=4, device='cuda:0')\n"
        "except InvalidRequest as error:\n"
        "    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "nothing has used CUDA device 0 yet" in run.stdout
