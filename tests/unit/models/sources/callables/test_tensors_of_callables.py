"""Tensors that are drawn reach a callable as tensors, of the same type and layout."""

from __future__ import annotations

from pathlib import Path

import pytest
from callables_opened import OpenedCallables
from machine_marks import needs

needs("torch")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_tensors_are_handed_over_as_tensors_and_compared(dtype: str, tmp_path: Path) -> None:
    code = f"""
    import torch
    kind = torch.{dtype}
    def draw(rng): return torch.from_numpy(rng.standard_normal((32, 16))).to(kind).t(), torch.tensor(0.5, dtype=kind)
    def ref(x, slope):
        assert type(x) is torch.Tensor and type(slope) is torch.Tensor
        return torch.where(x > 0, x, x * slope)
    def by_numpy(x, slope):
        assert x.dtype is kind and x.stride() == (1, 16)
        values = x.double().numpy()
        return np.where(values > 0, values, values * slope.item())
    def negative(x, slope): return -ref(x, slope)
    def in_place(x, slope): return torch.nn.functional.leaky_relu_(x, 0.5)
    def through_numpy(x, slope): return ref(x, slope).double().numpy()
    def scaled(x, slope): return ref(x, slope) * 1.25
    """
    opened = OpenedCallables(tmp_path, code)
    for right in ("ref", "by_numpy", "through_numpy"):
        assert opened.wrong_on(right) == [""] * 5, right
    assert opened.wrong_on("negative") == opened.wrong_on("scaled") == ["E_OUTPUT"] * 5
    assert opened.wrong_on("in_place") == ["E_ARGUMENT_CHANGED"] * 5


def test_a_tensor_that_the_reference_changes_is_put_back(tmp_path: Path) -> None:
    code = """
    import torch
    def draw(rng): return torch.from_numpy(rng.standard_normal(32))
    def ref(x): x.clamp_(min=0).add_(1)
    def wrong(x): x.add_(1)
    """
    opened = OpenedCallables(tmp_path, code)
    assert opened.codes == ["W_ARGUMENTS_RESTORED"]
    assert opened.wrong_on("ref") == [""] * 5
    assert opened.wrong_on("wrong") == ["E_OUTPUT"] * 5
