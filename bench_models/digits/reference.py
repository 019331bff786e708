"""The layers are those of ``convnet``."""

from fairlap.bench_models.convnet.reference import forward

__all__ = ["forward"]
