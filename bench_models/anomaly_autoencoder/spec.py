"""The autoencoder of MLPerf Tiny's anomaly detection: ten linear layers, narrowest in the middle."""

from __future__ import annotations

from fairlap.bench_models.graphs.images import activated
from fairlap.bench_models.graphs.net import RESTORED, Net
from fairlap.models.spec import BATCH, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
SOUND = 640
LAYERS = (128, 128, 128, 128, 8, 128, 128, 128, 128)


def _net() -> Net:
    net = Net(Tensor("sound", (BATCH, SOUND)))
    hidden = net.input("sound")
    for number, width in enumerate(LAYERS):
        hidden = net.linear(f"layers.{number}", hidden, width, size=RESTORED if number else 1.0)
        hidden = activated(net, f"norms.{number}", hidden)
    net.output(net.linear("head", hidden, SOUND, size=RESTORED), "sound_again")
    return net


NET = _net()
SPEC = NET.spec(
    "anomaly_autoencoder",
    task="anomaly detection",
    published="MLPerf Tiny, anomaly detection: 269,992 with 2,064 moving averages; GMACs by arithmetic",
    parameters=267_928,
    loss="square_error",
)
