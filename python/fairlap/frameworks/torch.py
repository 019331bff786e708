"""PyTorch: a module in eager mode, or the same module through torch.compile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fairlap.frameworks.contract import Contestant, Framework, Phase, Settings, Unsupported
from fairlap.frameworks.thread_environment import thread_environment
from fairlap.workloads.workload import Arrays, Workload

_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class Torch(Framework):
    name = "torch"
    packages = ("torch==2.13.0",)
    module = "torch"
    variants = ("", "compile")
    modes = ("infer", "grad")
    precisions = ("fp32", "bf16")

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        return thread_environment(settings.threads)

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        if wanted.device != "cpu":
            raise Unsupported(f"torch on {wanted.device} is not written yet; use --device cpu")
        compile_mode = _compile_mode(wanted)
        with phase("import"):
            import torch
        self._torch = torch
        torch.set_num_threads(wanted.threads)
        torch.set_num_interop_threads(1)
        dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[work.precision]
        with phase("build"):
            model = work.implementation("torch").build(work.weights).to(dtype)
            if (layout := getattr(model, "MEMORY_FORMAT", None)) is not None:
                model = model.to(memory_format=getattr(torch, layout))
            trained = {weight.name for weight in work.spec.weights if weight.trained}
            for name, parameter in model.named_parameters():
                parameter.requires_grad_(work.mode == "grad" and name in trained)
        forward = model
        if wanted.variant == "compile":
            with phase("compile"):  # loads the compiler; it compiles at the first call
                forward = torch.compile(model, mode=compile_mode)
        names = [tensor.name for tensor in work.spec.outputs]

        def tensors(inputs: Arrays) -> dict[str, Any]:
            # The arrays are read-only and nobody writes to them; sharing them is what we want.
            shared = {name: torch.from_numpy(np.array(array, copy=None)) for name, array in inputs.items()}
            return {name: each.to(dtype) if each.is_floating_point() else each for name, each in shared.items()}

        def bind(inputs: Arrays) -> Callable[[], Any]:
            if work.mode == "grad":
                return partial(_loss_and_gradients(torch, work, forward, model), **tensors(inputs))
            return partial(torch.inference_mode()(forward), **tensors(inputs))

        def outputs(result: Any) -> dict[str, Any]:
            if work.mode == "infer":
                return {name: _array(value) for name, value in zip(names, result, strict=True)}
            loss, gradients = result
            named = {f"grad/{name}": _array(value) for name, value in gradients.items()}
            return {"loss": _array(loss), **named}

        return Contestant(
            bind=bind,
            done=None,
            outputs=outputs,
            weights=lambda: {name: _array(value) for name, value in model.state_dict().items()},
            in_force=self._in_force(model, wanted, compile_mode),
        )

    def version(self) -> str:
        return str(self._torch.__version__)

    def _in_force(self, model: Any, wanted: Settings, compile_mode: str) -> dict[str, str]:
        torch = self._torch
        dtype = next(model.parameters(), torch.empty(0)).dtype
        return {
            "threads": str(torch.get_num_threads()),
            "precision": {torch.float32: "fp32", torch.bfloat16: "bf16"}[dtype],
            "interop_threads": str(torch.get_num_interop_threads()),
            "execution": f"torch.compile({compile_mode})" if wanted.variant == "compile" else "eager",
            "memory_format": getattr(model, "MEMORY_FORMAT", "contiguous"),
            "float32_matmul_precision": torch.get_float32_matmul_precision(),
            "mkldnn": str(torch.backends.mkldnn.is_available()),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        }


def _compile_mode(wanted: Settings) -> str:
    unknown = sorted(set(wanted.options) - {"mode"})
    mode = wanted.options.get("mode", "default")
    if unknown or (mode != "default" and wanted.variant != "compile"):
        raise Unsupported(f"torch:{wanted.variant} has no option {', '.join(unknown) or 'mode'}")
    if mode not in _MODES:
        raise Unsupported(f"torch.compile has no mode {mode!r}; it has {', '.join(_MODES)}")
    return mode


def _loss_and_gradients(torch: Any, work: Workload, forward: Any, model: Any) -> Callable[..., Any]:
    names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    labels = None if work.labels is None else torch.from_numpy(work.labels.astype(np.int64))
    functional = torch.nn.functional

    def call(**inputs: Any) -> Any:
        output = forward(**inputs)[0]
        if labels is None:
            loss = output.square().mean()
        else:
            loss = functional.cross_entropy(output.reshape(-1, output.shape[-1]), labels.reshape(-1))
        return loss.detach(), dict(zip(names, torch.autograd.grad(loss, parameters), strict=True))

    return call


def _array(value: Any) -> Any:
    return np.array(value.detach().float().numpy(), order="C")
