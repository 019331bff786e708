"""A small network with few inputs and many outputs, where forward mode is cheap."""

from __future__ import annotations

from fairlap.bench_models.differentiated_functions.network import network

IMPLEMENTED_IN = "fairlap.bench_models.differentiated_functions"
FUNCTION = network(4, 256)
SPEC = FUNCTION.spec()
