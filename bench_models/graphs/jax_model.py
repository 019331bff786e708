"""The graphs in JAX."""

from __future__ import annotations

from fairlap.bench_models.graphs.imported import FromGraph


class Implementation(FromGraph):
    framework = "jax"
