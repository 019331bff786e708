"""Which device this is, and what is installed beside it."""

from __future__ import annotations

import ctypes
import os
import re
from importlib import metadata
from typing import Any

_PACKAGES = (
    *("torch", "triton", "jax", "jaxlib", "jax-cuda13-plugin", "jax-cuda12-plugin", "cupy-cuda13x", "cupy-cuda12x"),
    *("tensorflow", "onnxruntime-gpu", "onnxruntime", "cuda-bench", "numpy", "nvidia-cuda-cupti", "nvidia-ml-py"),
)
_LEFT_OUT = ("variable ", "container", "image", "kernel", "cores of the group", "steal so far")  # of no use to a reader


def why_no_gpu() -> str:
    """Empty when the driver is there and sees a device. It starts none."""
    name = os.environ.get("FAIRLAP_LIBCUDA") or "libcuda.so.1"
    try:
        driver = ctypes.CDLL(name)
    except OSError:
        return f"{name} cannot be opened: there is no NVIDIA driver here"
    count = ctypes.c_int()
    for function, arguments in (("cuInit", (ctypes.c_uint(0),)), ("cuDeviceGetCount", (ctypes.byref(count),))):
        if code := getattr(driver, function)(*arguments):
            return f"the driver is there and sees no usable device: {function} gave error {code}"
    return "" if count.value else "the driver is there and sees no device"


def device_name() -> str:
    driver = ctypes.CDLL(os.environ.get("FAIRLAP_LIBCUDA") or "libcuda.so.1")
    text, device = ctypes.create_string_buffer(256), ctypes.c_int()
    driver.cuInit(0)
    driver.cuDeviceGet(ctypes.byref(device), 0)
    driver.cuDeviceGetName(text, 256, device)
    return text.value.decode(errors="replace") or "unnamed"


def file_name(device: str) -> str:
    """Of a device: ``nvidia-h100-80gb-hbm3``."""
    return re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-") or "device"


def facts() -> dict[str, Any]:
    from fairlap.machine.facts import machine_facts

    here = machine_facts()
    told = {name: value for name, value in here.items() if not name.startswith(_LEFT_OUT)}
    return {"machine": told, "packages": _versions()}


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
