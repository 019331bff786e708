"""The contestants of planted mistakes: which functions of a planted file they run, and what these are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from fairlap.errors import InvalidRequest
from fairlap.request.names import ContestantName
from fairlap.suggestions import did_you_mean

E_CONTESTANT = "E_CONTESTANT"


@dataclass(frozen=True)
class Way:
    """``given`` makes the argument of the functions, in a worker; without it they take none."""

    functions: tuple[str, ...]  # the first that a planted file has
    package: str
    given: Callable[[], Any] | None = None
    before_each: Callable[[], None] = lambda: None
    alone: bool = False  # each mistake in its own process, since an error changes what the next one says
    environment: Mapping[str, str] = field(default_factory=dict)

    def version(self) -> str:
        return version(self.package)


def _as_it_is() -> Callable[[Any], Any]:
    return lambda function: function


def _torch_compile() -> Any:
    import torch

    return torch.compile


def _forget_compiled() -> None:
    import torch

    torch.compiler.reset()


def _jax_jit() -> Any:
    import jax

    return jax.jit


def _tf_function() -> Any:
    import tensorflow as tf

    return tf.function


def _tf_xla() -> Any:
    import tensorflow as tf

    return tf.function(jit_compile=True)


def _session() -> Any:
    import onnxruntime

    def run(model: bytes, inputs: Mapping[str, Any], provider: Any = "CPUExecutionProvider") -> Any:
        return onnxruntime.InferenceSession(model, providers=[provider]).run(None, dict(inputs))[0]

    return run


def _compiled_model() -> Any:
    import io

    import openvino

    def run(model: bytes, inputs: Mapping[str, Any], device: str = "CPU") -> Any:
        core = openvino.Core()
        compiled = core.compile_model(core.read_model(io.BytesIO(model)), device)
        return compiled(dict(inputs))[0]

    return run


def _keras(backend: str) -> Way:
    return Way(("keras",), "keras", environment={"KERAS_BACKEND": backend})


WAYS: Mapping[str, Way] = {
    "torch": Way(("torch",), "torch", _as_it_is),
    "torch:compile": Way(("torch",), "torch", _torch_compile, _forget_compiled),
    "jax": Way(("jax",), "jax", _jax_jit),
    "jax:jit=off": Way(("jax",), "jax", _as_it_is),
    "tensorflow": Way(("tensorflow",), "tensorflow", _as_it_is),
    # TensorFlow 2.21 named lines of functions that no longer existed as the places of nodes in later graphs.
    "tensorflow:graph": Way(("tensorflow",), "tensorflow", _tf_function, alone=True),
    "tensorflow:xla": Way(("tensorflow",), "tensorflow", _tf_xla, alone=True),
    "keras": _keras("tensorflow"),
    "keras:backend=jax": _keras("jax"),
    "keras:backend=torch": _keras("torch"),
    "onnxruntime": Way(("onnxruntime", "onnx"), "onnxruntime", _session),
    "openvino": Way(("openvino", "onnx"), "openvino", _compiled_model),
    "numpy": Way(("numpy",), "numpy"),
}


def way_name(name: ContestantName) -> str:
    """Name the contestant without its version."""
    options = [f"{option}={value}" for option, value in name.framework_options.items()]
    text = ":".join(filter(None, (name.framework, name.variant, *options)))
    if text not in WAYS:
        known = ", ".join(WAYS)
        hint = did_you_mean(text, WAYS) or f"they are for {known}"
        raise InvalidRequest(f"{name.text}: no mistakes are planted there; {hint}", code=E_CONTESTANT)
    return text
