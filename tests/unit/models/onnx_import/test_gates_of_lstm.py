"""The weights of an imported LSTM in PyTorch: put in order once, and again where they have changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch", reason="`make test` installs it and runs this")

HIDDEN, INPUTS = 3, 2


@pytest.fixture
def module() -> Any:
    return torch.nn.LSTM(INPUTS, HIDDEN)


def weights_of(module: Any) -> list[Any]:
    """Give them in ONNX's order: input, output, forget, cell."""

    def in_onnx(array: Any) -> Any:
        into, keep, new, out = array.detach().chunk(4)
        return torch.cat((into, out, keep, new))[None]

    biases = torch.cat((in_onnx(module.bias_ih_l0), in_onnx(module.bias_hh_l0)), 1)
    return [in_onnx(module.weight_ih_l0), in_onnx(module.weight_hh_l0), biases]


def outputs(library: Any, weights: list[Any], x: Any) -> Any:
    return library.lstm(x, *weights, None, None)[0][:, 0]


def test_they_are_made_once_and_again_where_they_were_written_to(module: Any) -> None:
    from fairlap.models.onnx_import.libraries.torch_library import TorchLibrary

    library, weights, x = TorchLibrary(), weights_of(module), torch.randn(5, 1, INPUTS)
    first = library._gates.of(*weights)
    assert library._gates.of(*weights) is first
    np.testing.assert_allclose(outputs(library, weights, x), module(x)[0].detach(), atol=1e-6)
    with torch.no_grad():
        weights[1].mul_(2.0)
        module.weight_hh_l0.mul_(2.0)
    assert library._gates.of(*weights) is not first
    np.testing.assert_allclose(outputs(library, weights, x), module(x)[0].detach(), atol=1e-6)
    other = [weights[0], weights[1].clone(), weights[2]]
    assert library._gates.of(*other) is not library._gates.of(*weights)


def test_those_with_a_gradient_are_made_each_time(module: Any) -> None:
    from fairlap.models.onnx_import.libraries.torch_library import TorchLibrary

    library, weights, x = TorchLibrary(), weights_of(module), torch.randn(5, 1, INPUTS)
    weights = [each.requires_grad_() for each in weights]
    assert library._gates.of(*weights) is not library._gates.of(*weights)
    outputs(library, weights, x).sum().backward()
    module(x)[0].sum().backward()
    into, out, keep, new = weights[0].grad[0].split(HIDDEN)
    np.testing.assert_allclose(torch.cat((into, keep, new, out)), module.weight_ih_l0.grad, atol=1e-6)
    with torch.no_grad():
        assert library._gates.of(*weights) is library._gates.of(*weights)
