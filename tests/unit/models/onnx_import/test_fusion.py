"""Patterns of elementary operators become the functions that libraries have, and compute the same."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.models.onnx_import import Graph, build, load_graph
from fairlap.models.onnx_import.fusion import fused
from fairlap.models.onnx_import.libraries.torch_library import TorchLibrary
from onnx import TensorProto, helper, numpy_helper

_SHAPE = [2, 4, 6, 8]


class _Writer:
    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: dict[str, Any] = {}

    def add(self, operator: str, *inputs: Any, **attributes: Any) -> str:
        names = [each if isinstance(each, str) else self._number(each) for each in inputs]
        self.nodes.append(helper.make_node(operator, names, [f"v{len(self.nodes)}"], **attributes))
        return f"v{len(self.nodes) - 1}"

    def _number(self, value: Any) -> str:
        name = f"c{len(self.weights)}"
        self.weights[name] = np.asarray(value, np.int64 if isinstance(value, list) else np.float32)
        return name

    def graph(self, folder: Path, result: str, inputs: dict[str, list[int]]) -> Graph:
        graph = helper.make_graph(
            self.nodes,
            "pattern",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)],
            [numpy_helper.from_array(array, name) for name, array in self.weights.items()],
        )
        path = folder / "pattern.onnx"
        path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())
        return load_graph(path)


def _operators(graph: Graph) -> list[str]:
    return [node.operator for node in fused(graph.nodes, graph, graph.constants)[0]]


def _agree(graph: Graph) -> bool:
    """Fused in PyTorch, as written in NumPy."""
    torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
    random = np.random.default_rng(1)
    inputs = {each.name: random.normal(size=each.shape).astype(np.float32) for each in graph.inputs}
    spelt, model = build(graph, "numpy"), build(graph, "torch")
    (wanted,) = spelt(spelt.prepare(graph.weights), inputs).values()
    (found,) = model(model.prepare(graph.weights), {key: torch.tensor(each) for key, each in inputs.items()}).values()
    return bool(np.allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-5))


@pytest.mark.parametrize("order", range(3))
def test_gelu_in_any_order_becomes_gelu(tmp_path: Path, order: int) -> None:
    writer = _Writer()
    scaled = writer.add("Div", "x", math.sqrt(2)) if order else writer.add("Mul", "x", math.sqrt(0.5))
    grown = writer.add("Add", writer.add("Erf", scaled), 1.0)
    if order == 2:
        result = writer.add("Mul", writer.add("Mul", "x", 0.5), grown)
    else:
        result = writer.add("Mul", writer.add("Mul", "x", grown), 0.5)
    graph = writer.graph(tmp_path, result, {"x": _SHAPE})
    assert _operators(graph) == ["Gelu"]
    assert _agree(graph)


def test_gelu_by_tanh_becomes_gelu(tmp_path: Path) -> None:
    writer = _Writer()
    cube = writer.add("Mul", writer.add("Pow", "x", 3.0), 0.044715)
    inner = writer.add("Mul", writer.add("Add", "x", cube), math.sqrt(2 / math.pi))
    grown = writer.add("Add", writer.add("Tanh", inner), 1.0)
    graph = writer.graph(tmp_path, writer.add("Mul", writer.add("Mul", "x", 0.5), grown), {"x": _SHAPE})
    assert _operators(graph) == ["Gelu"]
    assert _agree(graph)


def test_a_product_that_is_almost_gelu_stays(tmp_path: Path) -> None:
    writer = _Writer()
    grown = writer.add("Add", writer.add("Erf", writer.add("Div", "x", 1.5)), 1.0)
    graph = writer.graph(tmp_path, writer.add("Mul", writer.add("Mul", "x", grown), 0.5), {"x": _SHAPE})
    assert "Gelu" not in _operators(graph)
    assert _agree(graph)


def test_layer_normalisation_is_recognised(tmp_path: Path) -> None:
    writer = _Writer()
    writer.weights |= {"scale": np.linspace(1, 2, 8, dtype=np.float32), "shift": np.ones(8, np.float32)}
    centred = writer.add("Sub", "x", writer.add("ReduceMean", "x", [-1]))
    variance = writer.add("ReduceMean", writer.add("Pow", centred, 2.0), [-1])
    normal = writer.add("Div", centred, writer.add("Sqrt", writer.add("Add", variance, 1e-5)))
    result = writer.add("Add", writer.add("Mul", normal, "scale"), "shift")
    graph = writer.graph(tmp_path, result, {"x": _SHAPE})
    assert _operators(graph) == ["LayerNormalization"]
    assert _agree(graph)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_recognised(tmp_path: Path, causal: bool) -> None:
    writer = _Writer()
    mask = np.triu(np.full((6, 6), -np.inf, np.float32), 1)
    writer.weights["mask"] = mask if causal else np.where(np.isinf(mask.T), np.float32(-np.inf), np.float32(0))
    scores = writer.add("MatMul", writer.add("Mul", "q", 0.35), writer.add("Transpose", "k", perm=[0, 1, 3, 2]))
    shares = writer.add("Softmax", writer.add("Add", scores, "mask"), axis=-1)
    graph = writer.graph(tmp_path, writer.add("MatMul", shares, "v"), {"q": _SHAPE, "k": _SHAPE, "v": _SHAPE})
    nodes = fused(graph.nodes, graph, graph.constants)[0]
    assert [node.operator for node in nodes] == ["FusedAttention"]
    assert nodes[0].attributes["causal"] is causal
    assert nodes[0].attributes["scale"] == pytest.approx(0.35)
    assert _agree(graph)


def test_a_weight_that_is_used_turned_becomes_one_product(tmp_path: Path) -> None:
    writer = _Writer()
    writer.weights |= {"w": np.linspace(-1, 1, 40, dtype=np.float32).reshape(5, 8), "b": np.ones(5, np.float32)}
    product = writer.add("MatMul", "x", writer.add("Transpose", "w", perm=[1, 0]))
    graph = writer.graph(tmp_path, writer.add("Add", product, "b"), {"x": _SHAPE})
    assert _operators(graph) == ["Linear"]
    assert _agree(graph)


def _spelt_out(query: Any, key: Any, value: Any, mask: Any, scale: float, causal: bool) -> Any:
    scores = query @ key.transpose(-1, -2) * scale
    scores = scores if mask is None else scores + mask
    if causal:
        scores = scores + scores.new_full(scores.shape[-2:], -np.inf).triu(1)
    return scores.softmax(-1) @ value


@pytest.mark.parametrize("lead", [(2,), (2, 3), (2, 3, 1), (2, 3, 4), (1, 2, 2, 3)])
def test_pytorch_attends_with_its_fused_kernel_whatever_the_axes(
    lead: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel takes four axes, and with others PyTorch computes the parts one by one."""
    torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
    library, asked = TorchLibrary(), list[int]()
    original = torch.nn.functional.scaled_dot_product_attention

    def spy(*values: Any, **how: Any) -> Any:
        asked.extend(len(each.shape) for each in (*values, how["attn_mask"]) if each is not None)
        return original(*values, **how)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", spy)
    ones = (1,) * len(lead)
    for of_keys in {lead, ones, (*lead[:-1], 1)}:
        query, key, value = (torch.randn(*own, 6, 5, dtype=torch.float64) for own in (lead, of_keys, of_keys))
        for shape in (None, (6,), (6, 6), (1, 6), (*ones, 6, 6), (*lead, 6, 6), (lead[0], *ones[1:], 1, 6)):
            mask = None if shape is None else torch.randn(*shape, dtype=torch.float64)
            for causal in (False,) if shape else (False, True):
                given = (query, key, value, mask, 0.3, causal)
                assert torch.allclose(library.attention(*given), _spelt_out(*given), atol=1e-12)
    assert set(asked) <= {2, 4}
