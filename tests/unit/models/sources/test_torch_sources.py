"""A user's PyTorch model becomes a work: its reference in float64, its own weights, and conversions that may fail."""

from __future__ import annotations

import os
import pickle
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.array_files import safetensors
from fairlap.models.sources.bundle import inputs_file, reference_file, weights_file
from fairlap.models.sources.contract import Bundle, Route, SourceError
from fairlap.models.sources.kinds.python_function import PythonFunction
from fairlap.models.sources.kinds.torch_files import TorchFile, _nothing_unpickled
from fairlap.models.sources.onnx_graphs.imported_reference import imported_reference
from fairlap.models.sources.python_models.torch_exports import ONNX_FILE, PLAINER, exported
from fairlap.models.sources.python_models.torch_source import TorchSource
from fairlap.models.sources.registry import kind_of
from fairlap.request.fields.source import Source, shapes_in
from onnx_files import opened, source_of

torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")

CODE = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 16)
        self.second = torch.nn.Linear(16, 4)

    def forward(self, x, scale):
        hidden = torch.tanh(self.first(x)).to(torch.float32)  # a cast that double() leaves in
        return {"logits": self.second(hidden * scale), "hidden": (hidden,)}

class Branching(Net):
    def forward(self, x, scale):
        return self.first(x) * (2 if x.sum() > 0 else 3) * scale.mean()

def model():
    return Net(), (torch.randn(3, 8), torch.randn(3, 1))

def named():
    return Net(), {"scale": torch.randn(3, 1), "x": torch.randn(3, 8)}

def branching():
    return Branching(), (torch.randn(3, 8), torch.randn(3, 1))

def alone():
    return Net()

def raising():
    raise ValueError("no such file")

def without_inputs():
    return Net(), ()

def of_something_else():
    return object(), ()

def in_half():
    return Net().half(), (torch.randn(3, 8).half(), torch.randn(3, 1).half())
"""


@pytest.fixture
def module(tmp_path: Path) -> str:
    name = f"own_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(CODE)
    return name


def function(module: str, name: str, folder: Path, **bindings: Any) -> Source:
    return Source(f"{module}:{name}", f"{module}:{name}", str(folder), **bindings)


def by_hand(weights: Any, inputs: Any) -> np.ndarray:
    held = {name: array.astype(np.float64) for name, array in weights.items()}
    hidden = np.tanh(inputs["x"].astype(np.float64) @ held["first.weight"].T + held["first.bias"])
    logits: np.ndarray = (hidden * inputs["scale"].astype(np.float64)) @ held["second.weight"].T + held["second.bias"]
    return logits


def test_a_kind_is_known_by_its_name_alone() -> None:
    assert kind_of("package.module:function") is PythonFunction
    assert kind_of("Folder/Model.PT2") is TorchFile
    assert kind_of("resnet50") is None


@dataclass(frozen=True)
class OpenedModel:
    """Of ``model()``, whose conversion takes a second."""

    folder: Path
    bundle: Bundle
    started: list[object]  # processes
    variables: dict[str, str]  # of the environment, afterwards


@pytest.fixture(scope="module")
def opened_model(tmp_path_factory: pytest.TempPathFactory) -> OpenedModel:
    place, started = tmp_path_factory.mktemp("opened"), list[object]()
    (place / "own_opened_once.py").write_text(CODE)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CI", raising=False)
        patch.setattr("multiprocessing.process.BaseProcess.start", started.append)
        folder, bundle = opened(function("own_opened_once", "model", place), place)
        return OpenedModel(folder, bundle, started, dict(os.environ))


@pytest.mark.slow_but("named")
@pytest.mark.parametrize("name", ["model", "named"])
def test_the_reference_is_in_float64_also_where_the_module_casts(
    tmp_path: Path, module: str, name: str, opened_model: OpenedModel
) -> None:
    folder, bundle = opened_model.folder, opened_model.bundle
    if name != "model":
        folder, bundle = opened(function(module, name, tmp_path), tmp_path)
    weights = safetensors.read(weights_file(folder))
    assert set(weights) == {"first.weight", "first.bias", "second.weight", "second.bias"}
    assert {tensor.name for tensor in bundle.spec.outputs} == {"logits", "hidden.0"}
    for which in ("inputs", "changed", "unseen-2"):
        expected = by_hand(weights, safetensors.read(inputs_file(folder, which)))
        np.testing.assert_allclose(
            safetensors.read(reference_file(folder, which))["logits"], expected, rtol=1e-12, atol=1e-14
        )
    assert bundle.notices == ()


def test_a_contestant_gets_the_weights_that_were_read_not_those_of_another_call(opened_model: OpenedModel) -> None:
    folder, bundle = opened_model.folder, opened_model.bundle
    weights, inputs = safetensors.read(weights_file(folder)), safetensors.read(inputs_file(folder, "inputs"))
    net = PythonFunction.implementation(bundle, folder, "torch").build(weights)
    with torch.inference_mode():
        found = net(**{name: torch.tensor(array) for name, array in inputs.items()})
    place = [tensor.name for tensor in bundle.spec.outputs].index("logits")
    np.testing.assert_allclose(found[place].numpy(), by_hand(weights, inputs), rtol=1e-4, atol=1e-5)
    assert set(net.state_dict()) == set(weights)


def test_a_module_that_cannot_be_exported_still_races_in_pytorch(tmp_path: Path, module: str) -> None:
    _, bundle = opened(function(module, "branching", tmp_path), tmp_path)
    assert bundle.routes["torch"].name == "native"
    for framework in ("onnx", "openvino", "jax", "tensorflow"):
        assert bundle.routes[framework].why_not
        assert not bundle.routes[framework].name


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("alone", "E_SOURCE"),
        ("raising", "E_SOURCE"),
        ("missing", "E_SOURCE"),
        ("of_something_else", "E_SOURCE"),
        ("in_half", "E_SOURCE"),
        ("without_inputs", "E_SOURCE_INPUTS"),
    ],
)
def test_a_function_that_gives_no_model_with_inputs_is_refused(
    tmp_path: Path, module: str, name: str, code: str
) -> None:
    with pytest.raises(FairlapError) as refused:
        opened(function(module, name, tmp_path), tmp_path)
    assert refused.value.code == code


class _Net(torch.nn.Module):  # type: ignore[name-defined, misc]
    """Its plainer form computes the same without an operator that has no place in ONNX."""

    def __init__(self, *, plain: bool) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layer, self.plain = torch.nn.Linear(4, 4), plain

    def forward(self, x: Any) -> Any:
        hidden = self.layer(x)
        return hidden if self.plain else hidden + 0 * torch.special.airy_ai(hidden)


def _refused() -> TorchSource:
    raise SourceError("the package is too old")


@pytest.mark.slow
def test_what_cannot_be_exported_goes_by_its_plainer_form_where_it_has_one(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="`make test` installs it and runs this")
    example = {"x": torch.zeros(2, 4)}
    found = TorchSource(_Net(plain=False), example, Route("native"))
    alone = exported(found, ["y"], tmp_path, learns=False)
    assert "airy" in alone["onnx"].why_not
    assert exported(replace(found, plainer=_refused), ["y"], tmp_path, learns=False)["onnx"] == alone["onnx"]
    other = replace(found, plainer=lambda: TorchSource(_Net(plain=True), example, Route("native")))
    routes = exported(other, ["y"], tmp_path, learns=False)
    assert {name: (each.why_not, PLAINER in each.name) for name, each in routes.items()} == dict.fromkeys(
        ("onnx", "openvino", "jax", "tensorflow"), ("", True)
    )
    inputs = {"x": np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)}
    graph, forward = imported_reference(tmp_path / ONNX_FILE)
    with torch.no_grad():
        expected = found.module(torch.from_numpy(inputs["x"])).numpy()
    np.testing.assert_allclose(forward(graph.weights, inputs)["y"], expected, rtol=1e-5, atol=1e-6)


def test_sizes_come_from_the_example_alone(tmp_path: Path, module: str) -> None:
    with pytest.raises(FairlapError) as refused:
        opened(function(module, "model", tmp_path, shapes=shapes_in("x:4x8")), tmp_path)
    assert refused.value.code == "E_SHAPES"


def test_a_range_goes_before_the_example_and_is_for_inputs_that_there_are(tmp_path: Path, module: str) -> None:
    folder, _ = opened(function(module, "branching", tmp_path, ranges=(("x", 5, 9),)), tmp_path)
    drawn = safetensors.read(inputs_file(folder, "inputs"))["x"]
    assert 5 <= drawn.min() < drawn.max() <= 9
    with pytest.raises(FairlapError) as refused:
        opened(function(module, "branching", tmp_path, ranges=(("y", 0, 9),)), tmp_path)
    assert refused.value.code == "E_SHAPES"


def test_torchscript_names_its_inputs_when_others_are_given(tmp_path: Path) -> None:
    torch.jit.script(torch.nn.Linear(8, 4)).save(tmp_path / "m.pt")
    for shapes in ("x:2x8", "input:2x8,x:2x8"):
        with pytest.raises(FairlapError) as refused:
            opened(source_of(tmp_path / "m.pt", shapes=shapes_in(shapes), trust=True), tmp_path)
        assert refused.value.code == "E_SHAPES"


def test_converting_for_openvino_starts_no_process_and_leaves_the_environment_as_it_was(
    opened_model: OpenedModel,
) -> None:
    pytest.importorskip("openvino", reason="`make test` installs it and runs this")
    assert not opened_model.bundle.routes["openvino"].why_not
    assert opened_model.started == []
    assert "CI" not in opened_model.variables


def test_an_exported_program_is_read_with_its_own_inputs(tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU()).eval()
    example = torch.randn(5, 8)
    torch.export.save(torch.export.export(net, (example,)), tmp_path / "net.pt2")
    folder, bundle = opened(source_of(tmp_path / "net.pt2"), tmp_path)
    inputs = safetensors.read(inputs_file(folder, "inputs"))
    np.testing.assert_array_equal(next(iter(inputs.values())), example.numpy())
    expected = net.double()(example.double()).detach().numpy()
    np.testing.assert_allclose(
        next(iter(safetensors.read(reference_file(folder, "inputs")).values())), expected, rtol=1e-12
    )
    assert bundle.batch == 5
    assert bundle.routes["torch"].name == "native"


def test_a_pickle_is_not_read_without_trust(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2), tmp_path / "whole.pt")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps({"a": 1}))
    for name in ("whole.pt", "plain.pt"):
        with pytest.raises(FairlapError) as refused:
            opened(source_of(tmp_path / name, shapes=shapes_in("input:3x2")), tmp_path)
        assert refused.value.code == "E_SOURCE"
    with pytest.raises(SourceError) as refused, _nothing_unpickled(False, "whole.pt"):
        torch.load(tmp_path / "whole.pt", weights_only=False)
    assert refused.value.code == "E_SOURCE_TRUST"
    with _nothing_unpickled(True, "whole.pt"):
        assert isinstance(torch.load(tmp_path / "whole.pt", weights_only=False), torch.nn.Linear)


def test_an_archive_that_escapes_or_explodes_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "escaping.pt2", "w") as archive:
        archive.writestr("../outside.txt", "x")
    with zipfile.ZipFile(tmp_path / "exploding.pt2", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model/models/model.json", bytes(50_000_000))
    (tmp_path / "short.pt2").write_bytes(b"PK\x03\x04")
    for name, code in (("escaping", "E_SOURCE"), ("exploding", "E_SOURCE_SIZE"), ("short", "E_SOURCE")):
        with pytest.raises(FairlapError) as refused:
            opened(source_of(tmp_path / f"{name}.pt2"), tmp_path)
        assert refused.value.code == code
    assert not (tmp_path.parent / "outside.txt").exists()


SCRIPTED = """
import torch

class Gated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 4)

    def forward(self, x, rate: int):
        hidden = self.inner(x)
        if bool(hidden.sum() > 0):
            hidden = hidden * 2.0
        for _ in range(rate):
            hidden = torch.tanh(hidden)
        return hidden

class Fixed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.script = torch.jit.script(Gated())

    def forward(self, x):
        return self.script(x, 3)

def gated():
    torch.manual_seed(0)
    return Fixed(), (torch.randn(2, 8),)
"""


def test_torchscript_with_branches_races_in_pytorch_from_a_function_that_fills_in_its_number(tmp_path: Path) -> None:
    """As the refusal of a file such as silero_vad.jit says."""
    (tmp_path / "own_script.py").write_text(SCRIPTED)
    folder, found = opened(Source("own_script:gated", "own_script:gated", str(tmp_path)), tmp_path)
    assert found.routes["torch"].why_not == ""
    weights = {name: array.astype(np.float64) for name, array in safetensors.read(weights_file(folder)).items()}
    x = safetensors.read(inputs_file(folder, "inputs"))["x"].astype(np.float64)
    hidden = x @ weights["script.inner.weight"].T + weights["script.inner.bias"]
    hidden = np.tanh(np.tanh(np.tanh(hidden * (2.0 if hidden.sum() > 0 else 1.0))))
    (got,) = safetensors.read(reference_file(folder, "inputs")).values()
    np.testing.assert_allclose(got, hidden, rtol=1e-12, atol=1e-14)


def test_torchscript_with_a_number_as_its_argument_is_refused_by_its_name(tmp_path: Path) -> None:
    scripted = torch.jit.script(torch.nn.Module())
    scripted.define("def forward(self, x: Tensor, rate: int) -> Tensor:\n    return x * rate\n")
    scripted.save(tmp_path / "m.jit")
    assert kind_of("m.jit") is kind_of("m.torchscript") is TorchFile
    with pytest.raises(FairlapError) as refused:
        opened(source_of(tmp_path / "m.jit", shapes=shapes_in("x:2x8"), trust=True), tmp_path)
    assert refused.value.code == "E_SOURCE_INPUTS"
    assert "rate" in str(refused.value)
