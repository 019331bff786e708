"""The layers are those of ``convnet``."""

from fairlap.bench_models.convnet.torch_model import build

__all__ = ["build"]
