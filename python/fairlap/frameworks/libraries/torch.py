"""PyTorch, eager and through ``torch.compile``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from fairlap.frameworks.adapter_parts.answers import (
    LOSS,
    Answers,
    as_float32,
    batch_of,
    trained_names,
)
from fairlap.frameworks.adapter_parts.devices.torch_graphs import GRAPH, GraphedCalls
from fairlap.frameworks.adapter_parts.devices.torch_on_device import on_device, prepare_device
from fairlap.frameworks.adapter_parts.differentiated import (
    DIRECTION,
    DIRECTIONS,
    direction_in_force,
    implementation_of,
)
from fairlap.frameworks.adapter_parts.losses.torch_losses import loss_and_gradients, loss_of_batch, loss_with
from fairlap.frameworks.adapter_parts.quantized.torch_quantized import quantized
from fairlap.frameworks.adapter_parts.ranks.torch_ranks import FSDP, join, shared, undivided
from fairlap.frameworks.adapter_parts.tensors.torch_tensors import (
    TYPES,
    argument_names,
    as_labels,
    fed_to,
    gradients_of,
    labels_on,
    outputs_of,
    runner,
    tensors_of,
    weights_of,
)
from fairlap.frameworks.adapter_parts.torch_settings import (
    COMPILE_MODES,
    compiled_by_torch,
    integers_in_force,
    modes_of_a_thread,
    put_in_force,
    require_fitting,
    settings_in_force,
)
from fairlap.frameworks.contract import (
    RANKS,
    Collectives,
    Contestant,
    Framework,
    Phase,
    Settings,
    TrainingState,
    Unsupported,
    refuse_what_is_unknown,
)
from fairlap.frameworks.contract_parts.compilation import NO_TYPES, Compilation, Types
from fairlap.frameworks.contract_parts.generation import answer_calls
from fairlap.frameworks.contract_parts.profiler import ProfiledCall, Profiler
from fairlap.models.arrays import Arrays
from fairlap.models.modes import DERIVATIVES, MODES, modes_in
from fairlap.models.spec import LABELS
from fairlap.models.workload import Workload

BoundInMode = Callable[[Any, Callable[[], Any]], Callable[[], Any]]
"""Of a model and its bound forward pass, the call of a mode."""


class Torch(Framework):
    name = "torch"
    of_several_works = ("",)
    packages = ("torch==2.13.0",)  # on Linux the package index has the build with CUDA under the same name
    packages_in: ClassVar = {"int8": ("torchao==0.18.0",)}
    module = "torch"
    variants = ("", "compile", GRAPH, FSDP)
    rank_launcher = "torchrun"
    options: ClassVar = {
        "memory_format": ("contiguous", "channels_last"),
        "onednn": ("on", "off"),
        "interop_threads": (),
        DIRECTION: DIRECTIONS,
    }
    options_of: ClassVar = {"compile": {"mode": COMPILE_MODES, "freezing": ("on", "off")}}
    tunable: ClassVar = {
        "variant": ("compile", "compile:freezing=on", "compile:mode=max-autotune"),
        "memory_format": ("channels_last",),
        "onednn": ("off",),
    }
    tunable_on: ClassVar = {"cuda": {"variant": ("compile", GRAPH), "memory_format": ("channels_last",)}}
    not_tuned: ClassVar = {
        "interop_threads": "models here run one operation after the other, so no second one could run alongside",
        "xnnpack": "PyTorch's builds for servers use it for no operation of a float model; race executorch",
    }
    devices = ("cpu", "cuda")
    devices_of: ClassVar = {GRAPH: ("cuda",)}
    modes = ("infer", "grad", "train", *modes_in("torch"))
    modes_of: ClassVar = {
        FSDP: ("train",),  # what it divides is kept from step to step
        GRAPH: ("infer",),
        # It would unroll the steps of a simulation, and Dynamo does not trace three gradients inside of each other.
        "compile": ("infer", "grad", "train", *(mode for mode in DERIVATIVES if mode != "third")),
    }
    generates = True
    precisions = ("fp32", "fp16", "bf16", "autocast", "tf32", "int8", "fp64")
    no_precision: ClassVar = {"fp8": "its scaled products are those of linear layers alone: race tensorrt"}
    device_memory_limit = "torch.cuda.set_per_process_memory_fraction"

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        kept = settings.cache_folder
        caches = {"TORCHINDUCTOR_CACHE_DIR": f"{kept}/inductor", "TRITON_CACHE_DIR": f"{kept}/triton"} if kept else {}
        return {"OMP_NUM_THREADS": str(settings.threads), "MKL_NUM_THREADS": str(settings.threads), **caches}

    @classmethod
    def forget(cls) -> None:
        """Or torch.compile would take the size of the next work for one that changes, and compile for any."""
        if (dynamo := sys.modules.get("torch._dynamo")) is not None:
            dynamo.reset()

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        require_fitting(work, wanted)
        with phase("import"):
            import torch
        if wanted.device != "cpu":
            tf32 = work.precision == "tf32"
            prepare_device(wanted.device, wanted.device_memory_limit_bytes, self.packages[0], tf32=tf32)
        put_in_force(wanted)
        self._version = str(torch.__version__)
        facts = MODES[work.mode]
        usual = self._of_function if facts.differentiates or facts.acts else self._inferring
        return {"grad": self._differentiated, "train": self._training}.get(work.mode, usual)(work, wanted, phase)

    def _inferring(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        import torch

        # For the whole process: a context around each call would be timed with it.
        self._no_gradients = torch.inference_mode()
        self._no_gradients.__enter__()
        self._begin_autocast(work, wanted)
        with phase("build"):
            model = _built(work, wanted, slopes=False)
        if work.spec.continuation:
            return self._generating(work, wanted, model, phase)
        return self._called(work, wanted, model, phase, lambda held: held, lambda _model, bound: bound, outputs_of)

    def _of_function(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        """Prepare a derivative or an update, which inference mode would keep from being taken."""
        with phase("build"):
            model = _built(work, wanted, slopes=False)
        found = self._called(work, wanted, model, phase, lambda held: held, lambda _model, bound: bound, outputs_of)
        direction = direction_in_force(implementation_of(work, wanted, "torch"), work)
        return replace(found, in_force={**found.in_force, **direction})

    def _differentiated(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        self._begin_autocast(work, wanted)
        with phase("build"):
            model = _built(work, wanted)
        loss = loss_with(model, work.spec.loss, labels_on(work, wanted.device))
        return self._called(work, wanted, model, phase, lambda _held: loss, partial(_sloped, work), gradients_of)

    def _training(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        if wanted.rank is not None:
            with phase("connect"):
                join(wanted)
        with phase("build"):
            model = _built(work, wanted)
        return self._trained(work, wanted, model, phase)

    def _begin_autocast(self, work: Workload, wanted: Settings) -> None:
        """For the whole process, without its cache, which a context around each call would empty each time."""
        import torch

        if work.precision == "autocast":
            kind = wanted.device.partition(":")[0]
            self._autocast = torch.autocast(kind, dtype=torch.bfloat16, cache_enabled=False)
            self._autocast.__enter__()

    def _called(
        self,
        work: Workload,
        wanted: Settings,
        model: Any,
        phase: Phase,
        forward_of: Callable[[Any], Any],
        bound_in_mode: BoundInMode,
        answers: Callable[[Workload, Any], Answers],
    ) -> Contestant:
        """Prepare calls of ``forward_of`` the model, which may be quantized before."""
        compiled = wanted.variant == "compile"
        held, made = model, None
        if work.precision == "int8":
            if not compiled or wanted.device != "cpu":
                raise Unsupported("PyTorch runs quantized models through torch.compile, on x86: race torch:compile")
            with phase("convert"):
                held, made = quantized(work, model)
        forward = forward_of(held)
        bind_in_mode = partial(self._bind, work, wanted.device, bound_in_mode)
        self._places = argument_names(held, work)  # here, since calls that pad bind each time
        uncompiled = forward
        if compiled:
            with phase("compile"):
                forward = compiled_by_torch(forward, wanted.options)
                bind_in_mode(held, forward, work.inputs)()  # the first call compiles
        bind: Callable[..., Callable[[], Any]] = partial(bind_in_mode, held, forward)
        graphed = wanted.variant == GRAPH
        if graphed:
            bind = GraphedCalls(bind)
            with phase("compile"):
                bind(work.inputs)
        return Contestant(
            bind=bind,
            done=None,
            outputs=partial(answers, work),
            weights=dict if made else partial(weights_of, work, model),
            in_force=settings_in_force(model, wanted) | (integers_in_force() if made else {}),
            quantization=made.quantization if made else None,
            no_memory_because="on the CPU PyTorch takes memory from the C library and counts none",
            **on_device(wanted.device),
            fed=None if graphed else fed_to(runner(forward, self._places), wanted.device),
            profiler=None
            if graphed
            else Profiler(
                "torch.profiler", _record, partial(self._bind_to_profile, wanted, bind_in_mode, held, uncompiled)
            ),
            compilation=partial(_compilation, bind, wanted),
            in_thread=partial(modes_of_a_thread, work, wanted.device),
            shared_by_threads=not graphed,
            # Compiled with its weights as constants, or quantized, it has copies of its own.
            deal=None if made or "freezing" in wanted.options or wanted.device != "cpu" else partial(_deal, model),
        )

    def collectives(self, wanted: Settings, phase: Phase) -> Collectives:
        from fairlap.frameworks.adapter_parts.ranks.torch_ranks import collectives

        with phase("import"):
            import torch
        self._version = str(torch.__version__)
        torch.set_num_threads(wanted.threads)
        with phase("join"):
            return collectives(wanted)

    def _trained(self, work: Workload, wanted: Settings, model: Any, phase: Phase) -> Contestant:
        from fairlap.frameworks.adapter_parts.training.torch_training import TorchTraining, in_autocast

        called, exchange = (model, undivided(wanted)) if wanted.rank is None else shared(model, wanted)
        loss = loss_of_batch(called, work.spec.loss)
        if work.precision == "autocast":
            loss = in_autocast(loss, wanted.device)
        if wanted.variant == "compile":
            loss = compiled_by_torch(loss, wanted.options)
        training = TorchTraining(work, model, loss)
        places = argument_names(model, work) or [tensor.name for tensor in work.spec.inputs]

        def parts(tensors: Mapping[str, Any]) -> tuple[tuple[Any, ...], Any]:
            labels = as_labels(tensors[LABELS], work.spec.loss) if LABELS in tensors else None
            return tuple([tensors[name] for name in places]), labels

        def bound(arrays: Arrays, types: Types = NO_TYPES) -> tuple[tuple[Any, ...], Any]:
            return parts(tensors_of(work, wanted.device, arrays, types))

        def bind(arrays: Arrays, types: Types = NO_TYPES) -> Callable[[], Any]:
            return partial(training.step, *bound(arrays, types))

        def answering(batches: Sequence[Arrays]) -> Callable[[], list[Answers]]:
            forward = in_autocast(model, wanted.device) if work.precision == "autocast" else model
            if wanted.variant == "compile":
                forward = compiled_by_torch(forward, wanted.options)
            return training.answering(forward, [bound(batch)[0] for batch in batches])

        if wanted.variant == "compile":
            with phase("compile"):
                bind(batch_of(work))()
                training.reset()
        read = partial(settings_in_force, model, wanted)
        in_force = in_autocast(read, wanted.device)() if work.precision == "autocast" else read()
        return Contestant(
            bind=bind,
            done=None,
            outputs=lambda loss: {LOSS: as_float32(loss.detach().cpu().numpy())},
            weights=partial(weights_of, work, model),
            in_force={**in_force, **training.in_force(), **({RANKS: exchange} if exchange else {})},
            training=TrainingState(training.state, training.reset, training.restore, answering, training.held_bytes),
            fed=fed_to(lambda tensors: training.step(*parts(tensors)), wanted.device),
            profiler=Profiler("torch.profiler", _record),
            **on_device(wanted.device),
            no_memory_because="on the CPU PyTorch takes memory from the C library and counts none",
            compilation=partial(_compilation, bind, wanted, trains=True),
        )

    def _generating(self, work: Workload, wanted: Settings, model: Any, phase: Phase) -> Contestant:
        from fairlap.frameworks.adapter_parts.generation.torch_generation import growing, of_fixed_shape

        if wanted.variant == "compile":
            steps = of_fixed_shape(work, model, wanted.device, partial(compiled_by_torch, options=wanted.options))
        else:
            steps = growing(model, wanted.device)
        calls = answer_calls(work, steps)
        if wanted.variant == "compile":
            with phase("compile"):
                calls["bind"](work.inputs)()
        return Contestant(
            **calls,
            weights=partial(weights_of, work, model),
            in_force=settings_in_force(model, wanted),
            no_memory_because="on the CPU PyTorch takes memory from the C library and counts none",
            **on_device(wanted.device),
            profiler=Profiler("torch.profiler", _record),
            in_thread=partial(modes_of_a_thread, work, wanted.device),
            shared_by_threads=wanted.variant != "compile" or not getattr(model, "has_one_static_cache", False),
        )

    def _bind_to_profile(
        self,
        wanted: Settings,
        bind: Callable[..., Callable[[], Any]],
        model: Any,
        forward: Callable[..., Any],
        inputs: Arrays,
    ) -> Callable[[], Any]:
        if wanted.variant == "compile":
            from fairlap.frameworks.adapter_parts.profiles.torch_profile import compiled_for_the_profiler

            forward = compiled_for_the_profiler(forward, wanted.options.get("mode"))
        return bind(model, forward, inputs)

    def _bind(
        self,
        work: Workload,
        device: str,
        in_mode: BoundInMode,
        model: Any,
        forward: Callable[..., Any],
        inputs: Arrays,
        types: Types = NO_TYPES,
    ) -> Callable[[], Any]:
        tensors = tensors_of(work, device, inputs, types)
        # By place where the model allows it: names cost 0.4 us a call.
        places = self._places
        bound = partial(forward, *(tensors[name] for name in places)) if places else partial(forward, **tensors)
        return in_mode(model, bound)


def _sloped(work: Workload, model: Any, bound: Callable[[], Any]) -> Callable[[], Any]:
    parameters = dict(model.named_parameters())
    return loss_and_gradients(bound, [parameters[name] for name in trained_names(work.spec)])


def _built(work: Workload, wanted: Settings, *, slopes: bool = True) -> Any:
    import torch

    implementation = implementation_of(work, wanted, "torch")
    model = implementation.build(work.weights).requires_grad_(slopes).to(wanted.device)
    fixed = {weight.name for weight in work.spec.weights if not weight.trained}
    for name, parameter in model.named_parameters() if fixed else ():
        parameter.requires_grad_(parameter.requires_grad and name not in fixed)
    if wanted.options.get("memory_format", getattr(implementation, "MEMORY_FORMAT", "")) == "channels_last":
        model = model.to(memory_format=torch.channels_last)
    return model.to(getattr(torch, TYPES[work.precision])) if work.precision in TYPES else model


def _deal(model: Any) -> None:
    for held in (*model.parameters(), *model.buffers()):
        held.data = held.data.clone()


def _record(call: Callable[[], Any], calls: int, trace: Path | None) -> list[ProfiledCall]:
    from fairlap.frameworks.adapter_parts.profiles.torch_profile import record

    return record(call, calls, trace)


def _compilation(bind: Callable[..., Callable[[], Any]], wanted: Settings, *, trains: bool = False) -> Compilation:
    from fairlap.frameworks.adapter_parts.compilation.torch_compilation import compilation_of

    return compilation_of(bind, compiled=wanted.variant == "compile", trains=trains)
