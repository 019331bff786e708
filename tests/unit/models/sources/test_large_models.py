"""A model's weights are mapped from files: opening and proving it takes little memory beside them."""

from __future__ import annotations

import mmap
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import pytest
from fairlap.frameworks.adapter_parts.onnx_graph import files_of, weights_in
from fairlap.launch import opened_source
from fairlap.launch.worker_lost import OomKills
from fairlap.models.array_files import safetensors
from fairlap.models.onnx_import import build, load_graph
from fairlap.models.sources import proof
from fairlap.models.sources.bundle import inputs_file, reference_file, weights_file
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.onnx_graphs import arrays_beside
from fairlap.models.sources.onnx_graphs.arrays_beside import DATA, with_arrays_beside
from fairlap.models.sources.onnx_graphs.imported_reference import imported_reference
from fairlap.models.sources.opening import Order
from fairlap.models.sources.proof import ROUNDING, InFloat64, outputs_of
from fairlap.request.fields.source import Source
from large_onnx import WEIGHTS, by_hand, layer_weights, layers_beside, opened_in_a_fresh_process
from machine_marks import needs_proc
from onnx_files import materials_of, opened, source_of
from workers_of_fake import environment

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
WIDTH = 400  # 640 kB for each matrix: more than stays in the graph
SEEDS = {"inputs": 1, "changed": 2}


def map_under(array: np.ndarray) -> mmap.mmap | None:
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return base if isinstance(base, mmap.mmap) else None


def wide(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: array.astype(np.float64) for name, array in weights.items()}


def test_the_reference_is_to_the_last_bit_that_of_all_weights_in_float64_at_once(tmp_path: Path) -> None:
    weights = layer_weights(3, WIDTH)
    folder, _ = opened(source_of(layers_beside(tmp_path / "m.onnx", weights), "batch=5"), tmp_path)
    for which in ("inputs", "changed"):
        x = safetensors.read(inputs_file(folder, which))["x"].astype(np.float64)
        expected = by_hand(wide(weights), x)
        assert np.array_equal(safetensors.read(reference_file(folder, which))["y"], expected)
    assert all(np.array_equal(array, weights[name]) for name, array in safetensors.read(weights_file(folder)).items())


@pytest.mark.parametrize("kept_bytes", [0, 2**40])
def test_a_weight_that_is_used_twice_is_the_same_whether_it_is_kept_or_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_bytes: int
) -> None:
    monkeypatch.setattr(sys.modules[build.__module__], "_KEPT_BYTES", kept_bytes)
    weights, x = layer_weights(2, 16), np.random.default_rng(0).standard_normal((3, 16), np.float32)
    read: list[str] = []

    class Counted(dict[str, np.ndarray]):
        def __getitem__(self, name: str) -> np.ndarray:
            read.append(name)
            return super().__getitem__(name)

    layers_beside(tmp_path / "m.onnx", weights)
    graph = load_graph(tmp_path / "m.onnx", dimensions={"batch": 3})
    found = build(graph, "numpy")(Counted(weights), {"x": x})["y"]
    assert np.array_equal(found, by_hand(wide(weights), x.astype(np.float64)))
    assert read == (["w0", "w1"] if kept_bytes else ["w0", "w1", "w0"])


@pytest.mark.parametrize("shape", [(1,), (7,), (64,), (65,), (3, 67)])
def test_weights_move_by_the_same_roundings_in_pieces_as_at_once(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]
) -> None:
    monkeypatch.setattr(proof, "_MOVED_AT_ONCE", 64)
    array = np.random.default_rng(3).standard_normal(shape, np.float32)
    rng = np.random.default_rng([1, *b"w"])
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-array.size // 8)), np.uint8), count=array.size)
    expected = array.astype(np.float64) * (1 + ROUNDING * (2.0 * bits.reshape(shape) - 1))
    assert np.array_equal(InFloat64({"w": array}, seed=1)["w"], expected)


def test_arrays_are_mapped_from_one_file_beside_the_graph_and_small_ones_stay_in_it(tmp_path: Path) -> None:
    weights = {**layer_weights(2, WIDTH)}
    path = layers_beside(tmp_path / "m.onnx", weights)
    folder, _ = opened(source_of(path, "batch=2"), tmp_path)
    assert (folder / "model.onnx").stat().st_size < 2000
    graph, forward = imported_reference(folder / "model.onnx")
    maps = {map_under(array) for array in graph.weights.values()}  # one for all, as each holds the file open
    assert None not in maps
    assert len(maps) == 1
    x = np.ones((2, WIDTH), np.float32)
    assert np.array_equal(outputs_of(forward, weights, {"x": x})["y"], by_hand(wide(weights), x.astype(np.float64)))
    small, _ = opened(source_of(layers_beside(tmp_path / "s.onnx", layer_weights(2, 8)), "batch=2"), tmp_path)
    assert not (small / DATA).exists()
    assert np.array_equal(load_graph(small / "model.onnx").weights["w1"], layer_weights(2, 8)["w1"])


def test_contestants_find_the_weights_beside_the_graph_without_a_copy(tmp_path: Path) -> None:
    session = pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")
    weights = layer_weights(2, WIDTH)
    materials = materials_of(source_of(layers_beside(tmp_path / "m.onnx", weights), "batch=2"), tmp_path)
    work = materials.workload("inputs")
    file = str(materials.folder / "model.onnx")
    assert files_of(work) == (Path(file), materials.folder / DATA)
    held = weights_in(file, work.weights)
    assert all(held[name] is work.weights[name] for name in weights)
    x = np.ones((2, WIDTH), np.float32)
    (got,) = session.InferenceSession(file, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    np.testing.assert_allclose(got, by_hand(weights, x), atol=1e-5)


def test_arrays_inside_of_a_large_graph_move_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = layer_weights(2, WIDTH)
    model = onnx.load_model(layers_beside(tmp_path / "m.onnx", weights))
    assert with_arrays_beside(model, tmp_path, tmp_path) is model
    assert not (tmp_path / DATA).exists()
    monkeypatch.setattr(arrays_beside, "_MOST_INSIDE_BYTES", 10**6)
    moved = with_arrays_beside(model, tmp_path, tmp_path)
    assert moved.ByteSize() < 2000
    (tmp_path / "moved.onnx").write_bytes(moved.SerializeToString())
    found = load_graph(tmp_path / "moved.onnx", dimensions={"batch": 1}).weights
    assert all(np.array_equal(found[name], array) for name, array in weights.items())
    assert all(int(entry.value) % 4096 == 0 for tensor in moved.graph.initializer
               for entry in tensor.external_data if entry.key == "offset")  # fmt: skip


def test_data_that_become_shorter_while_they_are_copied_are_one_error(tmp_path: Path) -> None:
    path = layers_beside(tmp_path / "m.onnx", layer_weights(2, WIDTH))
    with (tmp_path / WEIGHTS).open("r+b") as file:
        file.truncate(WIDTH * WIDTH * 4 + 100)
    with pytest.raises(Exception, match="external data") as refused:
        opened(source_of(path, "batch=2"), tmp_path)
    assert refused.value.code == "E_MODEL_FILE"  # type: ignore[attr-defined]


@pytest.mark.slow
@needs_proc
def test_opening_and_proving_takes_the_weights_and_half_of_them_at_most(tmp_path: Path) -> None:
    """200 MB of weights, against the same model with weights of 1 kB each."""
    peaks = {}
    for width, name in ((1770, "large"), (16, "small")):
        weights = layer_weights(16, width)
        path = layers_beside(tmp_path / f"{name}.onnx", weights)
        order = Order(source_of(path, "batch=4"), SEEDS, str(tmp_path))
        folder, peaks[name] = opened_in_a_fresh_process(msgspec.json.encode(order), tmp_path / "cache")
        x = safetensors.read(inputs_file(folder, "inputs"))["x"].astype(np.float64)
        assert np.array_equal(safetensors.read(reference_file(folder, "inputs"))["y"], by_hand(wide(weights), x))
    weight_bytes = 16 * 1770 * 1770 * 4
    assert weight_bytes > 200e6
    assert peaks["large"] - peaks["small"] < 1.5 * weight_bytes


LIMITED = """
import resource, sys, msgspec
from fairlap.launch.opened_source import opened
from fairlap.request.fields.source import Source
resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))
try:
    opened(msgspec.json.decode(sys.argv[1].encode(), type=Source), {"inputs": 1, "changed": 2})
except Exception as error:
    print(error.code, error)
"""


@pytest.mark.slow
@needs_proc
def test_a_reference_that_lacks_memory_says_what_takes_how_much(tmp_path: Path) -> None:
    """The product is as large as 4 GiB in float64; the process may have 3."""
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("Expand", ["x", "shape"], ["wide"]),
        helper.make_node("Mul", ["wide", "wide"], ["product"]),
        helper.make_node("ReduceMax", ["product"], ["y"], keepdims=0),
    ]
    value = helper.make_tensor_value_info
    shape = helper.make_tensor("shape", TensorProto.INT64, [2], [2**29, 1])
    graph = helper.make_graph(nodes, "g", [value("x", 1, [1, 1])], [value("y", 1, [])], [shape])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "m.onnx")
    asked = msgspec.json.encode(source_of(tmp_path / "m.onnx")).decode()
    program = [sys.executable, "-c", LIMITED, asked]
    where = {**environment(), "FAIRLAP_CACHE": str(tmp_path / "cache")}
    said = subprocess.run(program, env=where, stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    assert said.startswith("E_SOURCE_SIZE")
    assert len(said.splitlines()) == 1
    assert "m.onnx" in said
    assert re.search(r"\d (GiB|MiB)", said)


KILLED = """
import os, time

def model():
    time.sleep(0.3)
    os.kill(os.getpid(), 9)
"""


def test_a_reference_that_the_kernel_kills_is_a_lack_of_memory_and_names_what_it_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "killed.py").write_text(KILLED)
    counts = iter(range(9))
    monkeypatch.setattr(opened_source, "oom_kills", lambda: OomKills((next(counts),)))
    source = Source("killed", "killed:model", trust=True, folder=str(tmp_path))
    with pytest.raises(SourceError) as lost:
        opened_source.opened(source, SEEDS)
    assert lost.value.code == "E_SOURCE_SIZE"
    assert "killed" in str(lost.value)
    assert re.search(r"held \d+(\.\d+)? MiB", str(lost.value))
    assert signal.SIGKILL.name not in str(lost.value)
