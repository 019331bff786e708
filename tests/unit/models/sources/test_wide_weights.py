"""Weights of a PyTorch module are in float64 only while they are used, and its answers are those of all at once."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from fairlap.models.array_files import safetensors
from fairlap.models.sources.bundle import inputs_file, reference_file
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.opening import Order
from fairlap.models.sources.proof import InFloat64
from fairlap.request.fields.source import Source, dims_in
from large_onnx import opened_in_a_fresh_process
from machine_marks import needs_proc
from transformers_folders import folder_of

torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")

from fairlap.models.sources.python_models import double_modules, wide_weights  # noqa: E402
from fairlap.models.sources.python_models.double_modules import (  # noqa: E402
    DoubleModule,
    called_in_float32,
    computing_in_double,
)
from fairlap.models.sources.python_models.torch_source import float_tensors  # noqa: E402

nn = torch.nn
WIDTH = 24


class Doubled(torch.autograd.Function):  # type: ignore[name-defined, misc]
    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any) -> Any:
        ctx.save_for_backward(x, weight)
        return x @ weight * 2

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        x, weight = ctx.saved_tensors
        return grads[0] @ weight.t() * 2, x.t() @ grads[0] * 2


class Square(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self, run: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WIDTH, WIDTH) * 0.2)
        self.run = run

    def forward(self, x: Any) -> Any:
        return self.run(self, x)


class Tied(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, WIDTH)
        self.head = nn.Linear(WIDTH, 50, bias=False)
        self.head.weight = self.table.weight

    def forward(self, x: Any) -> Any:
        return self.head(self.table(x.abs().mul(10).long()).sum(dim=1))


class Recurrent(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.layer = kind(WIDTH, 16, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.layer(x[None])[0]


class Attending(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(WIDTH, 4, 48, batch_first=True)
        self.other = nn.MultiheadAttention(WIDTH, 3, batch_first=True, kdim=WIDTH, vdim=WIDTH)

    def forward(self, x: Any) -> Any:
        hidden = self.layer(x[None])
        return self.other(hidden, hidden, hidden)[0]


class Images(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.ConvTranspose2d(8, 4, 3, groups=2)
        ).to(memory_format=torch.channels_last)
        self.layers[1].running_mean.uniform_()
        self.norm = nn.GroupNorm(2, 4)

    def forward(self, x: Any) -> Any:
        return self.norm(self.layers(x[None, None]))


def of_same_type(own: Any, x: Any) -> Any:
    if x.dtype != own.weight.dtype:
        raise TypeError("another type")
    return x @ own.weight.to(x.dtype) + torch.zeros(1, dtype=own.weight.dtype)


def clipped(own: Any, x: Any) -> Any:
    own.weight.data.clamp_(-0.1, 0.1)
    return x @ own.weight


def replaced(own: Any, x: Any) -> Any:
    own.weight.data = torch.renorm(own.weight.data, 2, 0, 0.5)
    return x @ own.weight


def view_written(own: Any, x: Any) -> Any:
    with torch.no_grad():
        own.weight.t()[0].fill_(1.0)
    return x @ own.weight


def by_numpy(own: Any, x: Any) -> Any:
    return torch.from_numpy(x.numpy() @ own.weight.detach().numpy())


def normed(kind: Any) -> Any:
    return kind(nn.Linear(WIDTH, WIDTH))


MODULES: dict[str, Callable[[], Any]] = {
    "tied": Tied,
    "lstm": lambda: Recurrent(nn.LSTM),
    "gru": lambda: Recurrent(nn.GRU),
    "attention": Attending,
    "images": Images,
    "twice": lambda: Square(lambda own, x: torch.tanh(x @ own.weight) @ own.weight.t()),
    "parts": lambda: Square(lambda own, x: torch.cat([x @ each.t() for each in own.weight.chunk(3)], dim=1)),
    "function of its own": lambda: Square(lambda own, x: Doubled.apply(x, own.weight)),
    "looks at the type": lambda: Square(of_same_type),
    "returns a weight": lambda: Square(lambda own, x: own.weight),
    "returns a view": lambda: Square(lambda own, x: own.weight.t()),
    "turned": lambda: _turned(Square(lambda own, x: x @ own.weight)),
    "weight norm": lambda: normed(nn.utils.parametrizations.weight_norm),
    "scripted part": lambda: nn.Sequential(torch.jit.script(nn.Linear(WIDTH, WIDTH)), nn.Linear(WIDTH, 4)),
}
WRITERS: dict[str, Callable[[], Any]] = {
    "clips": lambda: Square(clipped),
    "replaces": lambda: Square(replaced),
    "writes into a view": lambda: Square(view_written),
    "by NumPy": lambda: Square(by_numpy),
}


def _turned(module: Any) -> Any:
    module.weight = nn.Parameter(module.weight.detach().t())
    return module


def made(make: Callable[[], Any]) -> tuple[Any, Any]:
    torch.manual_seed(3)
    return make().eval(), torch.randn(6, WIDTH)


def arrays_of(module: Any) -> dict[str, np.ndarray]:
    return {name: each.detach().contiguous().numpy() for name, each in float_tensors(module).items()}


def by_hand(module: Any, x: Any, weights: Mapping[str, np.ndarray]) -> np.ndarray:
    """Call a copy of the module in float64, as PyTorch makes it."""
    double = copy.deepcopy(module).double()
    held = {**dict(double.named_parameters()), **dict(double.named_buffers())}
    with torch.no_grad():
        for name, array in weights.items():
            held[name].copy_(torch.from_numpy(np.array(array, np.float64)))
        found: np.ndarray = double(x.double()).detach().numpy()
    return found


def called(double: DoubleModule, x: Any, weights: Mapping[str, np.ndarray]) -> np.ndarray:
    return double(weights, lambda module: {"y": module(x.double())})["y"]


@pytest.mark.slow_but("0-")
@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("kept_bytes", [0, 2**40])
def test_answers_are_those_of_the_module_in_float64(
    monkeypatch: pytest.MonkeyPatch, name: str, kept_bytes: int
) -> None:
    monkeypatch.setattr(wide_weights, "_KEPT_BYTES", kept_bytes)
    module, x = made(MODULES[name])
    weights, double = arrays_of(module), DoubleModule(module, "own")
    before = {name: array.copy() for name, array in weights.items()}
    for seed in (None, 0, 1, None):
        given = InFloat64(weights, seed)
        np.testing.assert_allclose(called(double, x, given), by_hand(module, x, given), rtol=1e-12, atol=1e-14)
    assert not double.is_whole
    assert all(np.array_equal(array, before[name]) for name, array in weights.items())
    assert {each.dtype for each in module.parameters()} == {torch.float32}


FORMS: dict[
    str, tuple[Any, Any, Callable[..., np.ndarray]]
] = {  # of both sides, and how the groups are multiplied by hand
    "rows": ((8, 24), (3, 24, 8), lambda a, b, at: np.concatenate([a[part] @ b[i] for i, part in enumerate(at)])),
    "columns": (
        (3, 8, 24),
        (24, 8),
        lambda a, b, at: np.concatenate([a[i] @ b[:, part] for i, part in enumerate(at)], axis=1),
    ),
    "inside": ((4, 8), (8, 12), lambda a, b, at: np.stack([a[:, part] @ b[part] for part in at])),
}


@pytest.mark.parametrize("form", FORMS)
def test_products_of_groups_have_float64(form: str) -> None:
    torch.manual_seed(3)
    left, right, multiplied = FORMS[form]
    given = torch.randn(left), torch.randn(right)
    at = [slice(0, 4), slice(4, 4), slice(4, 8)]
    ends = torch.tensor([part.stop for part in at], dtype=torch.int32)
    with computing_in_double():
        found = torch.nn.functional.grouped_mm(*(each.double() for each in given), offs=ends)
    expected = multiplied(*(each.double().numpy() for each in given), at)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-14)
    narrow = torch.nn.functional.grouped_mm(*given, offs=ends)  # where PyTorch has them
    np.testing.assert_allclose(narrow.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_rows_after_the_last_group_are_zero() -> None:
    ends = torch.tensor([1, 2], dtype=torch.int32)
    with computing_in_double():
        found = torch.nn.functional.grouped_mm(torch.ones(3, 4), torch.ones(2, 4, 4), offs=ends)
    np.testing.assert_array_equal(found.numpy(), [[4.0] * 4, [4.0] * 4, [0.0] * 4])


def test_experts_have_their_weights_in_turn() -> None:
    ends = torch.tensor([2, 2, 6], dtype=torch.int32)

    def routed(own: Any, x: Any) -> Any:
        return torch.nn.functional.grouped_mm(x, own.weight.reshape(3, 8, WIDTH).transpose(1, 2), offs=ends)

    module, x = made(lambda: Square(routed))
    weights, double = arrays_of(module), DoubleModule(module, "own")
    blocks, rows = weights["weight"].astype(np.float64).reshape(3, 8, WIDTH), x.double().numpy()
    expected = np.concatenate([rows[:2] @ blocks[0].T, rows[2:] @ blocks[2].T])
    np.testing.assert_allclose(called(double, x, InFloat64(weights)), expected, rtol=1e-12, atol=1e-14)
    assert not double.is_whole


@pytest.mark.parametrize("name", WRITERS)
def test_a_module_that_needs_its_weights_whole_gets_them(name: str) -> None:
    module, x = made(WRITERS[name])
    weights, double = arrays_of(module), DoubleModule(module, "own")
    for seed in (None, 0):
        given = InFloat64(weights, seed)
        np.testing.assert_allclose(called(double, x, given), by_hand(module, x, given), rtol=1e-12, atol=1e-14)
    assert double.is_whole


class Watched(Mapping[str, np.ndarray]):
    """Counts the bytes of those of its arrays that are alive."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._arrays = InFloat64(arrays)
        self.alive, self.most, self.read = 0, 0, 0

    def __getitem__(self, name: str) -> np.ndarray:
        array = self._arrays[name]
        self.read += 1
        self.alive += array.nbytes
        self.most = max(self.most, self.alive)
        weakref.finalize(array, self._ended, array.nbytes)
        return array

    def _ended(self, size: int) -> None:
        self.alive -= size

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


@pytest.mark.parametrize("kept_bytes", [0, 2**40])
def test_one_layer_at_a_time_is_in_float64(monkeypatch: pytest.MonkeyPatch, kept_bytes: int) -> None:
    monkeypatch.setattr(wide_weights, "_KEPT_BYTES", kept_bytes)
    layer = nn.Linear(WIDTH, WIDTH, bias=False)
    module, x = made(lambda: nn.Sequential(*(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(8)), layer, layer))
    watched = Watched(arrays_of(module))
    called(DoubleModule(module, "own"), x, watched)
    of_layer = 8 * WIDTH * WIDTH
    assert watched.alive == 0
    assert watched.most == (9 * of_layer if kept_bytes else of_layer)
    assert watched.read == (9 if kept_bytes else 10)


def test_a_copy_that_needs_more_memory_than_is_free_is_refused_before_it_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from fairlap.models.sources.onnx_graphs import binding

    monkeypatch.setattr(binding, "available_memory_bytes", lambda: 1000)
    module, x = made(WRITERS["clips"])
    with pytest.raises(SourceError) as refused:
        called(DoubleModule(module, "own"), x, arrays_of(module))
    assert refused.value.code == "E_SOURCE_SIZE"


@pytest.mark.parametrize("writes", [False, True])
def test_large_weights_in_float32_are_copied_for_a_module_alone_that_writes_into_them(
    monkeypatch: pytest.MonkeyPatch, writes: bool
) -> None:
    monkeypatch.setattr(double_modules, "_SMALL_BYTES", 0)
    weight = np.random.default_rng(0).standard_normal((WIDTH, WIDTH), np.float32)
    before, given = weight.copy(), []

    def call(held: Mapping[str, Any]) -> dict[str, Any]:
        given.append(held["w"].data_ptr() == weight.ctypes.data)
        return {"y": held["w"].t()[1:].clamp_(0, 1) if writes else held["w"].t()[1:].clamp(0, 1)}

    found = called_in_float32({"w": weight}, call)
    np.testing.assert_array_equal(found["y"], before.T[1:].clip(0, 1))
    np.testing.assert_array_equal(weight, before)
    assert given == ([True, False] if writes else [True])


WIDE = 1770
OF_WEIGHTS = 16 * WIDE * WIDE * 4  # 200 MB
LAYERS = """
import torch

def layers(width):
    torch.manual_seed(0)
    made = [torch.nn.Linear(width, width, bias=False) for _ in range(16)]
    return torch.nn.Sequential(*made), torch.randn(4, width)

def large():
    return layers(1770)

def small():
    return layers(16)
"""


def peak_of(source: Source, tmp_path: Path, *, converts: bool) -> int:
    order = Order(msgspec.structs.replace(source, unconverted=not converts), {"inputs": 1, "changed": 2}, str(tmp_path))
    folder, peak = opened_in_a_fresh_process(msgspec.json.encode(order), tmp_path / "cache")
    (x,) = safetensors.read(inputs_file(folder, "inputs")).values()
    (y,) = safetensors.read(reference_file(folder, "inputs")).values()
    assert x.shape == y.shape[: x.ndim]
    return peak


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize("converts", [False, True])
def test_opening_a_module_takes_six_tenths_of_its_weights_more_at_most(tmp_path: Path, converts: bool) -> None:
    """200 MB of weights, against the same module with weights of 1 kB each."""
    (tmp_path / "own_layers.py").write_text(LAYERS)
    large, small = (
        peak_of(Source(f"own_layers:{name}", f"own_layers:{name}", str(tmp_path)), tmp_path, converts=converts)
        for name in ("large", "small")
    )
    assert (large - small) / OF_WEIGHTS < 1.6


@pytest.mark.slow
@needs_proc
def test_opening_an_exported_program_takes_as_much(tmp_path: Path) -> None:
    def peak(width: int) -> int:
        layers = [nn.Linear(width, width, bias=False) for _ in range(16)]
        file = tmp_path / f"{width}.pt2"
        torch.export.save(torch.export.export(nn.Sequential(*layers).eval(), (torch.randn(4, width),)), file)
        return peak_of(Source(file.name, str(file)), tmp_path, converts=False)

    assert (peak(WIDE) - peak(16)) / OF_WEIGHTS < 1.6


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize(("converts", "most"), [(False, 1.8), (True, 2.2)])
def test_opening_a_folder_of_transformers_takes_the_weights_and_some_again(
    tmp_path: Path, converts: bool, most: float
) -> None:
    """200 MB in four layers, whose largest product is a twelfth of them, twice that in float64: 1.65 and 2.06 times."""
    pytest.importorskip("transformers", reason="`make test` installs it and runs this")
    layers, width = 4, 1024
    of_weights = 12 * layers * width * width * 4  # four and eight products of this size in each layer

    def peak(width: int) -> int:
        folder = folder_of(tmp_path / str(width), "gpt2", weights=True, n_embd=width, n_layer=layers)
        source = Source(f"hf:{folder.name}", f"hf:{folder}", dims=dims_in("batch=2,sequence=6"))
        return peak_of(source, tmp_path, converts=converts)

    assert (peak(width) - peak(16)) / of_weights < most
