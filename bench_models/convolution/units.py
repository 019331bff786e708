"""The building block of image networks: a convolution without bias, followed by a normalisation."""

from __future__ import annotations

from dataclasses import dataclass

from fairlap.models.spec import Fill, Normal, Uniform, Weight

EPSILON = 1e-5  # added to the variance by every implementation
MOMENTUM = 0.1  # the share of a batch in the moving averages, in training
STATISTICS = ("running_mean", "running_var")

# For a variance from 0.5 to 1.5 the mean of 1 / variance is ln 3, and the mean square of this scale is 0.893. Their
# product is 0.98, so activations keep their size through any number of layers.
STEADY_SCALE = Uniform(0.4, 1.4)


@dataclass(frozen=True)
class Unit:
    """Square kernels on square images, padded so that only the stride reduces the size of an image."""

    convolution: str  # the name of its kernel, without ".weight"
    normalisation: str
    inward: int
    outward: int
    kernel: int
    image: int  # pixels along one side of the input
    stride: int = 1
    groups: int = 1
    rectified: bool = True  # the input has passed a ReLU, which halves its power; the kernel restores it
    scale: Fill = STEADY_SCALE

    @property
    def padding(self) -> int:
        return self.kernel // 2

    @property
    def image_after(self) -> int:
        return (self.image + 2 * self.padding - self.kernel) // self.stride + 1

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return (self.outward, self.inward // self.groups, self.kernel, self.kernel)

    @property
    def macs(self) -> int:
        outward, inward, height, width = self.shape
        return self.image_after**2 * outward * inward * height * width

    def weights(self) -> tuple[Weight, ...]:
        _, inward, height, width = self.shape
        power = 2.0 if self.rectified else 1.0
        features = (self.outward,)
        return (
            Weight(f"{self.convolution}.weight", self.shape, Normal((power / (inward * height * width)) ** 0.5)),
            Weight(f"{self.normalisation}.weight", features, self.scale),
            Weight(f"{self.normalisation}.bias", features, Normal(0.1)),
            Weight(f"{self.normalisation}.running_mean", features, Normal(0.1), trained=False),
            Weight(f"{self.normalisation}.running_var", features, Uniform(0.5, 1.5), trained=False),
        )


def classifier(name: str, features: int, classes: int) -> tuple[Weight, Weight]:
    """Describe the last, linear layer of a network, whose features are averages of rectified pixels."""
    return (
        Weight(f"{name}.weight", (classes, features), Normal((1.0 / features) ** 0.5)),
        Weight(f"{name}.bias", (classes,), Normal(0.1)),
    )
