"""The layers are those of ``convnet``."""

from fairlap.bench_models.convnet.jax_model import canonical, forward, params

__all__ = ["canonical", "forward", "params"]
