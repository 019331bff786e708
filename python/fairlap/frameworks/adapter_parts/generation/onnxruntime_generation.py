"""Answers of ONNX Runtime: one session for the prompt and the tokens, or for the tokens after that of an encoder.

The caches are values of the runtime, which a step gives and the next one is bound to.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

from fairlap.frameworks.contract_parts.generation import Generation, Tokens

_CROSS = "cross_"  # in the names of what an encoder gives to every step


def generation(session: Any, encoder: Any = None) -> Generation:
    import onnxruntime

    (ids, *others), (logits, *caches) = session.get_inputs(), session.get_outputs()
    past = [each for each in others if not each.name.startswith(_CROSS)]
    nothing = [
        onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros((batch, heads, 0, head), np.float32))
        for batch, heads, _, head in (each.shape for each in past)
    ]
    places, outputs = [each.name for each in past], [logits.name, *(each.name for each in caches)]

    def run(called: Any, inputs: Iterable[tuple[str, Any]], outputs: list[str]) -> Any:
        binding = called.io_binding()
        for name, value in inputs:
            binding.bind_ortvalue_input(name, value)
        for name in outputs:
            binding.bind_output(name, "cpu")  # in memory that the runtime takes from its arena
        called.run_with_iobinding(binding)
        return binding.get_outputs()

    def of_last(found: Any) -> Any:
        array = found.numpy()
        return array.reshape(len(array), -1)  # it may have an axis for tokens

    def step(read: Any, known: list[Any], of_prompt: list[tuple[str, Any]]) -> tuple[list[int], Any, Any]:
        given = chain([(ids.name, read)], zip(places, known, strict=True), of_prompt)
        found, *grown = run(session, given, outputs)
        return of_last(found).argmax(axis=1).tolist(), found, (grown, of_prompt)

    def following(state: Any, tokens: Tokens) -> tuple[list[int], Any, Any]:
        return step(onnxruntime.OrtValue.ortvalue_from_numpy(tokens), *state)

    def first(prompt: Tokens) -> tuple[list[int], Any, Any]:
        read = onnxruntime.OrtValue.ortvalue_from_numpy(prompt)
        return step(read, nothing, []) if encoder is None else step(*encoded(read))

    def encoded(read: Any) -> tuple[Any, list[Any], list[tuple[str, Any]]]:
        """Return the token that the decoder begins with, an empty cache, and keys and values of the prompt."""
        names = [each.name for each in encoder.get_outputs()]
        start, *of_prompt = run(encoder, [(encoder.get_inputs()[0].name, read)], names)
        return start, nothing, list(zip(names[1:], of_prompt, strict=True))

    def cache_bytes(state: Any) -> int:
        grown, of_prompt = state
        return sum(each.numpy().nbytes for each in (*grown, *(value for _, value in of_prompt)))

    return Generation(first, following, of_last, cache_bytes)
