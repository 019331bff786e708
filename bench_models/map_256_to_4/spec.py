"""A small network with many inputs and few outputs, where reverse mode is cheap."""

from __future__ import annotations

from fairlap.bench_models.differentiated_functions.network import network

IMPLEMENTED_IN = "fairlap.bench_models.differentiated_functions"
FUNCTION = network(256, 4)
SPEC = FUNCTION.spec()
