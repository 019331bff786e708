"""A product that JAX does not have on a device is one that it lacks, and no failure."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
from fairlap.frameworks.contract import Settings, Unsupported
from fairlap.frameworks.libraries import jax as adapter
from machine_marks import needed

jax = needed("jax")


def compiled(function: Any, numbers: Any) -> Any:
    return adapter._compiled(function, (numbers,), Settings(1), lambda _: nullcontext())


def test_attention_in_fp16_on_a_cpu_is_unsupported() -> None:
    half = jax.numpy.ones((1, 8, 1, 4), "float16", device=jax.devices("cpu")[0])
    with pytest.raises(Unsupported, match="F16"):
        compiled(lambda numbers: jax.nn.dot_product_attention(numbers, numbers, numbers), half)


def test_other_errors_are_those_of_the_model() -> None:
    def wrong(numbers: Any) -> Any:
        raise ValueError(f"shape {numbers.shape}")

    with pytest.raises(ValueError, match="shape"):
        compiled(wrong, jax.numpy.ones(2))
