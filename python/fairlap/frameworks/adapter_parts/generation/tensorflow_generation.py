"""Answers of TensorFlow: eagerly and as a graph through a cache that grows, with XLA through one of a single shape."""

from __future__ import annotations

from typing import Any

from fairlap.frameworks.contract import Phase
from fairlap.frameworks.contract_parts.generation import Generation, Tokens
from fairlap.models.workload import Workload


def generation(work: Workload, model: Any, dtype: Any, variant: str, phase: Phase) -> Generation:
    import tensorflow as tf

    prompt = tf.TensorSpec(work.spec.inputs[0].sized(work.batch), tf.int32)
    token = tf.TensorSpec((work.batch, 1), tf.int32)
    read = prompt.shape[1]
    fixed = variant == "xla"
    begin, step = model.first, model.following
    if fixed:
        begin, step = model.first_of_fixed_shape, model.following_of_fixed_shape
    if variant:
        with phase("trace"):
            begin = tf.function(begin, autograph=False, jit_compile=fixed).get_concrete_function(prompt)
            traced = tf.function(step, autograph=False, jit_compile=fixed)
            if fixed:
                step = traced.get_concrete_function(
                    list(begin.structured_outputs[2]), token, tf.TensorSpec((), tf.int32)
                )
            else:
                step = traced.get_concrete_function(model.growing_caches(work.batch, dtype), token)

    def first(prompt: Tokens) -> tuple[list[int], Any, Any]:
        chosen, logits, caches = begin(tf.constant(prompt))
        return chosen.numpy().tolist(), logits, (caches, read)

    def following(state: Any, tokens: Tokens) -> tuple[list[int], Any, Any]:
        caches, place = state
        position = (tf.constant(place),) if fixed else ()
        chosen, logits, caches = step(caches, tf.constant(tokens), *position)
        return chosen.numpy().tolist(), logits, (caches, place + 1)

    def cache_bytes(state: Any) -> int:
        return sum(each.numpy().nbytes for each in tf.nest.flatten(state[0]))

    return Generation(first, following, lambda logits: tf.cast(logits, tf.float32).numpy(), cache_bytes)
