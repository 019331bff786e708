"""A small network with four outputs to an input."""

from __future__ import annotations

from fairlap.bench_models.differentiated_functions.network import network

IMPLEMENTED_IN = "fairlap.bench_models.differentiated_functions"
FUNCTION = network(16, 64)
SPEC = FUNCTION.spec()
