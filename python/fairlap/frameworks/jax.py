"""JAX: a pure function, lowered and compiled ahead of time, so that compiling has a clock of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.frameworks.contract import Contestant, Framework, Phase, Settings, Unsupported
from fairlap.workloads.workload import Arrays, Workload

_POOL = "tf_XLAEigen"  # what XLA calls the threads that share the work of one operation, as the kernel shows it


class Jax(Framework):
    name = "jax"
    packages = ("jax==0.10.2",)
    module = "jax"
    modes = ("infer", "grad")
    precisions = ("fp32", "bf16")
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3"}  # noqa: RUF012  read-only by its type

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        # XLA sizes its pool by this where it is set, else by the cores the process may use.
        return {**cls.environment, "NPROC": str(settings.threads), "JAX_PLATFORMS": "cpu"}

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        if wanted.device != "cpu" or wanted.options:
            raise Unsupported("jax is driven on the CPU and without options here")
        with phase("import"):
            import jax
        self._jax = jax
        model = work.implementation("jax")
        names = [tensor.name for tensor in work.spec.outputs]
        dtype = {"fp32": np.dtype(np.float32), "bf16": jax.numpy.bfloat16}[work.precision]

        def placed(arrays: Any) -> Any:
            return jax.tree.map(lambda array: jax.device_put(_cast(array, dtype), may_alias=True), arrays)

        with phase("build"):
            weights = placed(model.params(work.weights))
            inputs = placed(dict(work.inputs))
            jax.block_until_ready((weights, inputs))
            step = jax.jit(model.forward if work.mode == "infer" else _loss_and_gradients(jax, work, model))
            lowered = step.lower(weights, inputs)
        with phase("compile"):
            compiled = lowered.compile()

        def bind(inputs: Arrays) -> Callable[[], Any]:
            return partial(compiled, weights, jax.block_until_ready(placed(dict(inputs))))

        def outputs(result: Any) -> dict[str, Any]:
            if work.mode == "infer":
                return {name: _array(value) for name, value in zip(names, result, strict=True)}
            loss, gradients = result
            trained = {weight.name for weight in work.spec.weights if weight.trained}
            named = model.canonical(jax.tree.map(_array, gradients))
            return {
                "loss": _array(loss),
                **{f"grad/{name}": _array(value) for name, value in named.items() if name in trained},
            }

        return Contestant(
            bind=bind,
            done=jax.block_until_ready,
            outputs=outputs,
            weights=lambda: {
                name: _array(value) for name, value in model.canonical(jax.tree.map(_array, weights)).items()
            },
            in_force=self._in_force(compiled, work, wanted),
        )

    def version(self) -> str:
        return str(self._jax.__version__)

    def _in_force(self, compiled: Any, work: Workload, wanted: Settings) -> dict[str, str]:
        jax = self._jax
        floats = {str(each.dtype) for each in jax.tree.leaves(compiled.in_avals) if each.dtype.kind not in "iu"}
        precision = {"{'float32'}": "fp32", "{'bfloat16'}": "bf16"}.get(str(floats), ",".join(sorted(floats)))
        threads = _threads_named(_POOL)
        return {
            "threads": str(threads) if threads else f"asked {wanted.threads}, cannot be read",
            "precision": precision if floats else work.precision,
            "backend": jax.default_backend(),
            "matmul_precision": str(jax.config.jax_default_matmul_precision),
            "x64": str(jax.config.jax_enable_x64),
            "async_dispatch": str(jax.config.read("jax_cpu_enable_async_dispatch")),
        }


def _loss_and_gradients(jax: Any, work: Workload, model: Any) -> Callable[..., Any]:
    labels = None if work.labels is None else jax.numpy.asarray(work.labels)

    def loss(weights: Any, inputs: Any) -> Any:
        output = model.forward(weights, inputs)[0]
        if labels is None:
            return jax.numpy.mean(jax.numpy.square(output))
        log_shares = jax.nn.log_softmax(output, axis=-1)
        return -jax.numpy.mean(jax.numpy.take_along_axis(log_shares, labels[..., None], axis=-1))

    return jax.value_and_grad(loss)  # type: ignore[no-any-return]


def _cast(array: Any, dtype: Any) -> Any:
    return array.astype(dtype) if array.dtype.kind == "f" and array.dtype != dtype else array


def _array(value: Any) -> Any:
    return np.array(value, dtype=np.float32, order="C")


def _threads_named(name: str) -> int:
    """How many threads of this process the kernel knows by this name."""
    return sum(path.read_text().strip().startswith(name) for path in Path("/proc/self/task").glob("*/comm"))
