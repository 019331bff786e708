"""The models of this family as ONNX graphs."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from fairlap.bench_models.gpt2.onnx_blocks import GPT2Graph, build_model
from fairlap.bench_models.gpt2.weights import Size, cache_names
from fairlap.bench_models.onnx_graph import model_with
from fairlap.models.arrays import Arrays
from onnx import TensorProto, helper

PAST = "past_"


class Implementation:
    def __init__(self, spec: ModuleType) -> None:
        self._spec = spec

    def build(self, weights: Arrays, batch: int, **free_sizes: int) -> Any:
        module = self._spec
        if module.DOES == "answer":
            return build_step(module.SPEC.name, module.SIZE, weights, batch)
        spec = module.with_sizes(**free_sizes) if free_sizes else module.SPEC
        return build_model(spec, module.SIZE, weights, batch, module.DOES == "every_logit")


def build_step(name: str, size: Size, weights: Arrays, batch: int) -> Any:
    """One graph for both kinds of steps of an answer: any number of tokens after any number that the cache knows."""
    graph = _StepGraph(size, batch)
    past, caches = cache_names(size, PAST), cache_names(size)
    hidden = graph.embed()
    for layer in range(size.layers):
        both = slice(2 * layer, 2 * layer + 2)
        hidden = graph.block(f"h.{layer}", hidden, past[both], caches[both])
    graph.last_logits(hidden)

    def cache(name: str, positions: str) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, size.heads, positions, size.head])

    inputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT32, [batch, "tokens"])]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [batch, size.vocabulary])]
    pasts, presents = ([cache(each, axis) for each in names] for names, axis in ((past, "past"), (caches, "positions")))
    return model_with(name, graph.nodes, [*inputs, *pasts], [*outputs, *presents], {**weights, **graph.constants})


class _StepGraph(GPT2Graph):
    """The number of tokens and that of the known ones are read from the inputs."""

    def __init__(self, size: Size, batch: int) -> None:
        super().__init__(size, batch, tokens=-1, known=0)
        self.constants = {
            "constant/rows": np.array([-1, size.width]),
            "constant/heads": np.array([batch, -1, size.heads, size.head]),
            "constant/tokens": np.array([batch, -1, size.width]),
            "constant/last": np.array(-1),
            "constant/scale": np.array(size.head**-0.5, np.float32),
            "constant/unseen": np.array(-np.inf, np.float32),
            "constant/zero": np.array(0),
            "constant/one": np.array(1),
            "constant/two": np.array(2),
            "constant/as_column": np.array([-1, 1]),
        }

    def embed(self) -> str:
        known = self._length("past_keys_0", "constant/two")
        total = self.add("Add", known, self._length("input_ids", "constant/one"))
        places = self.add("Range", known, total, "constant/one")
        before = self.add("Range", "constant/zero", total, "constant/one")
        column = self.add("Reshape", places, "constant/as_column")
        self.add("LessOrEqual", before, column, gives="seen")
        words = self.add("Gather", "wte.weight", "input_ids")
        return self.add("Reshape", self.add("Add", words, self.add("Gather", "wpe.weight", places)), "constant/rows")

    def last_logits(self, hidden: str) -> str:
        last = self.add("Gather", self.add("Reshape", hidden, "constant/tokens"), "constant/last", axis=1)
        return self.add("Gemm", self._norm("ln_f", last), "wte.weight", gives="logits", transB=1)

    def _masked(self, scores: str, past: Sequence[str]) -> str:
        return self.add("Where", "seen", scores, "constant/unseen")

    def _length(self, of: str, axis: str) -> str:
        return self.add("Gather", self.add("Shape", of), axis)
