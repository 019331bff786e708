"""Loops as a user of JAX writes them: the first argument is the scenario, the second the number of threads."""

import os
from functools import partial
from importlib import import_module
from itertools import cycle, pairwise

import jax
import jax.numpy as jnp
import nets_jax
import numpy as np
import optax
from sizes import LENGTHS
from sizes import WIDTH as TOKEN_WIDTH
from timing import (
    of_items,
    run,
    search_largest_rate,
    time_calls,
    time_fed_batches,
    time_mix,
    time_requests,
    time_steps_of_epochs,
    warm_up,
)
from two_ranks import TwoRanks

DRAW = np.random.default_rng(1)


def drawn(*shape):
    return DRAW.standard_normal(shape).astype(np.float32)


def convnet(channels=(3, 32, 64, 64)):
    convs = [
        (drawn(3, 3, inward, outward) * (2 / (9 * inward)) ** 0.5, np.zeros(outward, np.float32))
        for inward, outward in pairwise(channels)
    ]
    head = (drawn(channels[-1], 10) * (1 / channels[-1]) ** 0.5, np.zeros(10, np.float32))
    return jax.device_put((convs, head))


def forward(params, image):
    convs, (weight, bias) = params
    hidden = jnp.transpose(image, (0, 2, 3, 1))
    for stride, (kernel, shift) in zip((1, 2, 2), convs, strict=True):
        hidden = jax.lax.conv_general_dilated(
            hidden, kernel, (stride, stride), ((1, 1), (1, 1)), dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        hidden = jax.nn.relu(hidden + shift)
    return hidden.mean(axis=(1, 2)) @ weight + bias


def loss(params, image, labels):
    return optax.softmax_cross_entropy_with_integer_labels(forward(params, image), labels).mean()


def images(batch):
    return jax.device_put(drawn(batch, 3, 64, 64)), jax.device_put(DRAW.integers(10, size=batch).astype(np.int32))


def latency():
    params, call, (image, _) = convnet(), jax.jit(forward), images(8)
    time_calls(lambda: call(params, image).block_until_ready())


def forecast():
    """Time forecasts of eight sets of series."""
    spaced = (1, 2, 4, 8, 16)
    blocks = [
        [(drawn(*shape) * 0.1, drawn(64) * 0.1) for shape in ((3, inward, 64), (3, 64, 64))]
        for inward in (7, 64, 64, 64, 64)
    ]
    beside, head = (drawn(1, 7, 64), drawn(64)), (drawn(64, 24 * 7), drawn(24 * 7))
    params = jax.device_put((blocks, beside, head))

    def convolved(part, steps, dilation):
        kernel, bias = part
        edge = ((len(kernel) - 1) * dilation, 0)
        layout = ("NWC", "WIO", "NWC")
        found = jax.lax.conv_general_dilated(
            steps, kernel, (1,), (edge,), rhs_dilation=(dilation,), dimension_numbers=layout
        )
        return found + bias

    @jax.jit
    def call(params, steps):
        blocks, beside, (weight, bias) = params
        for (first, second), dilation in zip(blocks, spaced, strict=True):
            hidden = jax.nn.relu(convolved(first, steps, dilation))
            kept = convolved(beside, steps, 1) if dilation == 1 else steps
            steps = jax.nn.relu(convolved(second, hidden, dilation) + kept)
        return (steps[:, -1] @ weight + bias).reshape(-1, 24, 7)

    history = jax.device_put(drawn(8, 96, 7))
    time_calls(lambda: call(params, history).block_until_ready())


def vision_transformer():
    """Time one image."""
    params, call = jax.device_put(nets_jax.vision_transformer_weights(drawn)), jax.jit(nets_jax.vision_transformer)
    image = jax.device_put(drawn(1, 3, 224, 224))
    time_calls(lambda: call(params, image).block_until_ready())


def recurrent_forecast():
    """Time forecasts of eight sets of series."""
    params, call = jax.device_put(nets_jax.recurrent_forecast_weights(drawn)), jax.jit(nets_jax.recurrent_forecast)
    history = jax.device_put(drawn(8, 96, 7))
    time_calls(lambda: call(params, history).block_until_ready())


def grad():
    params, call, batch = convnet(), jax.jit(jax.value_and_grad(loss)), images(8)
    time_calls(lambda: jax.block_until_ready(call(params, *batch)))


def stepping(params, rate, loss=loss):
    optimizer = optax.sgd(rate, momentum=0.9)
    kept = jax.jit(optimizer.init)(params)

    @partial(jax.jit, donate_argnums=(0, 1))
    def train(params, kept, image, labels):
        value, gradients = jax.value_and_grad(loss)(params, image, labels)
        updates, kept = optimizer.update(gradients, kept, params)
        return optax.apply_updates(params, updates), kept, value

    def step(image, labels):
        nonlocal params, kept
        params, kept, value = train(params, kept, image, labels)
        value.block_until_ready()

    return step


def train():
    time_calls(partial(stepping(convnet(), 1e-4), *images(8)))


def to_score():
    """Time steps of whole epochs on the digits."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    pixels, labels = (digits.images / 16).astype(np.float32)[:, None], digits.target.astype(np.int32)
    step = stepping(convnet((1, 16, 32, 32)), 0.1)
    warm_up(partial(step, pixels[:32], labels[:32]))

    def batches():
        order = DRAW.permutation(1437)[: 1437 // 32 * 32].reshape(-1, 32)
        return [(jax.device_put(pixels[places]), jax.device_put(labels[places])) for places in order]

    time_steps_of_epochs(step, batches)


def fed():
    """Time batches that are taken from a large array in random order."""
    params, call = convnet(), jax.jit(forward)
    time_fed_batches(drawn(680, 3, 64, 64), lambda batch: call(params, batch).block_until_ready())


def one_image():
    params, call = convnet(), jax.jit(forward)
    return of_items(lambda image: call(params, image).block_until_ready(), lambda: images(1)[0])


def at_rate():
    time_requests(one_image())


def largest_rate():
    search_largest_rate(one_image())


LAYERS, HEADS, WIDTH, VOCABULARY, CONTEXT, PROMPT, ANSWER = 3, 4, 64, 96, 64, 32, 16
POSITIONS = PROMPT + ANSWER - 1


def characters():
    def linear(inward, outward):
        return drawn(inward, outward) * 0.02, np.zeros(outward, np.float32)

    def norm():
        return np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)

    blocks = [
        {
            "before": norm(),
            "qkv": linear(WIDTH, 3 * WIDTH),
            "out": linear(WIDTH, WIDTH),
            "between": norm(),
            "wide": linear(WIDTH, 4 * WIDTH),
            "narrow": linear(4 * WIDTH, WIDTH),
        }
        for _ in range(LAYERS)
    ]
    return jax.device_put(
        {"tokens": drawn(VOCABULARY, WIDTH), "places": drawn(CONTEXT, WIDTH), "blocks": blocks, "last": norm()}
    )


def apply(linear, hidden):
    return hidden @ linear[0] + linear[1]


def normed(norm, hidden):
    return jax.nn.standardize(hidden, epsilon=1e-5) * norm[0] + norm[1]


def heads(part):
    return part.reshape(part.shape[0], part.shape[1], HEADS, WIDTH // HEADS).swapaxes(1, 2)


def read(params, tokens, caches, place):
    """Read tokens with caches that have room for every position; ``place`` is that of the first token."""
    count = tokens.shape[1]
    hidden = params["tokens"][tokens] + jax.lax.dynamic_slice_in_dim(params["places"], place, count)
    seen = jnp.arange(POSITIONS)[None] <= place + jnp.arange(count)[:, None]
    kept = []
    for block, (keys, values) in zip(params["blocks"], caches, strict=True):
        query, key, value = map(heads, jnp.split(apply(block["qkv"], normed(block["before"], hidden)), 3, axis=2))
        keys = jax.lax.dynamic_update_slice_in_dim(keys, key, place, axis=2)
        values = jax.lax.dynamic_update_slice_in_dim(values, value, place, axis=2)
        scores = jnp.where(seen, query @ keys.swapaxes(2, 3) * (WIDTH // HEADS) ** -0.5, -jnp.inf)
        attended = (jax.nn.softmax(scores, axis=-1) @ values).swapaxes(1, 2).reshape(hidden.shape)
        hidden = hidden + apply(block["out"], attended)
        widened = jax.nn.gelu(apply(block["wide"], normed(block["between"], hidden)), approximate=True)
        hidden = hidden + apply(block["narrow"], widened)
        kept.append((keys, values))
    return (normed(params["last"], hidden[:, -1]) @ params["tokens"].T).argmax(-1), kept


def generation():
    """Time an answer: a prompt of 32 characters and 16 more, each read before the next is asked for."""
    params, prompt = characters(), DRAW.integers(VOCABULARY, size=(1, PROMPT)).astype(np.int32)
    empty = [2 * (jnp.zeros((1, HEADS, POSITIONS, WIDTH // HEADS)),)] * LAYERS
    first = jax.jit(lambda params, tokens: read(params, tokens, empty, 0))
    following = jax.jit(read, donate_argnums=2)

    def answer():
        chosen, caches = first(params, prompt)
        for place in range(PROMPT, POSITIONS):
            chosen, caches = following(params, np.asarray(chosen)[None], caches, place)
        return np.asarray(chosen)

    time_calls(answer)


def ranks():
    """Time a step that two processes share: JAX averages the gradients of what is spread over both."""
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    both = TwoRanks()
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{os.environ['MASTER_PORT']}", 2, both.number)
    mesh = Mesh(jax.devices(), ("ranks",))
    everywhere, in_parts = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("ranks"))
    params = jax.device_put(jax.tree.map(np.asarray, convnet()), everywhere)
    batch = [jax.make_array_from_process_local_data(in_parts, part) for part in images(4)]
    both.time_steps(partial(stepping(params, 1e-4), *batch))


def sequences(params, tokens):
    for wide, narrow in params:
        tokens = tokens + jax.nn.relu(tokens @ wide) @ narrow
    return tokens.mean(axis=1)


def mix():
    """Time calls whose size changes, each on one of two inputs."""
    wide = 8 * TOKEN_WIDTH
    params = jax.device_put(
        [(drawn(TOKEN_WIDTH, wide) * TOKEN_WIDTH**-0.5, drawn(wide, TOKEN_WIDTH) * wide**-0.5) for _ in range(2)]
    )
    call = jax.jit(sequences)

    def of_length(length):
        inputs = cycle([jax.device_put(drawn(1, length, TOKEN_WIDTH)) for _ in range(2)])
        return lambda: call(params, next(inputs)).block_until_ready()

    time_mix({length: of_length(length) for length in LENGTHS}, LENGTHS)


def of_a_user(module, name, mode):
    """Time calls, gradients or steps of a model that a user has written."""
    forward, params, inputs = getattr(import_module(module), name)()
    params, inputs = jax.device_put(params), jax.device_put(inputs)
    labels = jax.device_put(DRAW.integers(10, size=len(inputs[0])).astype(np.int32))

    def loss(params, *given):
        return optax.softmax_cross_entropy_with_integer_labels(forward(params, *given[:-1]), given[-1]).mean()

    if mode == "infer":
        call = jax.jit(forward)
        time_calls(lambda: call(params, *inputs).block_until_ready())
    elif mode == "grad":
        gradients = jax.jit(jax.value_and_grad(loss))
        time_calls(lambda: jax.block_until_ready(gradients(params, *inputs, labels)))
    else:
        time_calls(partial(stepping(params, 1e-4, loss), *inputs, labels))


if __name__ == "__main__":
    jax.config.update("jax_default_matmul_precision", "highest")  # fp32 is IEEE's in fairlap
    networks = (forecast, vision_transformer, recurrent_forecast)
    scenarios = (latency, *networks, grad, train, to_score, fed, mix, at_rate, largest_rate, generation, ranks)
    users = {
        f"{name}_{mode}": partial(of_a_user, module, name, mode)
        for module, name in (("users_jax", "residual_network"), ("users_flax", "network"))
        for mode in ("infer", "grad", "train")
    }
    run({**{each.__name__: each for each in scenarios}, **users})
