"""Build the ONNX graph of an image network."""

from __future__ import annotations

from fairlap.bench_models.convolution.units import EPSILON, STATISTICS, Unit
from fairlap.bench_models.onnx_graph import Graph


class ImageGraph(Graph):
    def unit(self, unit: Unit, image: str) -> str:
        convolved = self.add(
            "Conv",
            image,
            f"{unit.convolution}.weight",
            kernel_shape=[unit.kernel, unit.kernel],
            pads=[unit.padding] * 4,
            strides=[unit.stride, unit.stride],
            group=unit.groups,
        )
        norm = (f"{unit.normalisation}.{part}" for part in ("weight", "bias", *STATISTICS))
        return self.add("BatchNormalization", convolved, *norm, epsilon=EPSILON)

    def classify(self, image: str, layer: str, output: str) -> str:
        features = self.add("Flatten", self.add("GlobalAveragePool", image))
        return self.add("Gemm", features, f"{layer}.weight", f"{layer}.bias", gives=output, transB=1)
