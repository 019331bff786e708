"""Two layers of LSTM read 96 steps of seven series, and their last state becomes a forecast of the next 24."""

from __future__ import annotations

from fairlap.bench_models.graphs.net import Net, Value
from fairlap.models.spec import BATCH, Normal, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
SERIES, STEPS, AHEAD = 7, 96, 24
WIDTH, LAYERS, GATES = 64, 2, 4


def _layer(net: Net, name: str, steps: Value) -> tuple[Value, Value]:
    """Return all states, and the last one; steps come first, then the items of the batch."""
    inward = steps.shape[-1]
    parts = (
        net.weight(f"{name}.by_input", (1, GATES * WIDTH, inward), Normal(inward**-0.5)),
        net.weight(f"{name}.by_state", (1, GATES * WIDTH, WIDTH), Normal(WIDTH**-0.5)),
        net.weight(f"{name}.bias", (1, 2 * GATES * WIDTH), Normal(0.1)),
    )
    net.macs += STEPS * GATES * WIDTH * (inward + WIDTH)
    shapes = [(1, WIDTH), (WIDTH,)]
    states, last = net.add_split("LSTM", steps, *parts, shapes=shapes, hidden_size=WIDTH)
    first, second = net.constant((1,), lambda: (0,), "int64"), net.constant((1,), lambda: (1,), "int64")
    return (
        net.add("Squeeze", states, second, shape=(WIDTH,)),
        net.add("Squeeze", last, first, shape=(WIDTH,)),
    )


def _net() -> Net:
    net = Net(Tensor("history", (BATCH, STEPS, SERIES)))
    steps = net.add("Transpose", net.input("history"), shape=(SERIES,), perm=[1, 0, 2])
    last = steps
    for number in range(LAYERS):
        steps, last = _layer(net, f"layers.{number}", steps)
    net.output(net.reshape(net.linear("head", last, AHEAD * SERIES, size=4.0), AHEAD, SERIES), "forecast")
    return net


NET = _net()
SPEC = NET.spec(
    "lstm_forecaster",
    task="forecasting",
    published="long short-term memory (layers); arithmetic",
    parameters=62_888,
    loss="square_error",
    default_batch=8,
)
