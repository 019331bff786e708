"""What an adapter adds to a step of training: fairlap's step compared with the loop that users of the framework write.

Both run in one process with the same model, weights, optimizer and batch, each with its own state, and take turns step
by step, timed by the engine; in every other round the other one begins. The ratio of a round is that of the lower
quartiles, since a neighbour takes the core during other steps, and the figure is the median over the rounds with the
interval of the sign test. Goal: within 1 % for a step of a millisecond.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
from added_share import added_share
from bench_processes import measured_in_processes
from fairlap.frameworks.adapter_parts.answers import batch_of
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.registry import framework_named
from fairlap.models.draw import draw_inputs, draw_labels, draw_weights
from fairlap.models.registry import find
from fairlap.models.workload import Workload
from fairlap.request.fields.training import Sgd, Training

FRAMEWORKS = ("torch", "tensorflow:graph", "jax")
MODELS = {"mlp": 8, "digits": 32}  # with the batch
RATE, MOMENTUM = 1e-4, 0.9  # slow, so that there is something to learn for all of the steps
ROUNDS = 16
STEPS_EACH = 120  # in a round

Step = tuple[Callable[[], Any], Callable[[Any], Any] | None]


def with_torch(work: Workload) -> Step:
    import torch
    from torch.nn.functional import cross_entropy

    model = work.implementation("torch").build(work.weights).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    image, labels = torch.from_numpy(np.array(work.inputs["image"])), torch.from_numpy(np.array(work.labels)).long()

    def step() -> Any:
        optimizer.zero_grad()
        loss = cross_entropy(model(image)[0], labels)
        loss.backward()
        optimizer.step()
        return loss

    return step, None


def with_tensorflow(work: Workload) -> Step:
    import tensorflow as tf

    model = work.implementation("tensorflow").build(work.weights, tf.float32)
    weights = list(model.variables_by_name.values())
    momenta = [tf.Variable(tf.zeros_like(weight), trainable=False) for weight in weights]
    image, labels = tf.constant(work.inputs["image"]), tf.constant(work.labels)

    def train(image: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = model({"image": image})[0]
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        for weight, momentum, gradient in zip(weights, momenta, tape.gradient(loss, weights), strict=True):
            tf.raw_ops.ResourceApplyMomentum(
                var=weight.handle, accum=momentum.handle, lr=RATE, grad=gradient, momentum=MOMENTUM
            )
        return loss

    concrete: Any = tf.function(train, autograph=False).get_concrete_function(image, labels)
    return partial(concrete, image, labels), None


def with_jax(work: Workload) -> Step:
    import jax
    import optax

    implementation = work.implementation("jax")
    optimizer = optax.sgd(RATE, MOMENTUM)
    params = jax.device_put(implementation.params(work.weights))
    kept = optimizer.init(params)
    image, labels = jax.device_put(np.array(work.inputs["image"])), jax.device_put(np.array(work.labels))

    def loss_of(params: Any, image: Any, labels: Any) -> Any:
        logits = implementation.forward(params, {"image": image})[0]
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    @partial(jax.jit, donate_argnums=(0, 1))
    def train(params: Any, kept: Any, image: Any, labels: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(params, image, labels)
        updates, kept = optimizer.update(gradients, kept, params)
        return optax.apply_updates(params, updates), kept, loss

    def step() -> Any:
        nonlocal params, kept
        params, kept, loss = train(params, kept, image, labels)
        return loss

    return step, jax.block_until_ready


BY_HAND = {"torch": with_torch, "tensorflow:graph": with_tensorflow, "jax": with_jax}


def measured(name: str, model: str) -> dict[str, float]:
    framework_name, _, variant = name.partition(":")
    offered, batch = find(model), MODELS[model]
    spec = offered.spec
    work = Workload(
        *(spec, offered.package, batch, "train", "fp32", draw_weights(spec, 0), draw_inputs(spec, batch, 0)),
        draw_labels(spec, batch, 0),
        Training(Sgd(RATE, MOMENTUM)),
    )
    contestant = framework_named(framework_name)().prepare(work, Settings(1, variant), lambda _: nullcontext())
    theirs, theirs_done = BY_HAND[name](work)
    ours = contestant.bind(batch_of(work))
    done = contestant.done or theirs_done
    return added_share(ours, theirs, done, rounds=ROUNDS, steps=STEPS_EACH)


def main() -> None:
    print(f"{'framework':<18}{'model':<10}{'batch':>6}{'by hand':>12}{'adapter adds':>14}  interval")
    for name, model, found in measured_in_processes(FRAMEWORKS, MODELS, width=10):
        print(
            f"{name:<18}{model:<10}{MODELS[model]:>6}{found['by hand'] / 1e3:>9.0f} us{found['share']:>+14.2%}"
            f"  [{found['low']:+.2%}, {found['high']:+.2%}]",
            flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(measured(sys.argv[1], sys.argv[2])))
    else:
        main()
