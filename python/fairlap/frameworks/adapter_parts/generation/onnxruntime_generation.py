"""Answers of ONNX Runtime: one session for the prompt and the tokens.

The caches are values of the runtime, which a step gives and the next one is bound to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairlap.frameworks.contract_parts.generation import Generation, Tokens


def generation(session: Any) -> Generation:
    import onnxruntime

    (ids, *past), (logits, *caches) = session.get_inputs(), session.get_outputs()
    nothing = [
        onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros((batch, heads, 0, head), np.float32))
        for batch, heads, _, head in (each.shape for each in past)
    ]
    places, outputs = [each.name for each in past], [logits.name, *(each.name for each in caches)]

    def following(state: Any, tokens: Tokens) -> tuple[list[int], Any, Any]:
        binding = session.io_binding()
        binding.bind_ortvalue_input(ids.name, onnxruntime.OrtValue.ortvalue_from_numpy(tokens))
        for name, value in zip(places, state, strict=True):
            binding.bind_ortvalue_input(name, value)
        for name in outputs:
            binding.bind_output(name, "cpu")  # in memory that the runtime takes from its arena
        session.run_with_iobinding(binding)
        found, *grown = binding.get_outputs()
        return found.numpy().argmax(axis=1).tolist(), found, grown

    def first(prompt: Tokens) -> tuple[list[int], Any, Any]:
        return following(nothing, prompt)

    return Generation(first, following, lambda logits: logits.numpy())
