"""Derivatives in JAX."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from fairlap.bench_models.differentiated_functions.function import ALONG, POINT
from fairlap.bench_models.differentiated_functions.transforms import ByTransforms
from fairlap.models.arrays import Arrays


class Implementation(ByTransforms):
    transforms: ClassVar = jax

    def params(self, weights: Arrays) -> dict[str, Any]:
        return dict(weights)

    def canonical(self, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def forward(self, params: dict[str, Any], inputs: dict[str, Any]) -> tuple[Any, ...]:
        given = [inputs[name] for name in (POINT, ALONG) if name in inputs]
        return self.derivative()(lambda point: self.function.value(point, jnp, params), given)
