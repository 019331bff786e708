"""Why a framework does not see a GPU, in one line.

There is no driver, the build is without CUDA or without its libraries, or there are too few devices.
"""

from __future__ import annotations

from fairlap.errors import shortened
from fairlap.frameworks.contract import Unsupported


def missing_device(framework: str, wanted: str, seen: int, *, built_with_cuda: bool, install: str) -> Unsupported:
    """``install`` is what pip installs for a build with CUDA."""
    from fairlap.engine import _native

    if absent := _native.cuda_absent_because():
        why = f"there is no CUDA driver: {shortened(absent)}"
    elif not built_with_cuda:
        why = f"it is a build without CUDA; install {install}"
    elif seen == 0:
        why = f"its CUDA libraries may be missing (install {install}), or CUDA_VISIBLE_DEVICES hides the devices"
    else:
        why = "look at CUDA_VISIBLE_DEVICES and nvidia-smi"
    return Unsupported(f"{framework} sees {seen} CUDA devices here; requested was {wanted}: {why}")
