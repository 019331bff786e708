"""Networks as users of JAX write them: what draws their weights, and a function of weights and inputs."""

import jax
import jax.numpy as jnp

WIDTH, HEADS, LAYERS = 192, 3, 12  # of the smallest vision transformer, whose patches have 16 pixels
STATE = 64  # of an LSTM


def dense(drawn, inward, outward):
    return drawn(inward, outward) * inward**-0.5, drawn(outward) * 0.1


def vision_transformer_weights(drawn):
    def layer():
        return {
            "norms": [(1 + 0.1 * drawn(WIDTH), drawn(WIDTH)) for _ in range(2)],
            **{name: dense(drawn, WIDTH, WIDTH) for name in ("query", "key", "value", "out")},
            "wide": dense(drawn, WIDTH, 4 * WIDTH),
            "narrow": dense(drawn, 4 * WIDTH, WIDTH),
        }

    return {
        "patches": (drawn(16, 16, 3, WIDTH) / 28, drawn(WIDTH)),
        "class": drawn(1, 1, WIDTH),
        "positions": drawn(1, 197, WIDTH),
        "layers": [layer() for _ in range(LAYERS)],
        "norm": (1 + 0.1 * drawn(WIDTH), drawn(WIDTH)),
        "head": dense(drawn, WIDTH, 1000),
    }


def linear(part, value):
    weight, bias = part
    return value @ weight + bias


def normed(part, value):
    scale, shift = part
    return jax.nn.standardize(value, epsilon=1e-6) * scale + shift


def attended(layer, hidden):
    """Without ``jax.nn.dot_product_attention``, which takes longer on a CPU."""
    batch, tokens, _ = hidden.shape
    query, key, value = (
        linear(layer[name], hidden).reshape(batch, tokens, HEADS, -1).transpose(0, 2, 1, 3)
        for name in ("query", "key", "value")
    )
    shares = jax.nn.softmax(query @ key.transpose(0, 1, 3, 2) * (WIDTH // HEADS) ** -0.5)
    return linear(layer["out"], (shares @ value).transpose(0, 2, 1, 3).reshape(batch, tokens, WIDTH))


def vision_transformer(weights, image):
    kernel, bias = weights["patches"]
    image = jnp.transpose(image, (0, 2, 3, 1))
    layout = ("NHWC", "HWIO", "NHWC")
    patches = jax.lax.conv_general_dilated(image, kernel, (16, 16), "VALID", dimension_numbers=layout) + bias
    batch = len(image)
    of_class = jnp.broadcast_to(weights["class"], (batch, 1, WIDTH))
    hidden = jnp.concatenate((of_class, patches.reshape(batch, -1, WIDTH)), 1) + weights["positions"]
    for layer in weights["layers"]:
        before, between = layer["norms"]
        hidden = hidden + attended(layer, normed(before, hidden))
        wide = jax.nn.gelu(linear(layer["wide"], normed(between, hidden)), approximate=False)
        hidden = hidden + linear(layer["narrow"], wide)
    return linear(weights["head"], normed(weights["norm"], hidden)[:, 0])


def recurrent_forecast_weights(drawn):
    layers = [
        (drawn(inward, 4 * STATE) * inward**-0.5, drawn(STATE, 4 * STATE) / 8, drawn(4 * STATE))
        for inward in (7, STATE)
    ]
    return layers, dense(drawn, STATE, 24 * 7)


def recurrent_forecast(weights, history):
    layers, head = weights
    steps = jnp.transpose(history, (1, 0, 2))
    for by_input, by_state, bias in layers:

        def step(before, gates, by_state=by_state):
            state, cell = before
            into, keep, new, out = jnp.split(gates + state @ by_state, 4, -1)
            cell = jax.nn.sigmoid(keep) * cell + jax.nn.sigmoid(into) * jnp.tanh(new)
            state = jax.nn.sigmoid(out) * jnp.tanh(cell)
            return (state, cell), state

        zeros = jnp.zeros((history.shape[0], STATE))
        _, steps = jax.lax.scan(step, (zeros, zeros), steps @ by_input + bias)
    return linear(head, steps[-1]).reshape(-1, 24, 7)
