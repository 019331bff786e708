"""tinygrad: every call scheduled again and realized, or captured once by ``TinyJit`` and replayed.

``TinyJit`` writes into the same buffers at every replay, so a result is that of the last call of any binding.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any, ClassVar

from fairlap.frameworks.adapter_parts.answers import Answers, as_float32, named_gradients, named_outputs, trained_names
from fairlap.frameworks.adapter_parts.own_threads import thread_count
from fairlap.frameworks.contract import (
    NO_WEIGHTS,
    Contestant,
    Framework,
    Phase,
    Settings,
    Unsupported,
    refuse_what_is_unknown,
)
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload

Step = Callable[..., tuple[Any, ...]]


class TinyGrad(Framework):
    name = "tinygrad"
    packages = ("tinygrad==0.14.0",)
    module = "tinygrad"
    no_precision: ClassVar = dict.fromkeys(("fp16", "bf16"), "Debian's clang 14 does not compile its kernels for it")
    variants = ("", "jit")
    tunable: ClassVar = {"variant": ("jit",)}
    modes = ("infer", "grad")

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        """Switch off the pool that compiles, whose size is PARALLEL.

        It would stay, with three Python threads in this process that take turns with the calls.
        """
        return {"DEV": "CPU", "NUM_CPU_THREADS": str(settings.threads), "PARALLEL": "0"}

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        compiler = _compiler()
        with phase("import"):
            from tinygrad import Device
            from tinygrad.nn.state import get_state_dict
        self._version = version("tinygrad")
        before = thread_count()
        with phase("build"):
            model = work.implementation("tinygrad").build(work.weights)
            held = get_state_dict(model)
        make_step, answers = _MODES[work.mode]
        step = make_step(work, model, held)
        run = _captured(step, work) if wanted.variant == "jit" else step
        bind = partial(_bind, run)
        with phase("compile"):
            bind(work.inputs)()  # the first run compiles its kernels
        return Contestant(
            bind=bind,
            done=lambda _: Device[Device.DEFAULT].synchronize(),
            outputs=partial(answers, work),
            weights=partial(_weights, work, held),
            in_force={
                "threads": _threads(wanted.threads, 1 + thread_count() - before if before else 0),
                "precision": _precision(held),
                **_settings(),
                "compiler": compiler,
            },
        )


def _compiler() -> str:
    """Ask the compiler for its version."""
    command = os.environ.get("CC", "clang")
    if shutil.which(command) is None:
        raise Unsupported(f"tinygrad compiles kernels with {command}, which was not found; install clang, or set CC")
    run = subprocess.run([command, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return run.stdout.partition("\n")[0] or "unknown"


def _forward(_work: Workload, model: Any, _held: dict[str, Any]) -> Step:
    from tinygrad import Tensor

    def step(**inputs: Any) -> tuple[Any, ...]:
        results: tuple[Any, ...] = model(**inputs)
        Tensor.realize(*results)
        return results

    return step


def _loss_and_gradients(work: Workload, model: Any, held: dict[str, Any]) -> Step:
    from tinygrad import Tensor

    trained = [held[name] for name in trained_names(work.spec)]
    labels = None if work.labels is None else Tensor(work.labels.reshape(-1)).realize()

    def step(**inputs: Any) -> tuple[Any, ...]:
        first = model(**inputs)[0]
        if labels is None:
            loss = first.square().mean()
        else:
            loss = first.reshape(-1, first.shape[-1]).sparse_categorical_crossentropy(labels)
        results = (loss, *loss.gradient(*trained))
        Tensor.realize(*results)
        return results

    return step


def _bind(run: Step, inputs: Arrays) -> Callable[[], Any]:
    return partial(run, **_tensors(inputs))


def _tensors(inputs: Arrays) -> dict[str, Any]:
    from tinygrad import Tensor

    return {name: Tensor(array).realize() for name, array in inputs.items()}


def _captured(step: Step, work: Workload) -> Step:
    from tinygrad import TinyJit

    replay: Step = TinyJit(step)
    replay(**_tensors(work.inputs))  # the first call runs normally
    replay(**_tensors(work.inputs))  # the second one is captured
    return replay


def _outputs(work: Workload, result: tuple[Any, ...]) -> Answers:
    return named_outputs(work.spec, [each.numpy() for each in result])


def _gradients(work: Workload, result: tuple[Any, ...]) -> Answers:
    loss, *gradients = (each.numpy() for each in result)
    return named_gradients(loss, dict(zip(trained_names(work.spec), gradients, strict=True)))


_MODES = {"infer": (_forward, _outputs), "grad": (_loss_and_gradients, _gradients)}


def _weights(work: Workload, held: dict[str, Any]) -> Answers:
    return {weight.name: as_float32(held[weight.name].numpy()) for weight in work.spec.weights}


def _threads(wanted: int, found: int) -> str:
    """tinygrad 0.14.0 splits a kernel into as many parts as it has threads, and runs them one after another."""
    if wanted == found or not found:
        return str(found) if found else "cannot be read"
    return f"{found} of {wanted}: kernels run one after another on the calling thread"


def _precision(held: dict[str, Any]) -> str:
    kinds = {tensor.dtype.name for tensor in held.values()}
    return " and ".join(sorted("fp32" if kind == "float" else kind for kind in kinds)) or NO_WEIGHTS


def _settings() -> dict[str, str]:
    from tinygrad import Device
    from tinygrad.helpers import BEAM, CCACHE, NUM_CPU_THREADS

    renderer = Device[Device.DEFAULT].renderer
    return {
        "device": Device.DEFAULT,
        "renderer": type(renderer).__name__,
        "target": renderer.target.arch,
        "parts_of_a_kernel": f"at most {NUM_CPU_THREADS.value}",
        "beam": str(BEAM.value),
        "compile_cache": "on" if CCACHE else "off",
    }
