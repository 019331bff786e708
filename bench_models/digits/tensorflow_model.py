"""The layers are those of ``convnet``."""

from fairlap.bench_models.convnet.tensorflow_model import build, canonical

__all__ = ["build", "canonical"]
