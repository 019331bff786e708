"""The available frameworks: built-in ones, and those of installed packages."""

from __future__ import annotations

from importlib.util import find_spec

from fairlap.errors import InvalidRequest
from fairlap.frameworks.contract import Framework
from fairlap.plugins import class_at, places_in_packages
from fairlap.suggestions import did_you_mean

GROUP = "fairlap.frameworks"

_BUILT_IN = {
    "torch": "fairlap.frameworks.libraries.torch:Torch",
    "jax": "fairlap.frameworks.libraries.jax:Jax",
    "tensorflow": "fairlap.frameworks.libraries.tensorflow:TensorFlow",
    "onnxruntime": "fairlap.frameworks.runtimes.onnxruntime:OnnxRuntime",
    "onnxruntime-genai": "fairlap.frameworks.runtimes.onnxruntime_genai:OnnxRuntimeGenAi",
    "openvino": "fairlap.frameworks.runtimes.openvino:OpenVino",
    "openvino-genai": "fairlap.frameworks.runtimes.openvino_genai:OpenVinoGenAi",
    "llama-cpp": "fairlap.frameworks.runtimes.llama_cpp:LlamaCpp",
    "litert": "fairlap.frameworks.runtimes.litert:LiteRT",
    "python": "fairlap.frameworks.programs.python_callable:PythonCallable",
    "command": "fairlap.frameworks.programs.command:CommandLine",
    "paddle": "fairlap.frameworks.libraries.paddle:Paddle",
    "mxnet": "fairlap.frameworks.libraries.mxnet:MXNet",
    "tinygrad": "fairlap.frameworks.libraries.tinygrad:TinyGrad",
    "http": "fairlap.frameworks.programs.http_server:HttpServer",
    "benchmark": "fairlap.frameworks.suites.suite_benchmark:SuiteBenchmark",
    "executorch": "fairlap.frameworks.runtimes.executorch:ExecuTorch",
    "tensorrt": "fairlap.frameworks.runtimes.tensorrt:TensorRt",
    "mpi": "fairlap.frameworks.libraries.mpi:Mpi",
    "scipy": "fairlap.frameworks.solvers.scipy:SciPy",
    "diffrax": "fairlap.frameworks.solvers.diffrax:Diffrax",
    "tensorflow-probability": "fairlap.frameworks.solvers.tensorflow_probability:TensorFlowProbability",
    "torchdiffeq": "fairlap.frameworks.solvers.torchdiffeq:TorchDiffEq",
    "numpy": "fairlap.frameworks.simulators.numpy:NumPy",
    "gymnasium": "fairlap.frameworks.simulators.gymnasium:Gymnasium",
    "gymnax": "fairlap.frameworks.simulators.gymnax:Gymnax",
    "loop": "fairlap.frameworks.pipelines.loop:Loop",
    "dataloader": "fairlap.frameworks.pipelines.dataloader:DataLoader",
    "tfdata": "fairlap.frameworks.pipelines.tfdata:TfData",
    "grain": "fairlap.frameworks.pipelines.grain:Grain",
    "spdl": "fairlap.frameworks.pipelines.spdl:Spdl",
}
_REFUSED = {
    "horovod": "its last release, 0.28.1 of 2023, does not build with current frameworks; race mpi, or torch, jax and "
    "tensorflow with their own exchange of gradients",
}


def framework_names() -> list[str]:
    """Sorted. Imports no adapter."""
    return sorted(_places())


def framework_named(name: str) -> type[Framework]:
    """Load the adapter's class; this imports its module, not the framework."""
    return framework_at(place_of(name))


def place_of(name: str) -> str:
    """Find the place of the adapter's class, ``module:Class``, which is valid in other environments too."""
    places = _BUILT_IN if name in _BUILT_IN else _places()
    if name in _REFUSED and name not in places:
        raise InvalidRequest(f"{name} is not supported: {_REFUSED[name]}")
    if name not in places:
        hint = did_you_mean(name, places, most=3) or "`fairlap list frameworks` lists them"
        raise InvalidRequest(f"no framework named {name!r}; {hint}")
    return places[name]


def framework_at(place: str) -> type[Framework]:
    return class_at(place, Framework, "the adapter")  # type: ignore[type-abstract]


def is_importable(framework: type[Framework]) -> bool:
    """Without importing it."""
    try:
        return find_spec(framework.module) is not None
    except (ImportError, ValueError):
        return False


def _places() -> dict[str, str]:
    return {**places_in_packages(GROUP), **_BUILT_IN}
