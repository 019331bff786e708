"""All tokens at once in NumPy, without a cache: each sees only those before it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.graphs import reference
from fairlap.bench_models.graphs.net import Sized
from fairlap.bench_models.t5_generate.spec import CONTINUATION, Answering
from fairlap.models.arrays import Arrays


class Implementation:
    def __init__(self, model: Answering) -> None:
        spec = model.net.spec("t5_at_once", task="text to text", published="", parameters=0)
        self._at_once = reference.Implementation(Sized(model.net, spec))

    def forward(self, weights: Arrays, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
        prompt, given = inputs["input_ids"], inputs[CONTINUATION]
        tokens = np.concatenate([np.zeros_like(prompt[:, :1]), given], axis=1)
        logits = self._at_once.forward(weights, {"input_ids": prompt, "decoder_input_ids": tokens})["logits"]
        return {"logits": logits, "chosen_logits": logits.max(axis=2)}
