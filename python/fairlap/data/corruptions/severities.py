"""How strong each severity of a corruption is, for images of three sizes.

As in ImageNet-C, Tiny ImageNet-C and CIFAR-10-C of Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to
Common Corruptions and Perturbations" (2019), whose programs name the figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

Size = Literal["small", "middle", "large"]
"""Of the shorter side: that of CIFAR (32), of Tiny ImageNet (64), and of ImageNet (224)."""

_SMALL_BELOW, _MIDDLE_BELOW = 48, 112  # pixels


def size_of(height: int, width: int) -> Size:
    shorter = min(height, width)
    return "small" if shorter < _SMALL_BELOW else "middle" if shorter < _MIDDLE_BELOW else "large"


def strength(name: str, severity: int, size: Size) -> Any:
    return _STRENGTHS[name][size][severity - 1]


_SHADES: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5)
_CONTRASTS: Sequence[float] = (0.4, 0.3, 0.2, 0.1, 0.05)
_SHORT_ZOOMS = ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01))

_STRENGTHS: Mapping[str, Mapping[Size, Sequence[Any]]] = {
    "gaussian_noise": {  # standard deviation
        "small": (0.04, 0.06, 0.08, 0.09, 0.10),
        "middle": (0.04, 0.08, 0.12, 0.15, 0.18),
        "large": (0.08, 0.12, 0.18, 0.26, 0.38),
    },
    "shot_noise": {  # photons of a white pixel
        "small": (500, 250, 100, 75, 50),
        "middle": (250, 100, 50, 30, 15),
        "large": (60, 25, 12, 5, 3),
    },
    "impulse_noise": {  # share of values
        "small": (0.01, 0.02, 0.03, 0.05, 0.07),
        "middle": (0.01, 0.02, 0.05, 0.08, 0.14),
        "large": (0.03, 0.06, 0.09, 0.17, 0.27),
    },
    "speckle_noise": {  # standard deviation, by the value
        "small": (0.06, 0.1, 0.12, 0.16, 0.2),
        "middle": (0.15, 0.2, 0.25, 0.3, 0.35),
        "large": (0.15, 0.2, 0.35, 0.45, 0.6),
    },
    "gaussian_blur": {  # standard deviation in pixels
        "small": (0.4, 0.6, 0.7, 0.8, 1),
        "middle": (0.5, 0.75, 1, 1.25, 1.5),
        "large": (1, 2, 3, 4, 6),
    },
    "defocus_blur": {  # radius of the disc, and how far its edge is smoothed
        "small": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
        "middle": ((0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)),
        "large": ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
    },
    "motion_blur": {  # radius, and the standard deviation along it
        "small": ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
        "middle": ((10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)),
        "large": ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    },
    "zoom_blur": {  # end and step of the zoom factors, which begin at 1
        "small": _SHORT_ZOOMS,
        "middle": _SHORT_ZOOMS,
        "large": ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
    },
    "fog": {  # how dense, and how fast its details become faint
        "small": ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
        "middle": ((0.4, 3), (0.7, 3), (1, 2.5), (1.5, 2), (2, 1.75)),
        "large": ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
    },
    "brightness": {"small": (0.05, 0.1, 0.15, 0.2, 0.3), "middle": _SHADES, "large": _SHADES},  # added to the value
    "contrast": {"small": (0.75, 0.5, 0.4, 0.3, 0.15), "middle": _CONTRASTS, "large": _CONTRASTS},  # factor
    "saturate": {  # factor and summand of the saturation
        "small": ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
        "middle": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (30, 0.2)),
        "large": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
    },
    "pixelate": {  # share of the side that is left
        "small": (0.95, 0.9, 0.85, 0.75, 0.65),
        "middle": (0.9, 0.8, 0.7, 0.6, 0.5),
        "large": (0.6, 0.5, 0.4, 0.3, 0.25),
    },
    "jpeg_compression": {  # quality
        "small": (80, 65, 58, 50, 40),
        "middle": (65, 58, 50, 40, 25),
        "large": (25, 18, 15, 10, 7),
    },
}
