"""A stand-in for the package ``tensorrt``, with what NVIDIA's bindings of release 11 export and no more.

Names, parameters and what raises follow the public bindings (NVIDIA/TensorRT, python/src/infer/pyCore.cpp,
pyGraph.cpp, pyFoundationalTypes.cpp and python/src/parsers/pyOnnx.cpp, tag of 11.1) and their documentation. Classes
have slots, so that an attribute which the bindings lack can be neither read nor set. Results are those of onnx's own
evaluator; a kernel of the fake device stands for the time.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
from frameworks_on_fakes.evaluated_as_on_gpus import Evaluated
from frameworks_on_fakes.onnxruntime_on_cuda import array_at

KERNEL_NS = 25_000
_BYTES = {"FLOAT": 4, "HALF": 2, "BF16": 2, "INT8": 1, "INT32": 4, "INT64": 8, "BOOL": 1}
_ONNX = {"FLOAT": 1, "HALF": 10, "BF16": 16, "INT8": 3, "INT32": 6, "INT64": 7, "BOOL": 9}
_FP8 = 17
_WORDS = {1: "Float", 10: "Half", 16: "BFloat16", 3: "Int8"}


class Machine:
    """What a test decides, and what was asked for."""

    def __init__(self, launch: Callable[[int, int], object], device_of_context: Callable[[], int]) -> None:
        self.launch, self.device_of_context = launch, device_of_context
        self.searched: list[int] = []  # for how many layers each build timed kernels
        self.build_fails = self.enqueue_fails = False
        self.devices: set[int] = set()  # that were current when TensorRT worked
        self.configs: list[Any] = []

    def module(self) -> Any:
        """Make the package: with what an adapter may use, and nothing else."""
        return SimpleNamespace(
            __version__="11.1.0.106",
            ILogger=ILogger,
            Builder=lambda logger: Builder(self, logger),
            OnnxParser=lambda network, logger: OnnxParser(self, network, logger),
            Runtime=lambda logger: Runtime(self, logger),
            **{each.__name__: each for each in ENUMERATIONS},
        )

    def at_work(self) -> None:
        self.devices.add(self.device_of_context())


class Severity(enum.IntEnum):
    INTERNAL_ERROR, ERROR, WARNING, INFO, VERBOSE = range(5)


class NetworkDefinitionCreationFlag(enum.IntEnum):
    STRONGLY_TYPED = 1


class BuilderFlag(enum.IntEnum):
    TF32, REFIT, DISABLE_TIMING_CACHE = range(3)


class MemoryPoolType(enum.IntEnum):
    WORKSPACE, TACTIC_DRAM = range(2)


class ProfilingVerbosity(enum.IntEnum):
    LAYER_NAMES_ONLY, NONE, DETAILED = range(3)


class LayerInformationFormat(enum.IntEnum):
    ONELINE, JSON = range(2)


class DataType(enum.IntEnum):
    FLOAT, HALF, INT8, INT32, BOOL, UINT8, FP8, BF16, INT64 = range(9)

    @property
    def itemsize(self) -> int:
        return _BYTES[self.name]


ENUMERATIONS = (
    *(NetworkDefinitionCreationFlag, BuilderFlag, MemoryPoolType, ProfilingVerbosity, LayerInformationFormat, DataType),
)


class ILogger:
    Severity = Severity

    def __init__(self) -> None:
        self.made = True  # a subclass that forgets this is refused by the bindings

    def log(self, severity: Any, msg: str) -> None:
        raise NotImplementedError


class HostMemory(bytes):
    """IHostMemory has the buffer protocol, and ``nbytes``."""

    __slots__ = ()

    @property
    def nbytes(self) -> int:
        return len(self)


class Builder:
    __slots__ = ("_logger", "_machine", "max_threads")

    def __init__(self, machine: Machine, logger: ILogger) -> None:
        assert logger.made
        machine.at_work()
        self._machine, self._logger, self.max_threads = machine, logger, 1

    def create_network(self, flags: int = 0) -> Network:
        assert flags == 1 << int(NetworkDefinitionCreationFlag.STRONGLY_TYPED)
        return Network()

    def create_builder_config(self) -> BuilderConfig:
        config = BuilderConfig()
        self._machine.configs.append(config)
        return config

    def build_serialized_network(self, network: Network, config: BuilderConfig) -> HostMemory | None:
        self._machine.at_work()
        if self._machine.build_fails:
            self._logger.log(Severity.WARNING, "a warning")
            self._logger.log(Severity.ERROR, "Error Code 10: Could not find any implementation for node Gemm_0.")
            return None
        layers = {f"{node.op_type} {list(node.output)}" for node in network.model.graph.node}
        cache = config.timing_cache
        known = set() if cache is None else cache.known
        self._machine.searched.append(len(layers - known))
        known |= layers
        plan = {"model": network.model.SerializeToString().hex(), "detailed": config.profiling_verbosity}
        return HostMemory(json.dumps(plan).encode())


class Network:
    __slots__ = ("model",)

    def __init__(self) -> None:
        self.model = onnx.ModelProto()

    @property
    def num_inputs(self) -> int:
        return len(self.model.graph.input)

    def get_input(self, index: int) -> Any:
        value = self.model.graph.input[index]
        shape = [-1 if each.dim_param else each.dim_value for each in value.type.tensor_type.shape.dim]
        return SimpleNamespace(name=value.name, shape=tuple(shape))


class OnnxParser:
    __slots__ = ("_errors", "_machine", "_network")

    def __init__(self, machine: Machine, network: Network, logger: ILogger) -> None:
        assert logger.made
        self._machine, self._network = machine, network
        self._errors: list[str] = []

    def parse(self, model: bytes, path: str | None = None) -> bool:
        assert isinstance(model, bytes)
        return self._read(onnx.load_from_string(model))

    def parse_from_file(self, model: str) -> bool:
        assert isinstance(model, str)
        return self._read(onnx.load_model(model))

    def _read(self, model: onnx.ModelProto) -> bool:
        if any(node.op_type == "DynamicQuantizeLinear" for node in model.graph.node):
            self._errors.append("Unsupported operator: DynamicQuantizeLinear")
            return False
        self._network.model.CopyFrom(model)
        return True

    @property
    def num_errors(self) -> int:
        return len(self._errors)

    def get_error(self, index: int) -> Any:
        return SimpleNamespace(desc=lambda: self._errors[index])


class TimingCache:
    __slots__ = ("known",)

    def __init__(self, known: set[str]) -> None:
        self.known = known

    def serialize(self) -> HostMemory:
        return HostMemory(json.dumps(sorted(self.known)).encode())


class BuilderConfig:
    __slots__ = ("builder_optimization_level", "flags", "pools", "profiling_verbosity", "timing_cache")

    def __init__(self) -> None:
        self.flags = {BuilderFlag.TF32}  # "TF32 is enabled by default"
        self.pools = {MemoryPoolType.WORKSPACE: 16 * 2**30}  # all memory of the device
        self.builder_optimization_level = 3
        self.profiling_verbosity = ProfilingVerbosity.LAYER_NAMES_ONLY
        self.timing_cache: TimingCache | None = None

    def set_memory_pool_limit(self, pool: MemoryPoolType, pool_size: int) -> None:
        self.pools[pool] = pool_size

    def get_memory_pool_limit(self, pool: MemoryPoolType) -> int:
        return self.pools[pool]

    def clear_flag(self, flag: BuilderFlag) -> None:
        self.flags.discard(flag)

    def create_timing_cache(self, serialized_timing_cache: bytes) -> TimingCache:
        memoryview(serialized_timing_cache)
        return TimingCache(set(json.loads(bytes(serialized_timing_cache) or b"[]")))

    def set_timing_cache(self, cache: TimingCache, ignore_mismatch: bool) -> bool:
        self.timing_cache = cache
        return True

    def get_timing_cache(self) -> TimingCache | None:
        return self.timing_cache


class Runtime:
    __slots__ = ("_machine", "max_threads")

    def __init__(self, machine: Machine, logger: ILogger) -> None:
        assert logger.made
        self._machine, self.max_threads = machine, 1

    def deserialize_cuda_engine(self, serialized_engine: bytes) -> Engine:
        memoryview(serialized_engine)
        self._machine.at_work()
        return Engine(self._machine, self, json.loads(bytes(serialized_engine)))


class Engine:
    __slots__ = ("_machine", "_runtime", "detailed", "model")

    def __init__(self, machine: Machine, runtime: Runtime, plan: dict[str, Any]) -> None:
        self._machine, self._runtime = machine, runtime
        self.model = onnx.load_from_string(bytes.fromhex(plan["model"]))
        self.detailed = plan["detailed"] == ProfilingVerbosity.DETAILED

    @property
    def tensors(self) -> dict[str, Any]:
        return {each.name: each for each in (*self.model.graph.input, *self.model.graph.output)}

    @property
    def num_io_tensors(self) -> int:
        return len(self.tensors)

    @property
    def num_layers(self) -> int:
        return len(self.model.graph.node)

    @property
    def num_aux_streams(self) -> int:
        return 0

    @property
    def device_memory_size_v2(self) -> int:
        return 3 * 2**20

    def get_tensor_name(self, index: int) -> str:
        return list(self.tensors)[index]

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return tuple(each.dim_value for each in self.tensors[name].type.tensor_type.shape.dim)

    def get_tensor_dtype(self, name: str) -> DataType:
        kind = self.tensors[name].type.tensor_type.elem_type
        return DataType[next(each for each, number in _ONNX.items() if number == kind)]

    def create_engine_inspector(self) -> Any:
        return SimpleNamespace(get_engine_information=self._information)

    def create_execution_context(self) -> ExecutionContext:
        self._machine.at_work()
        return ExecutionContext(self._machine, self)

    def _information(self, format: LayerInformationFormat) -> str:  # noqa: A002
        assert format == LayerInformationFormat.JSON
        nodes = self.model.graph.node
        if not self.detailed:
            return json.dumps({"Layers": [node.output[0] for node in nodes]})
        dequantized = {node.output[0] for node in nodes if node.op_type == "DequantizeLinear"}
        step = "FP8" if any(each.data_type == _FP8 for each in self.model.graph.initializer) else "Int8"
        plain = _WORDS[self.model.graph.output[0].type.tensor_type.elem_type]
        layers = [
            {"Inputs": [{"Name": name, "Format/Datatype": step if name in dequantized else plain} for name in own]}
            for own in (list(node.input[:1]) for node in nodes)
        ]
        return json.dumps({"Layers": layers, "I/O Tensors": []})


class ExecutionContext:
    __slots__ = ("_addresses", "_engine", "_evaluated", "_machine", "nvtx_verbosity")

    def __init__(self, machine: Machine, engine: Engine) -> None:
        self._machine, self._engine = machine, engine
        self._addresses: dict[str, int] = {}
        self._evaluated = Evaluated(engine.model)
        self.nvtx_verbosity = ProfilingVerbosity.DETAILED  # that of the engine

    def set_tensor_address(self, name: str, memory: int) -> bool:
        if name not in self._engine.tensors or not memory:
            return False
        self._addresses[name] = memory
        return True

    def execute_async_v3(self, stream_handle: int) -> bool:
        self._machine.at_work()
        if self._machine.enqueue_fails or set(self._addresses) != set(self._engine.tensors):
            return False
        graph = self._engine.model.graph
        given = {each.name: self._array(each) for each in graph.input}
        for value, result in zip(graph.output, self._evaluated.run(given), strict=True):
            self._array(value)[...] = result
        self._machine.launch(stream_handle, KERNEL_NS)
        return True

    def _array(self, value: Any) -> np.ndarray:
        shape = self._engine.get_tensor_shape(value.name)
        return array_at(self._addresses[value.name], value.type.tensor_type.elem_type, shape)
