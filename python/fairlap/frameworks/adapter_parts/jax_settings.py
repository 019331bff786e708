"""What JAX reads from the environment, before its process starts."""

from __future__ import annotations

import os

from fairlap.errors import NotAvailable
from fairlap.frameworks.contract import Settings

_CACHE_OF_THE_RACE = "FAIRLAP_JAX_CACHE"


def environment_for(settings: Settings) -> dict[str, str]:
    """Set the size of the XLA client's pool by PJRT_NPROC, and by NPROC for the releases before it, among others."""
    threads = str(settings.threads)
    return {
        "JAX_PLATFORMS": "cpu" if settings.device == "cpu" else "cuda,cpu",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # of a GPU's memory: a peak would always be three quarters of it
        "XLA_PYTHON_CLIENT_USE_TFRT_GPU_CLIENT": "0",  # its calls return before their work is on the stream
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "NPROC": threads,
        "PJRT_NPROC": threads,
        **_flags(settings),
        **_limited(settings),
        **_cached_in(settings.cache_folder),
    }


def _flags(settings: Settings) -> dict[str, str]:
    """XLA reads its flags once, from the environment, and ends the process for one that it does not know."""
    options, flags = settings.options, [os.environ.get("XLA_FLAGS", "")]
    if width := options.get("vector_width"):
        flags.append(f"--xla_cpu_prefer_vector_width={width}")
    if options.get("ynnpack") == "off":
        flags.append("--xla_cpu_experimental_ynn_fusion_type=")  # for none
    return {"XLA_FLAGS": " ".join(flags).strip()} if len(flags) > 1 else {}


def _cached_in(folder: str) -> dict[str, str]:
    """JAX keeps nothing on disk unless it is given a folder, and then only what took a second to compile."""
    if not folder:
        return {}
    return {
        "JAX_COMPILATION_CACHE_DIR": folder,
        _CACHE_OF_THE_RACE: folder,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def cache_in_force(folder: str | None) -> str:
    """From the folder that JAX uses. That of the race has another path in every race and is empty at its start."""
    if not folder:
        return "none"
    return "new folder of the race" if folder == os.environ.get(_CACHE_OF_THE_RACE) else folder


def _limited(settings: Settings) -> dict[str, str]:
    """Compute the share of the device that XLA's pool may grow to."""
    if settings.device_memory_limit_bytes is None:
        return {}
    from fairlap.machine.hardware.cuda_devices import total_bytes

    whole = total_bytes(settings.device)
    if isinstance(whole, str):
        raise NotAvailable(f"jax limits a device's memory by its share, and the total is unknown: {whole}")
    return {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{min(1.0, settings.device_memory_limit_bytes / whole):.6f}"}
