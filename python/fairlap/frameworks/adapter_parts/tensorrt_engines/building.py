"""TensorRT engines from ONNX graphs. The graph declares every type, which a strongly typed network keeps.

Written for the Python API of TensorRT 10 and 11, whose bindings are public (NVIDIA/TensorRT, python/src).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlap import quantity_text
from fairlap.errors import shortened
from fairlap.frameworks.contract import Unsupported
from fairlap.machine.files.private_files import tighten

_TIMING_CACHE = "tensorrt-timing-cache"
# As the inspector writes them: "Half", or "Row major linear FP16 format". Bfloat16 contains the word Float.
_TYPES = {"bf16": r"BF16|BFloat16", "fp16": r"FP16|Half", "fp32": r"FP32|\bFloat\b", "int8": r"Int8", "fp8": r"FP8"}


@dataclass(frozen=True)
class BuildSettings:
    """``timing_cache`` is a folder in which the times of kernels are kept for later builds; empty for none."""

    threads: int
    tf32: bool
    workspace_bytes: int | None = None  # None for all memory of the device, TensorRT's default
    level: int | None = None  # None for TensorRT's default
    timing_cache: str = ""


@dataclass(frozen=True)
class BuiltEngine:
    engine: Any
    in_force: Mapping[str, str]
    keeps_alive: tuple[Any, ...] = field(repr=False)  # the engine's runtime and logger


class EngineBuild:
    """One build, in three steps that are timed apart: the builder, the parser, and what searches for kernels."""

    def __init__(self, trt: Any, settings: BuildSettings) -> None:
        self._trt, self._settings = trt, settings
        self._log = _log_of(trt)
        self._builder = trt.Builder(self._log)
        self._builder.max_threads = settings.threads
        # Since TensorRT 11 every network is strongly typed, and the flag is accepted still.
        self._network = self._builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))

    def parse(self, graph: bytes | str) -> None:
        """Read the bytes of a graph, or a file together with what is beside it."""
        parser = self._trt.OnnxParser(self._network, self._log)
        read = parser.parse_from_file(graph) if isinstance(graph, str) else parser.parse(graph)
        if not read:
            errors = [parser.get_error(number).desc() for number in range(parser.num_errors)]
            raise Unsupported(f"tensorrt cannot read the graph: {shortened(errors[0] if errors else self._why())}")

    def engine(self) -> BuiltEngine:
        config = self._config()
        plan = self._builder.build_serialized_network(self._network, config)
        if plan is None:
            raise Unsupported(f"tensorrt built no engine: {self._why()}")
        self._keep_timing_cache(config)
        runtime = self._trt.Runtime(self._log)
        runtime.max_threads = self._settings.threads
        engine = runtime.deserialize_cuda_engine(plan)
        if engine is None:
            raise Unsupported(f"tensorrt cannot load the engine that it built: {self._why()}")
        return BuiltEngine(engine, self._in_force(config, runtime, engine), (runtime, self._log))

    def _config(self) -> Any:
        trt, settings = self._trt, self._settings
        config = self._builder.create_builder_config()
        if settings.workspace_bytes is not None:
            config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, settings.workspace_bytes)
        if settings.level is not None:
            config.builder_optimization_level = settings.level
        if not settings.tf32:  # it is on by default, and float32 means float32
            config.clear_flag(trt.BuilderFlag.TF32)
        config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED  # the engine reports no types otherwise
        if settings.timing_cache:
            file = self._timing_file()
            cache = config.create_timing_cache(file.read_bytes() if file.is_file() else b"")
            config.set_timing_cache(cache, ignore_mismatch=False)
        self._require_fixed_sizes()
        return config

    def _require_fixed_sizes(self) -> None:
        inputs = [self._network.get_input(number) for number in range(self._network.num_inputs)]
        open_ones = [tensor.name for tensor in inputs if any(size < 0 for size in tuple(tensor.shape))]
        if open_ones:
            raise Unsupported(
                f"tensorrt is raced with the sizes of a graph fixed; {', '.join(open_ones)} has open ones"
            )

    def _timing_file(self) -> Path:
        return Path(self._settings.timing_cache) / _TIMING_CACHE

    def _keep_timing_cache(self, config: Any) -> None:
        if self._settings.timing_cache:
            file = self._timing_file()
            file.write_bytes(bytes(config.get_timing_cache().serialize()))
            tighten(file)

    def _in_force(self, config: Any, runtime: Any, engine: Any) -> dict[str, str]:
        trt = self._trt
        workspace = config.get_memory_pool_limit(trt.MemoryPoolType.WORKSPACE)
        types = types_of_layers(
            engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
        )
        return {
            "threads": str(runtime.max_threads),
            "workspace": f"at most {quantity_text.size(workspace)}",
            "optimization": str(config.builder_optimization_level),
            "timing_cache": "kept from process to process" if self._settings.timing_cache else "empty in each process",
            "activation_memory": quantity_text.size(engine.device_memory_size_v2),
            "aux_streams": str(engine.num_aux_streams),
            "layers": str(engine.num_layers),
            **({"types_of_layers": types} if types else {}),
        }

    def _why(self) -> str:
        return shortened(self._log.worst) if self._log.worst else "it logged no error"


def types_of_layers(information: str) -> str:
    """Count layers by the types of what they read, from the inspector's JSON; empty where it shows none.

    TensorRT does not promise the format of these texts.
    """
    try:
        layers = json.loads(information)["Layers"]
    except (ValueError, KeyError, TypeError):
        return ""
    counted: Counter[str] = Counter()
    for layer in layers:
        inputs = layer.get("Inputs", []) if isinstance(layer, dict) else []
        texts = " ".join(str(each.get("Format/Datatype", "")) for each in inputs if isinstance(each, dict))
        found = [name for name, words in _TYPES.items() if re.search(words, texts)]
        if found:
            counted[" and ".join(sorted(found))] += 1
    return ", ".join(f"{count} read {name}" for name, count in sorted(counted.items()))


def _log_of(trt: Any) -> Any:
    class Log(trt.ILogger):  # type: ignore[misc]
        """Keep the last error, and print nothing."""

        def __init__(self) -> None:
            trt.ILogger.__init__(self)
            self.worst = ""

        def log(self, severity: Any, msg: str) -> None:
            if severity in (trt.ILogger.Severity.ERROR, trt.ILogger.Severity.INTERNAL_ERROR):
                self.worst = msg

    return Log()
