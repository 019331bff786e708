"""ONNX Runtime with providers for GPUs, made of the real package: its options and signatures, and arrays of its own.

What it adds is what ONNX Runtime documents of those providers (onnxruntime.ai, execution providers) and what its Python
code does: options that a provider does not know raise, the processor's provider comes last, where nodes run is known
only if it was asked for, a graph with TensorRT's engines cannot be written, and the run waits for its stream unless it
is told not to. Results are those of onnx's own evaluator; a kernel of the fake device stands for the time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import onnxruntime.quantization  # is found as a module of its own while the package is stood in for
from frameworks_on_fakes.evaluated_as_on_gpus import Evaluated

CPU, CUDA, TENSORRT = (f"{name}ExecutionProvider" for name in ("CPU", "CUDA", "Tensorrt"))
KNOWN_OPTIONS = {
    CPU: set(),
    CUDA: {"device_id", "user_compute_stream", "gpu_mem_limit", "use_tf32", "enable_cuda_graph"},
    TENSORRT: {
        *("device_id", "user_compute_stream", "trt_engine_cache_enable", "trt_engine_cache_path", "trt_fp16_enable"),
        *("trt_bf16_enable", "trt_int8_enable", "trt_timing_cache_enable", "trt_timing_cache_path"),
    },
}
KERNEL_NS = 40_000
_RECORD = "session.record_ep_graph_assignment_info"
_GRAPH_ID = "gpu_graph_id"
_NO_WAIT = "disable_synchronize_execution_providers"


class Machine:
    """What a test decides, and what was asked for."""

    def __init__(self, launch: Callable[[int, int], object], wait: Callable[[int], object]) -> None:
        self.launch, self.wait = launch, wait  # on a stream, so many nanoseconds
        self.on_host: set[str] = set()  # kinds of nodes that no GPU provider takes
        self.not_in_tensorrt: set[str] = set()  # kinds that TensorRT leaves to the next provider
        self.built_with = [TENSORRT, CUDA, CPU]
        self.loads = {TENSORRT, CUDA}
        self.preloaded = 0
        self.sessions: list[Session] = []

    def module(self) -> Any:
        """Stand in for the package: with what an adapter may use, and nothing else."""
        return SimpleNamespace(
            __version__="1.32.0",
            __file__="/nowhere/onnxruntime/__init__.py",
            SessionOptions=onnxruntime.SessionOptions,
            RunOptions=onnxruntime.RunOptions,
            ExecutionMode=onnxruntime.ExecutionMode,
            GraphOptimizationLevel=onnxruntime.GraphOptimizationLevel,
            OrtValue=Value,
            InferenceSession=self._session,
            get_available_providers=lambda: list(self.built_with),
            preload_dlls=self._preload,
        )

    def _preload(self, cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
        self.preloaded += 1

    def _session(
        self,
        path_or_bytes: str | bytes,
        sess_options: Any = None,
        providers: Sequence[str] | None = None,
        provider_options: Sequence[dict[str, str]] | None = None,
    ) -> Session:
        given = dict(zip(providers or (), provider_options or (), strict=True))
        self.sessions.append(Session(self, path_or_bytes, sess_options or onnxruntime.SessionOptions(), given))
        return self.sessions[-1]


class Value:
    """An array in the memory of a device, here in that of the process."""

    def __init__(self, array: np.ndarray, device_type: str) -> None:
        self._array, self._device = array, device_type

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: np.ndarray, /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> Value:
        if numpy_obj.dtype.name not in ("float16", "float32", "float64", "int8", "uint8", "uint16", "int32", "int64"):
            raise ValueError(f"Numpy data type not supported: {numpy_obj.dtype}")
        return cls(numpy_obj if device_type == "cpu" else numpy_obj.copy(), device_type)

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: Any,
        device_type: str = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
        memory_info: Any = None,
    ) -> Value:
        return cls(np.full(shape, 7, element_type), device_type)

    def shape(self) -> list[int]:
        return list(self._array.shape)

    def data_ptr(self) -> int:
        return int(self._array.ctypes.data)

    def numpy(self) -> np.ndarray:
        return self._array if self._device == "cpu" else self._array.copy()


class Binding:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.inputs: dict[str, np.ndarray] = {}
        self.outputs: dict[str, np.ndarray] = {}

    def bind_ortvalue_input(self, name: str, ortvalue: Value) -> None:
        self.inputs[name] = ortvalue._array

    def bind_ortvalue_output(self, name: str, ortvalue: Value) -> None:
        self.outputs[name] = ortvalue._array

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        self.inputs[name] = array_at(buffer_ptr, element_type, shape)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        assert shape is not None
        assert buffer_ptr is not None
        self.outputs[name] = array_at(buffer_ptr, element_type, shape)


class Session:
    def __init__(
        self, machine: Machine, graph: str | bytes, options: Any, providers: dict[str, dict[str, str]]
    ) -> None:
        for name, given in providers.items():
            if unknown := sorted(set(given) - KNOWN_OPTIONS[name]):
                raise RuntimeError(f"Unknown provider option: {unknown[0]!r}")
        self._machine, self._options = machine, options
        self.graphs: dict[str, list[int]] = {}  # by number, the addresses that were captured
        self._providers = {name: given for name, given in providers.items() if name == CPU or name in machine.loads}
        self._providers.setdefault(CPU, {})
        self._model = onnx.load_from_string(graph) if isinstance(graph, bytes) else onnx.load_model(graph)
        self._evaluated = Evaluated(self._model)
        if options.optimized_model_filepath:
            if TENSORRT in self._providers:
                raise RuntimeError("Unable to serialize model as it contains compiled nodes.")
            Path(options.optimized_model_filepath).write_bytes(self._model.SerializeToString())

    def get_providers(self) -> list[str]:
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: dict(given) for name, given in self._providers.items()}

    def get_session_options(self) -> Any:
        return self._options

    def get_inputs(self) -> list[Any]:
        return [_declared(value) for value in self._model.graph.input]

    def get_outputs(self) -> list[Any]:
        return [_declared(value) for value in self._model.graph.output]

    def get_provider_graph_assignment_info(self) -> list[Any]:
        if self._options.get_session_config_entry(_RECORD) != "1":
            raise RuntimeError(f"Session configuration entry '{_RECORD}' must be set to \"1\"")
        parts: dict[str, list[Any]] = {}
        for node in self._model.graph.node:
            parts.setdefault(self._provider_of(node.op_type), []).append(node)
        fused = [SimpleNamespace(ep_name=TENSORRT, get_nodes=lambda: parts[TENSORRT])] if TENSORRT in parts else []
        alone = [
            SimpleNamespace(ep_name=name, get_nodes=lambda node=node: [node])
            for name, nodes in parts.items()
            if name != TENSORRT
            for node in nodes
        ]
        return [*fused, *alone]

    def io_binding(self) -> Binding:
        return Binding(self)

    def run_with_iobinding(self, iobinding: Binding, run_options: Any = None) -> None:
        if iobinding.session is not self:
            raise ValueError("IOBinding must be used with the session that created it.")
        first = next(iter(self._providers.values()))
        stream, replays = int(first["user_compute_stream"]), False
        if first.get("enable_cuda_graph") == "1":
            replays = self._replays(iobinding, run_options.get_run_config_entry(_GRAPH_ID))
        results = self._evaluated.run(iobinding.inputs)
        for value, result in zip(self._model.graph.output, results, strict=True):
            bound = iobinding.outputs[value.name]
            assert (bound.dtype, bound.shape) == (result.dtype, result.shape)
            bound[...] = result
        self._machine.launch(stream, KERNEL_NS)
        if replays or run_options is None or run_options.get_run_config_entry(_NO_WAIT) != "1":
            self._machine.wait(stream)

    def _replays(self, binding: Binding, number: str) -> bool:
        """Whether the graph was captured before. A replay waits for its stream also if told not to (pull 28686).

        The real one would work on the addresses of the capture.
        """
        assert number
        addresses = [each.ctypes.data for each in (*binding.inputs.values(), *binding.outputs.values())]
        captured = number in self.graphs
        assert self.graphs.setdefault(number, addresses) == addresses
        return captured

    def _provider_of(self, kind: str) -> str:
        if kind in self._machine.on_host:
            return CPU
        return next(name for name in self._providers if name != TENSORRT or kind not in self._machine.not_in_tensorrt)


def _declared(value: Any) -> Any:
    kind = onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type).lower()
    return SimpleNamespace(name=value.name, type=f"tensor({kind})")


def array_at(address: int, element_type: int, shape: Sequence[int]) -> np.ndarray:
    dtype = onnx.helper.tensor_dtype_to_np_dtype(element_type)
    count = int(np.prod(shape)) * dtype.itemsize
    raw = (ctypes.c_uint8 * count).from_address(address)
    found: np.ndarray = np.frombuffer(raw, np.uint8).view(dtype).reshape(shape)
    return found
