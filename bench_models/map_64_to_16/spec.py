"""A small network with four inputs to an output."""

from __future__ import annotations

from fairlap.bench_models.differentiated_functions.network import network

IMPLEMENTED_IN = "fairlap.bench_models.differentiated_functions"
FUNCTION = network(64, 16)
SPEC = FUNCTION.spec()
