"""One step of decoding with GPT-2 as a pure function."""

from __future__ import annotations

from typing import Any

from fairlap.workloads.workload import Arrays

from bench_models.gpt2_decode.spec import PAST_NAMES
from bench_models.gpt2_jax import extend, to_jax_layout, to_spec_layout
from bench_models.gpt2_weights import SMALL


def params(weights: Arrays) -> dict[str, Any]:
    return to_jax_layout(weights)


def canonical(params: dict[str, Any]) -> dict[str, Any]:
    return to_spec_layout(params)


def forward(params: dict[str, Any], inputs: dict[str, Any]) -> tuple[Any, ...]:
    return extend(params, SMALL, inputs["input_ids"], [inputs[name] for name in PAST_NAMES])
