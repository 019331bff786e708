"""The models of this family in NumPy."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.gpt2.numpy_blocks import every_logit, extend, nothing_read
from fairlap.bench_models.gpt2.weights import CONTINUATION
from fairlap.models.arrays import Arrays


class Implementation:
    def __init__(self, spec: ModuleType) -> None:
        self._spec = spec

    def forward(self, weights: Arrays, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
        size, input_ids = self._spec.SIZE, inputs["input_ids"]
        match self._spec.DOES:
            case "every_logit":
                return {"logits": every_logit(weights, size, input_ids)}
            case "prefill":
                return extend(weights, size, input_ids, nothing_read(size, input_ids))
            case "decode":
                caches = [inputs[name] for name in self._spec.PAST_NAMES]
                return extend(weights, size, input_ids, list(zip(caches[::2], caches[1::2], strict=True)))
            case _:
                return self._answer(weights, inputs)

    def _answer(self, weights: Arrays, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
        """All tokens at once, without a cache: each sees only those before it."""
        tokens = np.concatenate([inputs["input_ids"], inputs[CONTINUATION]], axis=1)
        logits = every_logit(weights, self._spec.SIZE, tokens, self._spec.ANSWER.tokens)
        return {"logits": logits, "chosen_logits": logits.max(axis=2)}
