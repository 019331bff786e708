"""GPT-2 as an ONNX graph. All tokens of all items are rows of one matrix, except where they attend to each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.gpt2.weights import EPSILON, Size, cache_names
from fairlap.bench_models.onnx_graph import Graph
from fairlap.models.arrays import Arrays
from fairlap.models.spec import Spec
from onnx import helper


def build_model(spec: Spec, size: Size, weights: Arrays, batch: int, every_logit: bool = False) -> Any:
    """Build a graph whose inputs after the first are the keys and the values of every layer in turn.

    Logits are those after the last token, or after each.
    """
    past = [tensor.name for tensor in spec.inputs[1:]]
    known = spec.inputs[1].sized(batch)[2] if past else 0
    graph = GPT2Graph(size, batch, spec.inputs[0].sized(batch)[1], known)
    hidden = graph.embed()
    for layer in range(size.layers):
        hidden = graph.block(f"h.{layer}", hidden, past[2 * layer : 2 * layer + 2], cache_names(size)[2 * layer :][:2])
    if every_logit:
        graph.every_logit(hidden)
    else:
        graph.last_logits(hidden)
    return graph.model(spec, {**weights, **graph.constants}, batch)


class GPT2Graph(Graph):
    def __init__(self, size: Size, batch: int, tokens: int, known: int) -> None:
        super().__init__()
        self.batch, self.tokens = batch, tokens
        self.constants: dict[str, npt.NDArray[Any]] = {
            "constant/positions": np.arange(known, known + tokens),
            "constant/rows": np.array([batch * tokens, size.width]),
            "constant/heads": np.array([batch, tokens, size.heads, size.head]),
            "constant/scale": np.array(size.head**-0.5, np.float32),
        }
        if not known and tokens > 0:
            self.constants["constant/mask"] = np.triu(np.full((tokens, tokens), -np.inf, np.float32), 1)

    def embed(self) -> str:
        words = self.add("Gather", "wte.weight", "input_ids")
        positions = self.add("Gather", "wpe.weight", "constant/positions")
        return self.add("Reshape", self.add("Add", words, positions), "constant/rows")

    def block(self, name: str, hidden: str, past: Sequence[str], cache: Sequence[str]) -> str:
        parts = self._linear(f"{name}.attn.c_attn", self._norm(f"{name}.ln_1", hidden))
        hidden = self.add("Add", hidden, self._linear(f"{name}.attn.c_proj", self._attend(parts, past, cache)))
        widened = self._linear(f"{name}.mlp.c_fc", self._norm(f"{name}.ln_2", hidden))
        widened = self.add("Gelu", widened, approximate="tanh")
        return self.add("Add", hidden, self._linear(f"{name}.mlp.c_proj", widened))

    def every_logit(self, hidden: str) -> str:
        self.constants["constant/logits"] = np.array([self.batch, self.tokens, -1])
        logits = self.add("Gemm", self._norm("ln_f", hidden), "wte.weight", transB=1)
        return self.add("Reshape", logits, "constant/logits", gives="logits")

    def last_logits(self, hidden: str) -> str:
        self.constants["constant/tokens"] = np.array([self.batch, self.tokens, -1])
        self.constants["constant/last"] = np.array(self.tokens - 1)
        last = self.add("Gather", self.add("Reshape", hidden, "constant/tokens"), "constant/last", axis=1)
        return self.add("Gemm", self._norm("ln_f", last), "wte.weight", gives="logits", transB=1)

    def _linear(self, name: str, hidden: str) -> str:
        return self.add("Gemm", hidden, f"{name}.weight", f"{name}.bias", transB=1)

    def _norm(self, name: str, hidden: str) -> str:
        return self.add("LayerNormalization", hidden, f"{name}.weight", f"{name}.bias", epsilon=EPSILON)

    def _attend(self, parts: str, past: Sequence[str], cache: Sequence[str]) -> str:
        separate = [f"{part}_{len(self.nodes)}" for part in ("query", "new_keys", "new_values")]
        self.nodes.append(helper.make_node("Split", [parts], separate, axis=1, num_outputs=3))
        if past:
            query, *new = (self._by_head(part) for part in separate)
            pairs = zip(past, new, cache, strict=True)
            keys, values = (self.add("Concat", before, after, gives=to, axis=2) for before, after, to in pairs)
        else:
            query, keys, values = (self._by_head(part, to) for part, to in zip(separate, ("", *cache), strict=True))
        turned = self.add("Transpose", keys, perm=[0, 1, 3, 2])
        scores = self.add("MatMul", self.add("Mul", query, "constant/scale"), turned)
        scores = self._masked(scores, past)
        attended = self.add("MatMul", self.add("Softmax", scores, axis=-1), values)
        return self.add("Reshape", self.add("Transpose", attended, perm=[0, 2, 1, 3]), "constant/rows")

    def _masked(self, scores: str, past: Sequence[str]) -> str:
        return scores if past else self.add("Add", scores, "constant/mask")

    def _by_head(self, part: str, to: str = "") -> str:
        return self.add("Transpose", self.add("Reshape", part, "constant/heads"), gives=to, perm=[0, 2, 1, 3])
