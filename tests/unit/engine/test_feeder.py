"""What a feeder delivers and lends, seen through NumPy."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.engine import BatchReleased, Feeder, FeedingFailed, RawFile


def delivered(feeder: Feeder) -> list[Any]:
    out = []
    for batch in feeder:
        out.append(np.from_dlpack(batch).copy())
        batch.release()
    feeder.close()
    return out


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"])
def test_a_npy_file_and_an_array_are_delivered_as_they_are(tmp_path: Path, dtype: str, threads: int) -> None:
    array = np.random.default_rng(1).integers(0, 2, (23, 3, 5)).astype(dtype)
    np.save(tmp_path / "samples.npy", array)
    for source in (array, tmp_path / "samples.npy", str(tmp_path / "samples.npy")):
        batches = delivered(Feeder(source, batch=4, threads=threads))
        assert [len(batch) for batch in batches] == [4, 4, 4, 4, 4, 3]
        together = np.concatenate(batches)
        assert together.dtype == array.dtype
        np.testing.assert_array_equal(together, array)


def test_a_raw_file_is_delivered_from_its_offset_on(tmp_path: Path) -> None:
    array = np.arange(60, dtype=np.int32).reshape(10, 6)
    (tmp_path / "samples.bin").write_bytes(b"header--" + array.tobytes())
    raw = RawFile(tmp_path / "samples.bin", "int32", (6,), offset=8)
    np.testing.assert_array_equal(np.concatenate(delivered(Feeder(raw, batch=4))), array)


def test_shuffled_epochs_differ_and_each_has_every_sample_once() -> None:
    array = np.arange(100)
    first, second = np.concatenate(delivered(Feeder(array, batch=8, seed=3, epochs=2))).reshape(2, 100)
    assert sorted(first) == sorted(second) == list(range(100))
    assert list(first) != list(second)
    assert list(first) != list(range(100))


def test_labels_from_a_second_feeder_with_the_same_seed_belong_to_the_samples() -> None:
    samples, labels = np.arange(50, dtype=np.float32), np.arange(50, dtype=np.int64)
    with Feeder(samples, batch=7, seed=5, threads=2) as images, Feeder(labels, batch=7, seed=5) as numbers:
        for image, number in zip(images, numbers, strict=True):
            np.testing.assert_array_equal(np.from_dlpack(image), np.from_dlpack(number).astype(np.float32))
            image.release()
            number.release()


def test_images_are_scaled_and_turned_as_numpy_would() -> None:
    images = np.random.default_rng(2).integers(0, 256, (9, 5, 4, 3), dtype=np.uint8)
    feeder = Feeder(images, batch=4, dtype="float32", scale=1 / 255, offset=-0.5, layout="nhwc_to_nchw")
    wanted = images.astype(np.float32) * np.float32(1 / 255) + np.float32(-0.5)
    np.testing.assert_array_equal(np.concatenate(delivered(feeder)), wanted.transpose(0, 3, 1, 2))


def test_bfloat16_is_rounded_as_the_frameworks_own_type_rounds() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="`make test` installs it and runs this")
    bits = np.random.default_rng(3).integers(0, 2**32, 20_000, dtype=np.uint32)
    values = bits.view(np.float32)
    values = values[~np.isnan(values)]
    with Feeder(values, batch=len(values), dtype="bfloat16") as feeder:
        batch = feeder.next()
        assert batch is not None
        ours = np.frombuffer(_bytes_at(batch.pointer, batch.nbytes), dtype=np.uint16)
        np.testing.assert_array_equal(ours, values.astype(ml_dtypes.bfloat16).view(np.uint16))
        batch.release()


def _bytes_at(pointer: int, count: int) -> bytes:
    import ctypes

    return ctypes.string_at(pointer, count)


def test_a_batch_says_what_it_is_and_lies_on_a_page() -> None:
    with Feeder(np.zeros((10, 3), np.float32), batch=4) as feeder:
        assert len(feeder) == 3
        batch = feeder.next()
        assert batch is not None
        assert (batch.number, batch.samples, batch.shape, batch.dtype, batch.nbytes) == (0, 4, (4, 3), "float32", 48)
        assert batch.pointer % 4096 == 0
        assert np.from_dlpack(batch).ctypes.data == batch.pointer
        assert batch.__dlpack_device__() == (1, 0)
        batch.release()


def test_a_consumer_gets_the_generation_of_dlpack_that_it_asks_for() -> None:
    with Feeder(np.zeros((4, 3), np.float32), batch=4) as feeder:
        batch = feeder.next()
        assert batch is not None
        assert '"dltensor"' in repr(batch.__dlpack__())
        assert '"dltensor"' in repr(batch.__dlpack__(max_version=(0, 8)))
        assert '"dltensor_versioned"' in repr(batch.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=False))
        for wrong in ({"dl_device": (2, 0)}, {"copy": True}):
            with pytest.raises(BufferError):
                batch.__dlpack__(**wrong)
        with pytest.raises(ValueError, match="stream"):
            batch.__dlpack__(stream=7)
        batch.release()


def test_a_capsule_that_nobody_took_gives_its_hold_back() -> None:
    with Feeder(np.zeros((40, 3), np.float32), batch=4, slots=2) as feeder:
        for batch in feeder:
            for version in (None, (1, 0)):
                del_me = batch.__dlpack__(max_version=version)
                del del_me
            batch.release()


def test_a_released_batch_is_refused() -> None:
    with Feeder(np.zeros((10, 3), np.float32), batch=4) as feeder:
        batch = feeder.next()
        assert batch is not None
        batch.release()
        batch.release()
        assert batch.released
        with pytest.raises(BatchReleased, match="batch 0"):
            np.from_dlpack(batch)
        with pytest.raises(BatchReleased):
            _ = batch.pointer


def test_a_slot_is_not_filled_again_while_a_tensor_made_from_it_lives() -> None:
    with Feeder(np.arange(1000, dtype=np.int64), batch=1, slots=2) as feeder:
        first = feeder.next()
        assert first is not None
        tensor = np.from_dlpack(first)
        first.release()
        for batch in feeder:
            batch.release()
        assert tensor[0] == 0


def test_a_tensor_outlives_the_feeder() -> None:
    feeder = Feeder(np.arange(10), batch=5)
    batch = feeder.next()
    assert batch is not None
    tensor = np.from_dlpack(batch)
    batch.release()
    with pytest.warns(ResourceWarning, match=": 0"):
        feeder.close()
    del feeder, batch
    gc.collect()
    assert list(tensor) == [0, 1, 2, 3, 4]


def test_holding_every_slot_is_an_error_that_says_so() -> None:
    with Feeder(np.arange(10), batch=1, slots=2) as feeder:
        held = [feeder.next(), feeder.next()]
        with pytest.raises(FeedingFailed, match="2 slots"):
            feeder.next(patience_s=0.01)
        held.clear()
        assert feeder.next() is not None


def test_a_file_that_shrinks_is_an_error_with_the_batch_number(tmp_path: Path) -> None:
    path = tmp_path / "samples.npy"
    np.save(path, np.zeros((1000, 100)))
    with Feeder(path, batch=1, slots=1, epochs=None) as feeder:
        assert feeder.next() is not None
        os.truncate(path, 200)
        with pytest.raises(FeedingFailed, match=r"batch \d+ .*samples\.npy"):
            delivered(feeder)


def test_a_label_that_does_not_fit_is_an_error_with_the_batch_and_the_sample() -> None:
    labels = np.array([1, 2, 3, 2**31, 5])
    with (
        Feeder(labels, batch=2, dtype="int32") as feeder,
        pytest.raises(FeedingFailed, match=r"batch 1.* sample 3.* int32"),
    ):
        delivered(feeder)


def waited_for_and_interrupted(feeder: Feeder) -> None:
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    feeder.next(patience_s=60)


def test_the_interpreter_runs_on_while_a_batch_is_waited_for_and_hears_ctrl_c() -> None:
    feeder = Feeder(np.arange(4), batch=1, slots=1)
    held = feeder.next()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        waited_for_and_interrupted(feeder)
    assert time.monotonic() - began < 30
    del held
    assert feeder.next() is not None
    feeder.close()


def test_who_waits_for_its_turn_hears_ctrl_c_and_is_as_patient_as_was_asked() -> None:
    feeder = Feeder(np.arange(4), batch=1, slots=1)
    held = feeder.next()
    other = threading.Thread(target=lambda: feeder.next(patience_s=60))
    other.start()
    with pytest.raises(FeedingFailed, match="1 slots"):
        feeder.next(patience_s=0.2)
    with pytest.raises(KeyboardInterrupt):
        waited_for_and_interrupted(feeder)
    assert other.is_alive()
    del held
    other.join()
    feeder.close()


def test_the_stall_times_add_up_to_the_wall_time() -> None:
    with Feeder(np.zeros((200, 1000), np.float32), batch=10) as feeder:
        for batch in feeder:
            time.sleep(0.005)
            batch.release()
        stalls = feeder.stalls
    parts = stalls.consumer_ns + stalls.source_ns + stalls.staging_ns + stalls.no_slot_ns
    assert parts == pytest.approx(stalls.wall_ns, rel=0.01)
    assert (stalls.batches, stalls.samples, stalls.bytes) == (20, 200, 800_000)
    assert stalls.consumer_ns >= 20 * 5_000_000


def test_a_closed_feeder_refuses_and_may_be_closed_again() -> None:
    feeder = Feeder(np.arange(10), batch=2, epochs=None)
    with pytest.raises(TypeError):
        len(feeder)
    feeder.close()
    feeder.close()
    with pytest.raises(FeedingFailed):
        feeder.next()


def test_two_threads_may_close_one_feeder() -> None:
    for _ in range(20):
        feeder = Feeder(np.arange(1000), batch=2, epochs=None, threads=2)
        feeder.next()
        closers = [threading.Thread(target=feeder._native.close) for _ in range(2)]
        for closer in closers:
            closer.start()
        for closer in closers:
            closer.join()
        feeder.close()


def test_a_forked_child_is_refused_the_stall_times_too_and_can_forget_the_feeder() -> None:
    with Feeder(np.arange(100_000), batch=1, epochs=None, threads=2) as feeder:
        for _ in range(20):
            batch = feeder.next()
            assert batch is not None
            child = os.fork()
            if child == 0:
                try:
                    with pytest.raises(FeedingFailed):
                        _ = feeder.stalls
                    feeder.close()
                    del feeder
                    batch.release()
                except BaseException:
                    os._exit(1)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            batch.release()


def test_patience_without_end_is_borne() -> None:
    with Feeder(np.arange(4), batch=2) as feeder:
        assert feeder.next(patience_s=float("inf")) is not None


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    array = np.arange(60, dtype=np.int32).reshape(10, 6)
    (tmp_path / "samples.bin").write_bytes(array.tobytes())
    raw = RawFile(tmp_path / "samples.bin", "int32", (np.int64(6),), samples=np.uint8(10))  # type: ignore[arg-type]
    fed = delivered(Feeder(raw, batch=np.int64(4), slots=np.uint8(2), seed=np.int16(3)))  # type: ignore[arg-type]
    assert sorted(np.concatenate(fed).ravel()) == list(range(60))
    images = np.full((4, 3), 200, np.uint8)
    (scaled,) = delivered(Feeder(images, batch=4, dtype="float32", scale=np.float32(0.5)))  # type: ignore[arg-type]
    np.testing.assert_array_equal(scaled, 100.0)


def test_a_batch_in_host_memory_goes_with_no_stream_and_is_there_at_once() -> None:
    with Feeder(np.zeros((10, 3)), batch=5) as feeder:
        batch = feeder.next()
        assert batch is not None
        batch.wait()
        with pytest.raises(ValueError, match="stream"):
            batch.release([7])
        assert not batch.released
        batch.release()
        assert feeder.stalls.link_ns is None
