"""The device, the packages on the machine, and where the proof keeps its files."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
WORK = ROOT / "build/gpu-proof"  # a file and a log for each part while it runs
CACHE = ROOT / "build/gpu-proof-cache"  # weights, references and races; gigabytes
KIT = ROOT / "build/gpu-proof-kit"  # what was fetched for a machine without network
PAGES = ROOT / "docs/gpu-proof"  # the results

_PACKAGES = (
    *("torch", "triton", "jax", "jaxlib", "jax-cuda13-plugin", "jax-cuda12-plugin", "cupy-cuda13x", "cupy-cuda12x"),
    *("tensorflow", "onnxruntime-gpu", "onnxruntime", "cuda-bench", "paddlepaddle-gpu"),
    *("numpy", "nvidia-cuda-cupti", "nvidia-ml-py"),
)
_LEFT_OUT = (
    "variable ",
    "container",
    "image",
    "kernel",
    "cores of the group",
    "steal so far",
)  # not useful to a reader


def why_no_gpu() -> str:
    """Return the reason, or an empty text if the driver sees a device. Starts no device."""
    name = os.environ.get("FAIRLAP_LIBCUDA") or "libcuda.so.1"
    try:
        driver = ctypes.CDLL(name)
    except OSError:
        return f"{name} cannot be opened: no NVIDIA driver is installed"
    count = ctypes.c_int()
    for function, arguments in (("cuInit", (ctypes.c_uint(0),)), ("cuDeviceGetCount", (ctypes.byref(count),))):
        if code := getattr(driver, function)(*arguments):
            return f"the driver sees no usable device: {function} gave error {code}"
    return "" if count.value else "the driver sees no device"


def device_name() -> str:
    driver = ctypes.CDLL(os.environ.get("FAIRLAP_LIBCUDA") or "libcuda.so.1")
    text, device = ctypes.create_string_buffer(256), ctypes.c_int()
    driver.cuInit(0)
    driver.cuDeviceGet(ctypes.byref(device), 0)
    driver.cuDeviceGetName(text, 256, device)
    return text.value.decode(errors="replace") or "unnamed"


def file_name(device: str) -> str:
    """Return the file name for a device, such as ``nvidia-h100-80gb-hbm3``."""
    return re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-") or "device"


def source_hash() -> str:
    """Return a hash of what is measured and of what measures it: figures of other sources are measured again."""
    files = [
        file
        for folder, endings in (("cpp", (".cpp", ".hpp", ".h")), ("python", (".py",)), ("tests/gpu", (".py",)))
        for file in (ROOT / folder).rglob("*")
        if file.suffix in endings
    ]
    found = hashlib.sha256()
    for file in sorted(files):
        found.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return found.hexdigest()[:16]


def facts() -> dict[str, Any]:
    from fairlap.machine.facts import machine_facts

    here = machine_facts()
    kept = {name: value for name, value in here.items() if not name.startswith(_LEFT_OUT)}
    return {"machine": kept, "packages": _versions()}


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
