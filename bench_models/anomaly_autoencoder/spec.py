"""The autoencoder of MLPerf Tiny's anomaly detection: ten linear layers, narrowest in the middle."""

from __future__ import annotations

from fairlap.bench_models.graphs.images import normalised
from fairlap.bench_models.graphs.net import Net
from fairlap.models.spec import BATCH, Spec, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
SOUND = 640
LAYERS = (128, 128, 128, 128, 8, 128, 128, 128, 128)
RESTORED = 2**0.5  # a ReLU halves the power


def _net() -> Net:
    net = Net(Tensor("sound", (BATCH, SOUND)))
    hidden = net.input("sound")
    for number, width in enumerate(LAYERS):
        hidden = net.linear(f"layers.{number}", hidden, width, size=RESTORED if number else 1.0)
        hidden = net.elementwise("Relu", normalised(net, f"norms.{number}", hidden))
    net.output(net.linear("head", hidden, SOUND, size=RESTORED), "sound_again")
    return net


NET = _net()
SPEC = Spec(
    name="anomaly_autoencoder",
    task="anomaly detection",
    inputs=NET.inputs,
    outputs=NET.outputs,
    weights=tuple(NET.weights),
    parameters=267_928,
    gmacs_per_item=NET.macs / 1e9,
    published="MLPerf Tiny, anomaly detection: 269,992 with 2,064 moving averages; GMACs by arithmetic",
    loss="square_error",
)
