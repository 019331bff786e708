"""The settings of PyTorch: those that it is refused, those put in force, and those read back from it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from fairlap import quantity_text
from fairlap.frameworks.adapter_parts.devices.torch_graphs import GRAPH
from fairlap.frameworks.adapter_parts.quantized.torch_quantized import integer_products
from fairlap.frameworks.adapter_parts.ranks import in_parts
from fairlap.frameworks.contract import NO_WEIGHTS, Settings, Unsupported, device_number, whole_option
from fairlap.models.modes import MODES
from fairlap.models.workload import Workload


def require_fitting(work: Workload, wanted: Settings) -> None:
    whole_option(wanted.options, "interop_threads", wanted.threads)
    if wanted.options.get("freezing") == "on" and (not MODES[work.mode].answers_inputs or wanted.device != "cpu"):
        raise Unsupported("torch:compile:freezing=on makes constants of the weights: it is for inference on the CPU")
    if wanted.variant == GRAPH and work.spec.continuation:
        raise Unsupported("torch:graph replays CUDA graphs of whole calls, and does not generate token by token")


def settings_in_force(model: Any, wanted: Settings) -> dict[str, str]:
    import torch

    found = {
        "threads": str(torch.get_num_threads()),
        "precision": _precision(model, wanted.device),
        "interop_threads": str(torch.get_num_interop_threads()),
        "matmul_precision": torch.get_float32_matmul_precision(),
        "memory_format": _memory_format(model),
        "inference_mode": _on(torch.is_inference_mode_enabled()),
        "deterministic": _on(torch.are_deterministic_algorithms_enabled()),
        "onednn": _on(torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled),
        "vector_instructions": torch.backends.cpu.get_cpu_capability(),
    }
    found |= in_parts(wanted.rank)
    if wanted.device != "cpu":
        found["device"] = torch.cuda.get_device_name()
        found["tf32"] = _on(torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32)
        found |= libraries_in_force()
    if wanted.variant == "compile":
        from torch._dynamo.utils import counters
        from torch._inductor import config

        found["mode"] = wanted.options.get("mode", "default")
        found["freezing"] = _on(config.freezing)
        found["graphs"] = str(counters["stats"]["unique_graphs"])
        found["graph_breaks"] = str(sum(counters["graph_break"].values()))
        found["compile_cache_hits"] = str(counters["inductor"]["fxgraph_cache_hit"])
    return found


def libraries_in_force() -> dict[str, str]:
    """Read the settings of cuDNN and cuBLAS, which choose algorithms and round sums."""
    import torch

    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    return {
        "cudnn": str(cudnn.version() if cudnn.is_available() else "none") if cudnn.enabled else "off",
        "cudnn_benchmark": _on(cudnn.benchmark),
        "cudnn_deterministic": _on(cudnn.deterministic),
        "fp16_reduction": _on(matmul.allow_fp16_reduced_precision_reduction),
        "bf16_reduction": _on(matmul.allow_bf16_reduced_precision_reduction),
        "cublas_workspace": os.environ.get("CUBLAS_WORKSPACE_CONFIG", "default"),
    }


def integers_in_force() -> dict[str, str]:
    products = integer_products()
    return {
        "precision": "int8" if products else "fp32",
        "quantized": quantity_text.count(products, "product") + " in integers",
        "weights": "quantized; the answers alone prove that they are the same",
    }


def _precision(model: Any, device: str) -> str:
    """Describe the type of the weights, and what the switches do with it."""
    import torch

    kinds = {each.dtype for each in model.state_dict().values() if each.is_floating_point()}
    names = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16", torch.float8_e4m3fn: "fp8"}
    held = " and ".join(sorted(names.get(kind, str(kind)) for kind in kinds))
    kind = device.partition(":")[0]
    if torch.is_autocast_enabled(kind):
        into = names.get(torch.get_autocast_dtype(kind))
        return "autocast" if held in ("fp32", "") and into == "bf16" else f"{held} with autocast to {into}"
    if kind != "cpu" and torch.backends.cuda.matmul.allow_tf32 and torch.backends.cudnn.allow_tf32:
        return "tf32" if held in ("fp32", "") else held
    return held or NO_WEIGHTS


def _memory_format(model: Any) -> str:
    """Of the convolutions' kernels; where all are 1 x 1 the two formats are the same."""
    import torch

    kernels = [each for each in model.parameters() if each.dim() == 4]
    if kernels and all(each.is_contiguous(memory_format=torch.channels_last) for each in kernels):
        return "channels_last"
    return "contiguous"


def _on(yes: bool) -> str:
    return "on" if yes else "off"


@contextmanager
def modes_of_a_thread(work: Workload, device: str) -> Iterator[None]:
    """Switch on the modes that PyTorch keeps for each thread, as in the thread that prepares, and use its device."""
    import torch

    with ExitStack() as modes:
        if device != "cpu":
            modes.enter_context(torch.cuda.device(device_number(device)))
        kept = {"infer": torch.inference_mode}
        if work.mode in kept:
            modes.enter_context(kept[work.mode]())
        if work.precision == "autocast":
            kind = device.partition(":")[0]
            modes.enter_context(torch.autocast(kind, dtype=torch.bfloat16, cache_enabled=False))
        yield


def put_in_force(wanted: Settings) -> None:
    """For the whole process, which may set its threads between operations only once."""
    import torch

    torch.set_num_threads(wanted.threads)
    between_operations = int(wanted.options.get("interop_threads", "1"))
    if torch.get_num_interop_threads() != between_operations:
        torch.set_num_interop_threads(between_operations)
    if "onednn" in wanted.options:
        torch.backends.mkldnn.set_flags(wanted.options["onednn"] == "on")


COMPILE_MODES = ("default", "lite", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
"""Of all releases of PyTorch; its own says in the worker which of them it lacks."""


def compiled_by_torch(forward: Any, options: Mapping[str, str]) -> Any:
    import torch

    mode = options.get("mode")
    known = list(torch._inductor.list_mode_options()) if mode else []
    if mode and mode not in known:
        raise Unsupported(f"torch.compile has no mode {mode!r}; it has {', '.join(known)}")
    if "freezing" in options:  # for the whole process: torch.compile takes a mode or options, not both
        from torch._inductor import config

        config.freezing = options["freezing"] == "on"
    graphs = getattr(forward, "graphs_by_size", 0)
    if not graphs:
        return torch.compile(forward, mode=mode)
    from torch._dynamo import config

    config.recompile_limit = max(config.recompile_limit, graphs + 1)  # beyond it PyTorch would stop compiling
    return torch.compile(forward, mode=mode, dynamic=False)
