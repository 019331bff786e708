"""A small network with as many inputs as outputs."""

from __future__ import annotations

from fairlap.bench_models.differentiated_functions.network import network

IMPLEMENTED_IN = "fairlap.bench_models.differentiated_functions"
FUNCTION = network(32, 32)
SPEC = FUNCTION.spec()
