"""Derivatives in JAX."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from fairlap.bench_models.differentiated_functions.function import INPUTS
from fairlap.bench_models.differentiated_functions.transforms import ByTransforms
from fairlap.models.arrays import Arrays


class Implementation(ByTransforms):
    transforms: ClassVar = jax
    stop_gradient: ClassVar = staticmethod(jax.lax.stop_gradient)

    def params(self, weights: Arrays) -> dict[str, Any]:
        return dict(weights)

    def canonical(self, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def forward(self, params: dict[str, Any], inputs: dict[str, Any]) -> tuple[Any, ...]:
        return self.derivative(jnp)(params, [inputs[name] for name in INPUTS if name in inputs])
